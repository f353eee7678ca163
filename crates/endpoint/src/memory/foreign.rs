//! Memory that is not ours: registered where it lies, for programs in other languages.
#![expect(unsafe_code, reason = "who registers such memory answers for it")]

use super::buffer::Buffer;
use super::region::{Handle, Memory};
use crate::device::ProtectionDomain;
use roci_transport::Access;
use std::sync::Arc;

/// Memory of somebody else under a key, as `ibv_reg_mr` registers it. Nothing says what of it is lent: whoever posts requests answers for
/// it, as in verbs. Dropping this takes the key and the memory away from the device, whether requests refer to it or not: those send what was
/// there, from a copy; and what they were to receive or to READ into it ends them as a local protection error, with their queue pair.
#[derive(Debug)]
pub struct ForeignRegion {
    pub(super) handle: Arc<Handle>,
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
        // SAFETY: the caller's word.
        unsafe { self.reg_foreign_at(start, length, start.expose_provenance() as u64, access) }
    }

    /// The same, where requests and peers name the first octet by `address` and those behind it by what follows, wherever they lie.
    ///
    /// # Errors
    /// As [`reg_foreign`](Self::reg_foreign).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn reg_foreign_at(
        &self,
        start: *mut u8,
        length: usize,
        address: u64,
        access: Access,
    ) -> Result<ForeignRegion, &'static str> {
        let memory = Arc::new(Memory::foreign(start, length, address, access));
        Ok(ForeignRegion { handle: Handle::register(&self.device, self.pd, &memory)? })
    }
}

impl ForeignRegion {
    /// The key of its local requests and of its peers'.
    pub fn key(&self) -> u32 {
        self.handle.key
    }

    /// Has it be other memory under the same key, as `ibv_rereg_mr` does: of this domain, which is of the same device, and else as
    /// [`reg_foreign_at`](ProtectionDomain::reg_foreign_at). Requests that refer to what it was end as if that had been dropped, and windows
    /// that are bound to it are bound to nothing.
    ///
    /// # Errors
    /// What is wrong; it is as it was then.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn replace(
        &mut self,
        pd: &ProtectionDomain,
        start: *mut u8,
        length: usize,
        address: u64,
        access: Access,
    ) -> Result<(), &'static str> {
        let memory = Arc::new(Memory::foreign(start, length, address, access));
        let has_requests = Arc::strong_count(&self.handle) > 1;
        self.handle = self.handle.replace(pd.pd, &memory, has_requests)?;
        Ok(())
    }

    /// Whether a memory window is bound to it. Those that are when it is dropped are bound to nothing then.
    pub fn has_windows(&self) -> bool {
        self.handle.has_windows()
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
        self.handle.revoke(Arc::strong_count(&self.handle) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Progress;
    use crate::io::MemoryWire;
    use crate::memory::RemoteMemory;
    use crate::pair::{End, pair};
    use crate::work::{RecvWr, SendWr, WorkCompletion};
    use roci_transport::{QpState, Status};

    const RIGHTS: [Access; 3] = [Access::LOCAL_WRITE, Access::REMOTE_WRITE, Access::REMOTE_READ];

    /// Two ends that go on when they are told to, and of each 4096 octets that are registered: 7 at the first, 1 at the second.
    struct Two {
        ends: [End; 2],
        octets: [Vec<u8>; 2],
    }

    impl Two {
        fn new() -> (Self, [ForeignRegion; 2]) {
            let ends = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
            let mut octets = [7, 1].map(|octet| vec![octet; 4096]);
            let rights = RIGHTS.into_iter().fold(Access::NONE, |all, right| all | right);
            let regions = [0, 1].map(|end: usize| {
                // SAFETY: they outlive the regions, and nobody refers to them before those are gone.
                unsafe { ends[end].pd.reg_foreign(octets[end].as_mut_ptr(), 4096, rights).unwrap() }
            });
            (Self { ends, octets }, regions)
        }

        /// Waits for the next completion of an end.
        fn ended(&self, end: usize) -> WorkCompletion {
            let mut looks = std::iter::repeat_with(|| {
                self.ends.iter().for_each(|end| end.device.progress());
                self.ends[end].cq.poll()
            });
            looks.find_map(|it| it).unwrap()
        }
    }

    fn part(region: &ForeignRegion, at: usize, length: u32) -> Option<Buffer> {
        // SAFETY: each is used once at a time.
        unsafe { region.buffer(region.handle.memory().address() + at as u64, length) }
    }

    #[test]
    fn octets_are_named_by_the_address_that_their_region_was_given() {
        let [near, far] = pair(&MemoryWire::new(1), Progress::Caller, |qp| qp);
        let mut octets = vec![1; 4096];
        let rights = RIGHTS.into_iter().fold(Access::NONE, |all, right| all | right);
        let register = |octets: &mut [u8], address| {
            // SAFETY: they outlive the region, and nobody refers to them before it is gone.
            unsafe { far.pd.reg_foreign_at(octets.as_mut_ptr(), 4096, address, rights) }
        };
        assert!(register(&mut octets, u64::MAX - 4094).is_err(), "addresses have an end");
        for address in [0, 0x1000] {
            let region = register(&mut octets, address).unwrap();
            // SAFETY: each is dropped at once.
            let is_part = |at, length| unsafe { region.buffer(at, length) }.is_some();
            assert!(is_part(address, 4096) && !is_part(address, 4097) && !is_part(address + 1, 4096));
            let to = RemoteMemory { address: address + 9, rkey: region.key() };
            near.qp.post_send(SendWr::write_inline(&[7, 7], to)).unwrap();
            let mut looks = std::iter::repeat_with(|| {
                far.device.progress();
                near.cq.poll()
            });
            assert!(looks.find_map(|it| it).unwrap().is_ok());
            drop(region);
            assert_eq!(octets[8..12], [1, 7, 7, 1]);
            octets.fill(1);
        }
    }

    #[test]
    fn the_same_octets_are_part_of_several_requests_as_in_c() {
        let (two, [source, target]) = Two::new();
        assert!(part(&source, 4000, 96).is_some() && part(&source, 4000, 97).is_none());
        for at in [0, 64] {
            two.ends[1].qp.post_recv(RecvWr::new(part(&target, at, 64).unwrap())).unwrap();
            two.ends[0].qp.post_send(SendWr::send(part(&source, 0, 64).unwrap())).unwrap();
        }
        assert!([1, 0, 1, 0].map(|end| two.ended(end).is_ok()).into_iter().all(|is_ok| is_ok));
        drop((source, target));
        assert_eq!(two.octets[1], [&[7; 128][..], &[1; 3968]].concat());
    }

    #[test]
    fn what_was_to_be_received_into_memory_that_was_given_back_is_an_error_at_both_ends() {
        let (two, [source, target]) = Two::new();
        two.ends[1].qp.post_recv(RecvWr::new(part(&target, 0, 64).unwrap())).unwrap();
        drop(target);
        two.ends[0].qp.post_send(SendWr::send(part(&source, 0, 64).unwrap())).unwrap();
        let [received, sent] = [1, 0].map(|end| two.ended(end).status);
        assert_eq!((received, sent), (Status::LocalProtectionError, Status::RemoteOperationError));
        assert!(two.ends.iter().all(|end| end.qp.state() == QpState::Error));
        assert_eq!(two.octets[1], [1; 4096]);
    }

    #[test]
    fn a_key_fits_no_longer_when_its_memory_was_given_back() {
        let (two, [_source, target]) = Two::new();
        let to = RemoteMemory { address: target.handle.memory().address(), rkey: target.key() };
        drop(target);
        two.ends[0].qp.post_send(SendWr::write_inline(&[9; 8], to)).unwrap();
        assert_eq!(two.ended(0).status, Status::RemoteAccessError);
        assert_eq!(two.octets[1], [1; 4096]);
    }

    #[test]
    fn other_memory_under_the_same_key_is_what_peers_reach_from_then_on() {
        let (two, [source, mut target]) = Two::new();
        let mut other = vec![3; 64];
        let (key, rights) = (target.key(), RIGHTS.into_iter().fold(Access::NONE, |all, right| all | right));
        two.ends[1].qp.post_recv(RecvWr::new(part(&target, 0, 64).unwrap())).unwrap();
        let was_at = target.handle.memory().address();
        let pd = &two.ends[1].pd;
        // SAFETY: it outlives the region, and nobody refers to it before that is gone.
        let replaced = unsafe { target.replace(pd, other.as_mut_ptr(), 64, 0x1000, rights) };
        assert_eq!((replaced, target.key()), (Ok(()), key));
        // SAFETY: nothing comes of it.
        let wrong = unsafe { target.replace(pd, other.as_mut_ptr(), 64, 0, Access::REMOTE_WRITE) };
        assert!(wrong.is_err());
        let near = &two.ends[0].qp;
        near.post_send(SendWr::write_inline(&[8; 8], RemoteMemory { address: 0x1038, rkey: key })).unwrap();
        assert!(two.ended(0).is_ok());
        // What was posted before has no memory any more.
        near.post_send(SendWr::send(part(&source, 0, 64).unwrap())).unwrap();
        let [received, sent] = [1, 0].map(|end| two.ended(end).status);
        assert_eq!((received, sent), (Status::LocalProtectionError, Status::RemoteOperationError));
        assert_ne!(was_at, 0x1000);
        drop(target);
        assert_eq!((&other[..56], &other[56..]), (&[3; 56][..], &[8; 8][..]));
        assert_eq!(two.octets[1], [1; 4096]);
    }

    #[test]
    fn what_was_posted_is_sent_as_it_was_when_its_memory_was_given_back() {
        let (mut two, [source, target]) = Two::new();
        let to = RemoteMemory { address: target.handle.memory().address(), rkey: target.key() };
        // More than is under way at once.
        for at in 0..100 {
            let parts =
                [(0, 1000), (1000, 3096)].map(|(at, length)| part(&source, at, length).unwrap().freeze());
            let request = SendWr::write(part(&source, 0, 4096).unwrap(), to).wr_id(at);
            let request = if at % 2 == 0 { request } else { request.gather(parts.to_vec()) };
            two.ends[0].qp.post_send(request).unwrap();
        }
        drop(source);
        two.octets[0].fill(5);
        assert!((0..100).all(|_| two.ended(0).is_ok()));
        drop(target);
        assert_eq!(two.octets[1], [7; 4096]);
    }

    #[test]
    fn what_was_to_be_read_into_memory_that_was_given_back_ends_with_an_error() {
        let (two, [source, target]) = Two::new();
        let from = RemoteMemory { address: target.handle.memory().address(), rkey: target.key() };
        two.ends[0].qp.post_send(SendWr::read(part(&source, 0, 4096).unwrap(), from)).unwrap();
        drop(source);
        assert_eq!(two.ended(0).status, Status::LocalProtectionError);
        assert_eq!(two.ends[0].qp.state(), QpState::Error);
        assert_eq!(two.octets[0], [7; 4096]);
    }
}
