//! Protection domains, memory regions, and address handles.

use crate::device::{Context, address_of, gid_of};
use crate::{abi, code, header, mapped, none, told};
use libc::{c_int, c_uint, c_void};
use roci_endpoint::{Access, Buffer, ForeignRegion, ProtectionDomain, WindowTarget};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, PoisonError, RwLock};

/// The regions of a context, by their keys.
#[derive(Default)]
pub(crate) struct Regions(RwLock<HashMap<u32, Region>>);

struct Region {
    region: ForeignRegion,
    /// Where its protection domain is.
    domain: usize,
    is_writable: bool,
    /// Its rights, as C has them.
    access: c_uint,
    /// By what its first octet is named.
    address: u64,
}

impl Regions {
    /// What a part of a list names, for a request; `None` where no region has all of it under that key.
    ///
    /// The program answers for what else refers to these octets.
    pub(crate) unsafe fn part(&self, part: &abi::Sge) -> Option<Buffer> {
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = regions.get(&part.lkey).and_then(|it| it.region.buffer(part.addr, part.length));
        if found.is_none() {
            // Once: the request may be one of many.
            static SAID: Once = Once::new();
            let (length, addr, lkey) = (part.length, part.addr, part.lkey);
            SAID.call_once(|| {
                let reason = format_args!(
                    "a request names {length} octets at {addr:#x} that are not all of a region with lkey {lkey:#x}, and ends with \
                     IBV_WC_LOC_PROT_ERR; further ones do so without a word"
                );
                crate::told(0, reason);
            });
        }
        found
    }

    /// A part of a region to which a window can be bound; `None` where there is no such region.
    pub(crate) fn target(&self, key: u32, address: u64, length: u64, access: Access) -> Option<WindowTarget> {
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(WindowTarget::foreign(&regions.get(&key)?.region, address, length, access))
    }

    /// Whether a window is bound to a region.
    fn has_windows(&self, key: u32) -> bool {
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        regions.get(&key).is_some_and(|it| it.access & abi::access::MW_BIND != 0 && it.region.has_windows())
    }

    /// Whether we may write to what all of `parts` name, for a queue pair of `domain`. The endpoint looks at what it fills itself.
    pub(crate) unsafe fn may_be_filled<'a>(
        &self,
        domain: *mut abi::Pd,
        parts: impl IntoIterator<Item = &'a abi::Sge>,
    ) -> bool {
        let domain = Domain::root(domain);
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut parts = parts.into_iter().filter(|part| part.length > 0).map(|part| regions.get(&part.lkey));
        parts.all(|it| it.is_some_and(|it| it.is_writable && it.domain == domain))
    }
}

/// A protection domain, which cannot go before what was made from it.
#[repr(C)]
pub(crate) struct Domain {
    base: abi::Pd,
    pub(crate) pd: ProtectionDomain,
    pub(crate) users: AtomicU32,
    /// What a parent domain stands for.
    parts: Option<Parts>,
}

/// A parent domain is the protection domain that it was made from: what was made from either can be used together. Whether one thread alone
/// uses it, as the thread domain says, saves nothing here.
#[derive(Clone, Copy)]
struct Parts {
    pd: *mut abi::Pd,
    td: *mut abi::Td,
}

impl Domain {
    pub(crate) unsafe fn of<'a>(pd: *mut abi::Pd) -> &'a Self {
        &*pd.cast::<Self>()
    }

    /// Whether it is a parent domain.
    pub(crate) unsafe fn is_parent(pd: *mut abi::Pd) -> bool {
        !pd.is_null() && Self::of(pd).parts.is_some()
    }

    /// The protection domain itself, by its place.
    unsafe fn root(pd: *mut abi::Pd) -> usize {
        Self::of(pd).parts.map_or(pd, |parts| parts.pd).addr()
    }
}

/// Who uses something is counted, and it is not to go before.
pub(crate) fn free(users: &AtomicU32) -> Result<(), c_int> {
    if users.load(Ordering::SeqCst) == 0 { Ok(()) } else { Err(libc::EBUSY) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_alloc_pd(context: *mut abi::Context) -> *mut abi::Pd {
    let pd = Context::of(context).device.alloc_pd();
    let base = abi::Pd { context, handle: 0 };
    Box::into_raw(Box::new(Domain { base, pd, users: AtomicU32::new(0), parts: None })).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dealloc_pd(pd: *mut abi::Pd) -> c_int {
    code(free(&Domain::of(pd).users).map(|()| {
        let domain = Box::from_raw(pd.cast::<Domain>());
        let Some(parts) = domain.parts else { return };
        Domain::of(parts.pd).users.fetch_sub(1, Ordering::SeqCst);
        if !parts.td.is_null() {
            (*parts.td.cast::<Thread>()).users.fetch_sub(1, Ordering::SeqCst);
        }
    }))
}

/// A thread domain.
#[repr(C)]
struct Thread {
    base: abi::Td,
    users: AtomicU32,
}

pub(crate) unsafe extern "C" fn alloc_td(
    context: *mut abi::Context,
    init: *mut abi::TdInitAttr,
) -> *mut abi::Td {
    if (*init).comp_mask != 0 {
        return none(libc::EINVAL);
    }
    Box::into_raw(Box::new(Thread { base: abi::Td { context }, users: AtomicU32::new(0) })).cast()
}

pub(crate) unsafe extern "C" fn dealloc_td(td: *mut abi::Td) -> c_int {
    let thread = td.cast::<Thread>();
    code(free(&(*thread).users).map(|()| drop(Box::from_raw(thread))))
}

pub(crate) unsafe extern "C" fn alloc_parent_domain(
    context: *mut abi::Context,
    init: *mut abi::ParentDomainInitAttr,
) -> *mut abi::Pd {
    let it = &*init;
    if it.comp_mask != 0 {
        // Nothing lies in memory that the program could give.
        return none(told(libc::EOPNOTSUPP, "a parent domain has no allocators of the program's"));
    }
    if it.pd.is_null() || (*it.pd).context != context || Domain::of(it.pd).parts.is_some() {
        return none(told(libc::EINVAL, "a parent domain is made from a protection domain of its device"));
    }
    let from = Domain::of(it.pd);
    from.users.fetch_add(1, Ordering::SeqCst);
    if !it.td.is_null() {
        (*it.td.cast::<Thread>()).users.fetch_add(1, Ordering::SeqCst);
    }
    let (base, parts) = (abi::Pd { context, handle: 0 }, Parts { pd: it.pd, td: it.td });
    let domain = Domain { base, pd: from.pd.clone(), users: AtomicU32::new(0), parts: Some(parts) };
    Box::into_raw(Box::new(domain)).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr(
    pd: *mut abi::Pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut abi::Mr {
    ibv_reg_mr_iova2(pd, addr, length, addr.expose_provenance() as u64, access.cast_unsigned())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova(
    pd: *mut abi::Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut abi::Mr {
    ibv_reg_mr_iova2(pd, addr, length, iova, access.cast_unsigned())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut abi::Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut abi::Mr {
    let address = match judge(addr, length, iova, access) {
        Ok(address) => address,
        Err(error) => return none(error),
    };
    let domain = Domain::of(pd);
    let context = Context::of((*pd).context);
    let region = match domain.pd.reg_foreign_at(addr.cast(), length, address, rights(access)) {
        Ok(region) => region,
        Err(reason) => return none(told_of(addr, length, libc::EINVAL, reason)),
    };
    let key = region.key();
    let is_writable = access & abi::access::LOCAL_WRITE != 0;
    let region = Region { region, domain: Domain::root(pd), is_writable, access, address };
    context.regions.0.write().unwrap_or_else(PoisonError::into_inner).insert(key, region);
    domain.users.fetch_add(1, Ordering::SeqCst);
    Box::into_raw(Box::new(abi::Mr {
        context: (*pd).context,
        pd,
        addr,
        length,
        handle: 0,
        lkey: key,
        rkey: key,
    }))
}

/// Says why memory is not registered.
fn told_of(addr: *mut c_void, length: usize, error: c_int, reason: &str) -> c_int {
    told(error, format_args!("{length} octets of memory at {addr:p} were not registered: {reason}"))
}

/// Whether memory can be registered so; gives by what its first octet is named.
fn judge(addr: *mut c_void, length: usize, iova: u64, access: c_uint) -> Result<u64, c_int> {
    let refused = |error, reason: &str| Err(told_of(addr, length, error, reason));
    let is_zero_based = access & abi::access::ZERO_BASED != 0;
    // All that a program has or will have.
    if access & abi::access::ON_DEMAND != 0 && length == usize::MAX {
        return refused(libc::EOPNOTSUPP, "implicit on-demand regions are not there");
    }
    // As by the kernel, for which a page is one wherever it is seen.
    if !is_zero_based && iova % PAGE != addr.addr() as u64 % PAGE {
        return refused(libc::EINVAL, "by another address they lie elsewhere in their page");
    }
    match mapped::refusal(addr.addr(), length, access & WRITES != 0) {
        Some(reason) => refused(libc::EFAULT, reason),
        None => Ok(if is_zero_based { 0 } else { iova }),
    }
}

/// Octets of a page.
const PAGE: u64 = 4096;

/// The rights by which octets are changed.
const WRITES: c_uint =
    abi::access::LOCAL_WRITE | abi::access::REMOTE_WRITE | abi::access::REMOTE_ATOMIC | abi::access::MW_BIND;

/// Those that say how pages are to be handled are hints.
pub(crate) fn rights(access: c_uint) -> Access {
    [
        (abi::access::LOCAL_WRITE, Access::LOCAL_WRITE),
        (abi::access::REMOTE_WRITE, Access::REMOTE_WRITE),
        (abi::access::REMOTE_READ, Access::REMOTE_READ),
        (abi::access::REMOTE_ATOMIC, Access::REMOTE_ATOMIC),
        (abi::access::MW_BIND, Access::BIND),
    ]
    .into_iter()
    .filter(|(bit, _)| access & bit != 0)
    .fold(Access::NONE, |all, (_, right)| all | right)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_dereg_mr(mr: *mut abi::Mr) -> c_int {
    let context = Context::of((*mr).context);
    if context.regions.has_windows((*mr).lkey) {
        return told(libc::EBUSY, "a memory window is bound to a region that is to be deregistered");
    }
    let (mr, regions) = (Box::from_raw(mr), &context.regions.0);
    // It is dropped with the lock let go: requests of other regions need not wait for that.
    let region = regions.write().unwrap_or_else(PoisonError::into_inner).remove(&mr.lkey);
    drop(region);
    // Who puts results and headers there holds this, and not the lock of a shard.
    drop(context.special());
    Domain::of(mr.pd).users.fetch_sub(1, Ordering::SeqCst);
    0
}

/// Pages may be fetched ahead of time, and need not be: they are the system's, which fetches each when it is touched.
pub(crate) unsafe extern "C" fn advise_mr(
    pd: *mut abi::Pd,
    _advice: c_uint,
    _flags: u32,
    list: *mut abi::Sge,
    count: u32,
) -> c_int {
    let regions = Context::of((*pd).context).regions.0.read().unwrap_or_else(PoisonError::into_inner);
    let is_known = |place: usize| {
        let part = list.add(place).read_unaligned();
        regions.get(&part.lkey).is_some_and(|it| it.region.buffer(part.addr, part.length).is_some())
    };
    if (0..count as usize).all(is_known) { 0 } else { libc::EFAULT }
}

/// What of a region is to change.
const CHANGE_TRANSLATION: c_int = 1;
const CHANGE_PD: c_int = 2;
const CHANGE_ACCESS: c_int = 4;
/// `IBV_REREG_MR_ERR_INPUT`: the region is as it was.
const UNCHANGED: c_int = -1;

/// Changes a region, which keeps its keys, as those of NICs do (IBTA Vol 1 §11.2.8 lets both be); what refers to what it was ends as if that
/// had been deregistered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_rereg_mr(
    mr: *mut abi::Mr,
    flags: c_int,
    pd: *mut abi::Pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    let refused = |error| {
        none::<()>(error);
        UNCHANGED
    };
    let of = |what: c_int| flags & what != 0;
    let is_known = of(CHANGE_TRANSLATION | CHANGE_PD | CHANGE_ACCESS)
        && flags & !(CHANGE_TRANSLATION | CHANGE_PD | CHANGE_ACCESS) == 0;
    let is_elsewhere = of(CHANGE_PD) && (pd.is_null() || (*pd).context != (*mr).context);
    let is_nowhere = of(CHANGE_TRANSLATION) && (addr.is_null() || length == 0);
    if !is_known || is_elsewhere || is_nowhere {
        return refused(libc::EINVAL);
    }
    let context = Context::of((*mr).context);
    if context.regions.has_windows((*mr).lkey) {
        return refused(told(libc::EBUSY, "a memory window is bound to a region that is to be changed"));
    }
    let regions = &context.regions.0;
    // Who posts requests of other regions need not wait for it.
    let known = regions.write().unwrap_or_else(PoisonError::into_inner).remove(&(*mr).lkey);
    let Some(mut known) = known else { return refused(libc::EINVAL) };
    let access = if of(CHANGE_ACCESS) { access.cast_unsigned() } else { known.access };
    let pd = if of(CHANGE_PD) { pd } else { (*mr).pd };
    let (addr, length) = if of(CHANGE_TRANSLATION) { (addr, length) } else { ((*mr).addr, (*mr).length) };
    let iova = if of(CHANGE_TRANSLATION) { addr.expose_provenance() as u64 } else { known.address };
    let changed = judge(addr, length, iova, access).and_then(|address| {
        let replaced = known.region.replace(&Domain::of(pd).pd, addr.cast(), length, address, rights(access));
        replaced.map_err(|reason| told_of(addr, length, libc::EINVAL, reason))?;
        known.is_writable = access & abi::access::LOCAL_WRITE != 0;
        (known.access, known.address, known.domain) = (access, address, Domain::root(pd));
        Ok(())
    });
    regions.write().unwrap_or_else(PoisonError::into_inner).insert((*mr).lkey, known);
    if let Err(error) = changed {
        return refused(error);
    }
    // Who puts results and headers there holds this, and not the lock of a shard.
    drop(context.special());
    Domain::of(pd).users.fetch_add(1, Ordering::SeqCst);
    Domain::of((*mr).pd).users.fetch_sub(1, Ordering::SeqCst);
    ((*mr).pd, (*mr).addr, (*mr).length) = (pd, addr, length);
    0
}

/// Where datagrams go.
#[repr(C)]
pub(crate) struct Handle {
    base: abi::Ah,
    pub(crate) address: IpAddr,
    /// The code point with which they go there.
    pub(crate) dscp: u8,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_ah(pd: *mut abi::Pd, attr: *mut abi::AhAttr) -> *mut abi::Ah {
    // RoCE knows addresses alone.
    if (*attr).is_global == 0 || (*attr).port_num != 1 {
        return none(told(libc::EINVAL, "an address handle has a GID (`is_global`), and port 1"));
    }
    let base = abi::Ah { context: (*pd).context, pd, handle: 0 };
    let grh = &(*attr).grh;
    let (address, dscp) = (address_of(&grh.dgid), grh.traffic_class >> 2);
    Box::into_raw(Box::new(Handle { base, address, dscp })).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_ah(ah: *mut abi::Ah) -> c_int {
    drop(Box::from_raw(ah.cast::<Handle>()));
    0
}

/// The address of who sent a datagram, as its header says it, which lies before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_init_ah_from_wc(
    _context: *mut abi::Context,
    port: u8,
    wc: *mut abi::Wc,
    grh: *mut c_void,
    attr: *mut abi::AhAttr,
) -> c_int {
    if (*wc).wc_flags & abi::wc::GRH == 0 || grh.is_null() {
        none::<()>(libc::EINVAL);
        return -1;
    }
    let octets = grh.cast::<[u8; abi::GRH as usize]>().read_unaligned();
    let grh = abi::GlobalRoute { dgid: gid_of(header::source(&octets)), hop_limit: 64, ..Default::default() };
    attr.write(abi::AhAttr { grh, is_global: 1, port_num: port, ..Default::default() });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_ah_from_wc(
    pd: *mut abi::Pd,
    wc: *mut abi::Wc,
    grh: *mut c_void,
    port: u8,
) -> *mut abi::Ah {
    let mut attr = abi::AhAttr::default();
    match ibv_init_ah_from_wc((*pd).context, port, wc, grh, &raw mut attr) {
        0 => ibv_create_ah(pd, &raw mut attr),
        _ => std::ptr::null_mut(),
    }
}
