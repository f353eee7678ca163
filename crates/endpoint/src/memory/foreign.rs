//! Memory that is not ours: registered where it lies, for programs in other languages.
#![expect(unsafe_code, reason = "who registers such memory answers for it")]

use super::buffer::Buffer;
use super::region::{Handle, Memory};
use crate::device::{DeviceInner, ProtectionDomain};
use roci_transport::{Access, Pd};
use std::sync::Arc;

/// Memory of somebody else under a key, as `ibv_reg_mr` registers it. Nothing says what of it is lent: whoever posts requests answers for
/// it, as in verbs. Dropping this takes the key and the memory away from the device, whether requests refer to it or not: those send zeros,
/// and place nothing.
#[derive(Debug)]
pub struct ForeignRegion {
    handle: Arc<Handle>,
}

impl ProtectionDomain {
    /// Registers the `length` octets from `start` on.
    ///
    /// # Errors
    /// What is wrong.
    ///
    /// # Safety
    /// Until the region is dropped the octets can be read, and written where `access` has any right to write; meanwhile Rust code has no
    /// references to them.
    pub unsafe fn reg_foreign(
        &self,
        start: *mut u8,
        length: usize,
        access: Access,
    ) -> Result<ForeignRegion, &'static str> {
        ForeignRegion::register(&self.device, self.pd, start, length, access)
    }
}

impl ForeignRegion {
    fn register(
        device: &Arc<DeviceInner>,
        pd: Pd,
        start: *mut u8,
        length: usize,
        access: Access,
    ) -> Result<Self, &'static str> {
        let memory = Arc::new(Memory::foreign(start, length, access));
        Ok(Self { handle: Handle::register(device, pd, &memory)? })
    }

    /// The key of its local requests and of its peers'.
    pub fn key(&self) -> u32 {
        self.handle.key
    }

    /// The part of `length` octets from address `address` on, for a request; `None` where not all of it lies within.
    ///
    /// # Safety
    /// Other buffers may have some of the same octets: only those of one may be written, or be received or READ into, at a time.
    pub unsafe fn buffer(&self, address: u64, length: u32) -> Option<Buffer> {
        let memory = self.handle.memory();
        let start = usize::try_from(address.checked_sub(memory.address())?).ok()?;
        let range = start..start.checked_add(length as usize)?;
        (range.end <= memory.len()).then(|| Buffer::new(self.handle.clone(), range))
    }
}

impl Drop for ForeignRegion {
    fn drop(&mut self) {
        self.handle.revoke();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Progress;
    use crate::io::MemoryWire;
    use crate::pair::pair;
    use crate::work::{RecvWr, SendWr};

    #[test]
    fn memory_that_was_given_back_is_neither_read_nor_written_by_requests_that_refer_to_it() {
        let [near, far] = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
        let (mut from, mut into) = (vec![7u8; 4096], vec![1u8; 4096]);
        let rights = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        // SAFETY: both outlive their regions, and nobody refers to them before.
        let (source, target) = unsafe {
            let source = near.pd.reg_foreign(from.as_mut_ptr(), 4096, rights).unwrap();
            (source, far.pd.reg_foreign(into.as_mut_ptr(), 4096, rights).unwrap())
        };
        let part = |region: &ForeignRegion, at: usize, length| {
            // SAFETY: each is used once at a time.
            unsafe { region.buffer(region.handle.memory().address() + at as u64, length) }
        };
        assert!(part(&source, 4000, 96).is_some() && part(&source, 4000, 97).is_none());
        // The same octets twice, as C does.
        for at in [0, 64] {
            far.qp.post_recv(RecvWr::new(part(&target, at, 64).unwrap())).unwrap();
            near.qp.post_send(SendWr::send(part(&source, 0, 64).unwrap())).unwrap();
        }
        for cq in [&far.cq, &near.cq, &far.cq, &near.cq] {
            while cq.poll().inspect(|it| assert!(it.is_ok())).is_none() {
                near.device.progress();
                far.device.progress();
            }
        }
        far.qp.post_recv(RecvWr::new(part(&target, 128, 64).unwrap())).unwrap();
        let key = target.key();
        drop(target);
        drop(part(&source, 0, 1));
        near.qp.post_send(SendWr::send(part(&source, 0, 64).unwrap())).unwrap();
        while far.cq.poll().is_none() {
            near.device.progress();
        }
        let to = crate::memory::RemoteMemory { address: into.as_ptr().addr() as u64, rkey: key };
        near.qp.post_send(SendWr::write_inline(&[9; 8], to)).unwrap();
        let ends = std::iter::repeat_with(|| near.cq.poll()).inspect(|_| far.device.progress());
        let refused = ends.flatten().find(|it| !it.is_ok()).unwrap();
        assert_eq!(refused.status, roci_transport::Status::RemoteAccessError);
        drop(source);
        assert!(into[..128].iter().all(|octet| *octet == 7) && into[128..].iter().all(|octet| *octet == 1));
        assert!(from.iter().all(|octet| *octet == 7));
        (from[0], into[0]) = (0, 0);
    }
}
