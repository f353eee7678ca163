//! Devices, ports, GIDs, contexts.

use crate::abi;
use crate::memory::Regions;
use crate::queue_pair::QueuePair;
use crate::{calls, code, completion, errno, memory, none, posting, queue_pair, reading, told, window};
use libc::{c_char, c_int, c_uint, c_void, size_t, ssize_t};
use roci_endpoint::{Device, Events, Mtu, addresses};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::io;
use std::mem::offset_of;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// Names devices: addresses, or interfaces for their first ones, with commas between. Without it each address of this host is one.
const VARIABLE: &str = "ROCI_DEVICES";

/// A device that there is.
#[repr(C)]
struct Named {
    base: abi::Device,
    address: IpAddr,
}

// SAFETY: nothing in it changes.
unsafe impl Send for Named {}
// SAFETY: nothing in it changes.
unsafe impl Sync for Named {}

/// What was opened.
#[repr(C)]
pub(crate) struct Context {
    /// The program's, which may write there. It is reached by the program's pointer alone.
    _base: UnsafeCell<abi::VerbsContext>,
    pub(crate) device: Device,
    pub(crate) events: Events,
    /// Readable while an event waits; whether it blocks is the program's to say.
    _async: OwnedFd,
    pub(crate) regions: Regions,
    pub(crate) queue_pairs: RwLock<HashMap<u32, Alive>>,
    pub(crate) shared: RwLock<HashMap<u32, *mut abi::Srq>>,
    /// Whether there was ever a queue pair of datagrams.
    pub(crate) has_datagrams: AtomicBool,
    special: Mutex<posting::Special>,
}

/// A queue pair of a context.
pub(crate) struct Alive(pub(crate) *mut QueuePair);

impl Context {
    /// The context that a program has a pointer to.
    pub(crate) unsafe fn of<'a>(context: *mut abi::Context) -> &'a Self {
        &*Self::whole(context)
    }

    /// All of it: what the program has lies at its beginning.
    unsafe fn whole(context: *mut abi::Context) -> *mut Self {
        context.byte_sub(offset_of!(abi::VerbsContext, context)).cast()
    }

    /// What the program has of it.
    unsafe fn part(whole: *mut Self) -> *mut abi::Context {
        &raw mut (*whole.cast::<abi::VerbsContext>()).context
    }

    /// What is known of requests that the endpoint's completions do not tell all of.
    pub(crate) fn special(&self) -> MutexGuard<'_, posting::Special> {
        self.special.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The devices of this host. They stay where they are.
fn devices() -> &'static [Named] {
    static DEVICES: OnceLock<Vec<Named>> = OnceLock::new();
    DEVICES.get_or_init(|| match found() {
        Ok(found) => (0u32..).zip(found).map(|(number, address)| Named::new(number, address)).collect(),
        Err(error) => {
            crate::told(0, error);
            Vec::new()
        }
    })
}

/// What the user names.
fn names() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|names| !names.trim().is_empty())
}

fn found() -> io::Result<Vec<IpAddr>> {
    let Some(names) = names() else { return addresses::all() };
    let name = |name: &str| {
        let told = |error| io::Error::other(format!("{VARIABLE}, `{name}`: {error}"));
        addresses::address_of(name).map_err(told)
    };
    names.split(',').map(|text| name(text.trim())).collect()
}

/// Whether the user said that there is a device at this address.
pub(crate) fn is_named(address: IpAddr) -> bool {
    names().is_some() && addresses().any(|named| named == address)
}

impl Named {
    /// All of it, of which the program knows the beginning.
    fn pointer(&self) -> *mut abi::Device {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn new(number: u32, address: IpAddr) -> Self {
        let mut base = abi::Device {
            _ops: [null_mut::<c_void>().cast_const(); 2],
            // A channel adapter of InfiniBand's transport, as every NIC that speaks RoCE.
            node_type: 1,
            transport_type: 0,
            name: [0; 64],
            dev_name: [0; 64],
            dev_path: [0; 256],
            ibdev_path: [0; 256],
        };
        fill(&mut base.name, &format!("roci{number}"));
        fill(&mut base.dev_name, &format!("uverbs-roci{number}"));
        fill(&mut base.dev_path, &format!("/sys/class/infiniband_verbs/uverbs-roci{number}"));
        fill(&mut base.ibdev_path, &format!("/sys/class/infiniband/roci{number}"));
        Self { base, address }
    }
}

/// A text that ends with a zero.
fn fill(place: &mut [c_char], text: &str) {
    let last = place.len() - 1;
    for (to, octet) in place[..last].iter_mut().zip(text.bytes()) {
        *to = octet.cast_signed();
    }
}

/// The address as a GID: IPv4 within IPv6.
pub(crate) fn gid_of(address: IpAddr) -> abi::Gid {
    let octets = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
    .octets();
    let half = |at: usize| std::array::from_fn(|place| octets[at + place]);
    abi::Gid { raw: [half(0), half(8)], align: [] }
}

pub(crate) fn address_of(gid: &abi::Gid) -> IpAddr {
    let octets: [u8; 16] = std::array::from_fn(|place| gid.raw[place / 8][place % 8]);
    IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
}

/// A number by which a device is known, in network order.
fn guid_of(address: IpAddr) -> u64 {
    let gid = gid_of(address);
    // Locally administered; of IPv6 the half that tells hosts apart, changed by the network's, for a host may have the same half in several.
    let [network, host] = gid.raw.map(u64::from_be_bytes);
    let host = match address {
        IpAddr::V4(_) => host & 0xffff_ffff | 0x0200_00ff << 32,
        IpAddr::V6(_) => host ^ network.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    };
    host.to_be()
}

pub(crate) const fn mtu_code(mtu: Mtu) -> c_uint {
    match mtu {
        Mtu::Mtu256 => 1,
        Mtu::Mtu512 => 2,
        Mtu::Mtu1024 => 3,
        Mtu::Mtu2048 => 4,
        Mtu::Mtu4096 => 5,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut abi::Device {
    let devices = devices();
    let list = libc::calloc(devices.len() + 1, size_of::<*mut abi::Device>()).cast::<*mut abi::Device>();
    if list.is_null() {
        return none(libc::ENOMEM);
    }
    for (place, device) in devices.iter().enumerate() {
        list.add(place).write(device.pointer());
    }
    if !count.is_null() {
        count.write(c_int::try_from(devices.len()).unwrap_or(c_int::MAX));
    }
    list
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut abi::Device) {
    libc::free(list.cast());
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_name(device: *mut abi::Device) -> *const c_char {
    (&raw const (*device).name).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_guid(device: *mut abi::Device) -> u64 {
    guid_of((*device.cast::<Named>()).address)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_device_index(device: *mut abi::Device) -> c_int {
    let name = CStr::from_ptr(ibv_get_device_name(device));
    let digits = name.to_str().ok().and_then(|name| name.strip_prefix("roci"));
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(-1)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_open_device(device: *mut abi::Device) -> *mut abi::Context {
    let address = (*device.cast::<Named>()).address;
    match open(device, address) {
        Ok(context) => context,
        Err(error) => none(crate::told(errno(&error), format_args!("{address}: {error}"))),
    }
}

/// Opens the device at an address; `None` where there is none.
pub(crate) fn open_at(address: IpAddr) -> Option<io::Result<*mut abi::Context>> {
    let named = devices().iter().find(|it| it.address == address)?;
    // SAFETY: devices stay where they are.
    Some(unsafe { open(named.pointer(), address) })
}

/// The addresses of the devices, in their order.
pub(crate) fn addresses() -> impl Iterator<Item = IpAddr> {
    devices().iter().map(|it| it.address)
}

unsafe fn open(named: *mut abi::Device, address: IpAddr) -> io::Result<*mut abi::Context> {
    let device = Device::open(address)?;
    let events = device.events()?;
    let watch = watching(&events, 0)?;
    let absent = std::ptr::null();
    let context = Box::new(Context {
        _base: UnsafeCell::new(abi::VerbsContext {
            advise_mr: memory::advise_mr,
            alloc_null_mr_to_modify_qp_rate_limit: [absent; 12],
            alloc_parent_domain: memory::alloc_parent_domain,
            dealloc_td: memory::dealloc_td,
            alloc_td: memory::alloc_td,
            modify_cq: completion::modify_cq,
            post_srq_ops_to_create_wq: [absent; 6],
            query_rt_values,
            create_cq_ex: reading::create_cq_ex,
            _priv: absent,
            query_device_ex,
            _destroy_flow_to_open_qp: [absent; 5],
            create_qp_ex: queue_pair::create_qp_ex,
            get_srq_num_create_srq_ex_open_xrcd_close_xrcd: [absent; 4],
            _abi_placeholder3: 0,
            sz: size_of::<abi::VerbsContext>(),
            context: abi::Context {
                device: named,
                ops: abi::ContextOps {
                    _compat_to_dereg_mr: [absent; 7],
                    alloc_mw: window::alloc_mw,
                    bind_mw: window::bind_mw,
                    dealloc_mw: window::dealloc_mw,
                    _compat_create_cq: absent,
                    poll_cq: completion::poll_cq,
                    req_notify_cq: completion::req_notify_cq,
                    _compat_to_destroy_srq: [absent; 7],
                    post_srq_recv: posting::post_srq_recv,
                    _compat_to_destroy_qp: [absent; 4],
                    post_send: posting::post_send,
                    post_recv: posting::post_recv,
                    _compat_to_async_event: [absent; 5],
                },
                cmd_fd: -1,
                async_fd: watch.as_raw_fd(),
                num_comp_vectors: completion::vectors(),
                mutex: libc::PTHREAD_MUTEX_INITIALIZER,
                abi_compat: abi::VERBS_ABI_IS_EXTENDED,
            },
        }),
        device,
        events,
        _async: watch,
        regions: Regions::default(),
        queue_pairs: RwLock::default(),
        shared: RwLock::default(),
        has_datagrams: AtomicBool::new(false),
        special: Mutex::default(),
    });
    // Not by a reference, which would be to less than the program's pointer leads to.
    Ok(Context::part(Box::into_raw(context)))
}

/// A descriptor that is readable while `fd` is, with flags of its own; readers are told `data`.
pub(crate) fn watching(fd: &impl std::os::fd::AsFd, data: u64) -> io::Result<OwnedFd> {
    // SAFETY: it makes a descriptor that nobody else has.
    let watch = unsafe {
        let made = libc::epoll_create1(libc::EPOLL_CLOEXEC);
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(made)
    };
    watch_also(watch.as_raw_fd(), fd, data)?;
    Ok(watch)
}

/// Has `watch` be readable while `fd` is, as well.
pub(crate) fn watch_also(watch: c_int, fd: &impl std::os::fd::AsFd, data: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: data };
    // SAFETY: both are open, and the event is read before the call returns.
    let added =
        unsafe { libc::epoll_ctl(watch, libc::EPOLL_CTL_ADD, fd.as_fd().as_raw_fd(), &raw mut event) };
    if added < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits until `watch` is readable, and gives what its readers are told; `None` where it does not block and is not readable.
pub(crate) fn wait(watch: c_int) -> io::Result<Option<u64>> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    let mut readable = libc::pollfd { fd: watch, events: libc::POLLIN, revents: 0 };
    let blocks = does_block(watch)?;
    loop {
        // A process that was stopped and goes on goes on waiting, which it would not in epoll_wait(2).
        // SAFETY: waits that fill one event each.
        let found = unsafe {
            if blocks && libc::poll(&raw mut readable, 1, -1) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::epoll_wait(watch, &raw mut event, 1, 0)
        };
        match found {
            ..0 => return Err(io::Error::last_os_error()),
            // Another thread was faster.
            0 if blocks => {}
            found => return Ok((found > 0).then_some(event.u64)),
        }
    }
}

/// Whether the program has who reads a descriptor wait.
pub(crate) fn does_block(watch: c_int) -> io::Result<bool> {
    // SAFETY: it tells the flags of a descriptor.
    let flags = unsafe { libc::fcntl(watch, libc::F_GETFL) };
    if flags < 0 { Err(io::Error::last_os_error()) } else { Ok(flags & libc::O_NONBLOCK == 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_close_device(context: *mut abi::Context) -> c_int {
    drop(Box::from_raw(Context::whole(context)));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_device(context: *mut abi::Context, attr: *mut abi::DeviceAttr) -> c_int {
    attr.write(attributes(context));
    0
}

unsafe fn attributes(context: *mut abi::Context) -> abi::DeviceAttr {
    let guid = guid_of(Context::of(context).device.address());
    let mut it = abi::DeviceAttr {
        fw_ver: [0; 64],
        node_guid: guid,
        sys_image_guid: guid,
        // All that a program can have.
        max_mr_size: 1 << 47,
        page_size_cap: 0xffff_f000,
        // Nobody's, as Soft-RoCE has it: some programs take 0 for a failure.
        vendor_id: 0xff_ffff,
        vendor_part_id: 0,
        hw_ver: 0,
        max_qp: 1 << 16,
        max_qp_wr: calls::WORKS,
        // RNR NAKs, a system image GUID, shared receive queues that can be resized, and memory windows of types 1 and 2B.
        device_cap_flags: 1 << 12 | 1 << 11 | 1 << 13 | 1 << 17 | 1 << 24,
        max_sge: posting::PARTS,
        max_sge_rd: posting::PARTS,
        max_cq: 1 << 16,
        max_cqe: completion::ROOM,
        max_mr: 1 << 16,
        max_pd: 1 << 16,
        max_qp_rd_atom: queue_pair::READS.into(),
        max_ee_rd_atom: 0,
        max_res_rd_atom: c_int::from(queue_pair::READS) << 16,
        max_qp_init_rd_atom: queue_pair::READS.into(),
        max_ee_init_rd_atom: 0,
        // With this device's other accesses alone, as all devices promise.
        atomic_cap: 1,
        max_ee: 0,
        max_rdd: 0,
        max_mw: 1 << 16,
        max_raw_ipv6_qp: 0,
        max_raw_ethy_qp: 0,
        max_mcast_grp: 0,
        max_mcast_qp_attach: 0,
        max_total_mcast_qp_attach: 0,
        max_ah: 1 << 16,
        max_fmr: 0,
        max_map_per_fmr: 0,
        max_srq: 1 << 16,
        max_srq_wr: calls::WORKS,
        max_srq_sge: posting::PARTS,
        max_pkeys: 1,
        local_ca_ack_delay: 15,
        phys_port_cnt: 1,
    };
    fill(&mut it.fw_ver, concat!("rocinante ", env!("CARGO_PKG_VERSION")));
    it
}

/// Times of completions are counted in nanoseconds, in kHz.
const CLOCK: u64 = 1_000_000;

/// Pages of no region are pinned (`IBV_ODP_SUPPORT`): each kind of queue pair does with them what it does at all, of SEND, receive, WRITE,
/// READ, atomics, and receive from a shared queue.
const ON_DEMAND: u64 = 1;

/// How the header's `ibv_query_device_ex` asks, for the `size` octets that the program has.
unsafe extern "C" fn query_device_ex(
    context: *mut abi::Context,
    _input: *const c_void,
    attr: *mut abi::DeviceAttrEx,
    size: size_t,
) -> c_int {
    if size < size_of::<abi::DeviceAttr>() {
        return libc::EINVAL;
    }
    let orig_attr = attributes(context);
    let device_cap_flags_ex = orig_attr.device_cap_flags.into();
    let it = abi::DeviceAttrEx {
        orig_attr,
        comp_mask: 0,
        odp_caps: abi::OdpCaps { general_caps: ON_DEMAND, per_transport_caps: [0x3f, 0x27, 0x23] },
        completion_timestamp_mask: u64::MAX,
        hca_core_clock: CLOCK,
        device_cap_flags_ex,
        tso_caps: [0; 2],
        rss_caps: [0; 4],
        max_wq_type_rq: 0,
        packet_pacing_caps: [0; 3],
        raw_packet_caps: 0,
        tm_caps: [0; 5],
        cq_mod_caps: [u16::MAX; 2],
        max_dm_size: 0,
        pci_atomic_caps: [0; 3],
        xrc_odp_caps: 0,
        phys_port_cnt_ex: 1,
    };
    attr.cast::<u8>().write_bytes(0, size);
    let octets = size.min(size_of::<abi::DeviceAttrEx>());
    attr.cast::<u8>().copy_from_nonoverlapping((&raw const it).cast(), octets);
    0
}

/// `IBV_VALUES_MASK_RAW_CLOCK`.
const RAW_CLOCK: u32 = 1;

/// What time it is, as completions tell theirs.
unsafe extern "C" fn query_rt_values(context: *mut abi::Context, values: *mut abi::ValuesEx) -> c_int {
    if (*values).comp_mask & !RAW_CLOCK != 0 {
        return libc::EINVAL;
    }
    if (*values).comp_mask & RAW_CLOCK != 0 {
        // Ticks, which NICs put there whatever the field is called, and programs take from there alone.
        let ticks = nanoseconds(Context::of(context).device.time());
        (*values).raw_clock.tv_sec = 0;
        (*values).raw_clock.tv_nsec = i64::try_from(ticks).unwrap_or(i64::MAX);
    }
    0
}

/// Of them 64 bits last for 584 years.
pub(crate) fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port(
    context: *mut abi::Context,
    port: u8,
    attr: *mut abi::PortAttr,
) -> c_int {
    code(there(port, 0).map(|()| {
        attr.write(abi::PortAttr {
            // Active, and the link is up.
            state: 4,
            max_mtu: mtu_code(Mtu::Mtu4096),
            active_mtu: mtu_code(Context::of(context).device.active_mtu()),
            gid_tbl_len: 1,
            // GIDs follow IP addresses.
            port_cap_flags: 1 << 26,
            max_msg_sz: 1 << 31,
            bad_pkey_cntr: 0,
            qkey_viol_cntr: 0,
            pkey_tbl_len: 1,
            lid: 0,
            sm_lid: 0,
            lmc: 0,
            max_vl_num: 1,
            sm_sl: 0,
            subnet_timeout: 0,
            init_type_reply: 0,
            // Nobody knows what is behind a socket: one lane of 25 Gb/s.
            active_width: 1,
            active_speed: 32,
            phys_state: 5,
            link_layer: 2,
            flags: 0,
        });
    }))
}

/// There is one port, with one GID and one key of partitions.
fn there(port: u8, index: i64) -> Result<(), c_int> {
    if port == 1 && index == 0 { Ok(()) } else { Err(libc::EINVAL) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid(
    context: *mut abi::Context,
    port: u8,
    index: c_int,
    gid: *mut abi::Gid,
) -> c_int {
    match there(port, index.into()) {
        Ok(()) => gid.write(gid_of(Context::of(context).device.address())),
        // Index 3 is customary with NICs, where it is the one of RoCEv2.
        Err(error) => {
            let reason = format_args!(
                "a device has port 1 and one GID there, index 0, which is RoCEv2's: asked was for port {port}, index {index}"
            );
            none::<()>(told(error, reason));
            return -1;
        }
    }
    0
}

/// How the header's `ibv_query_gid_ex` asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut abi::Context,
    port: u32,
    index: u32,
    entry: *mut abi::GidEntry,
    _flags: u32,
    size: size_t,
) -> c_int {
    match there(u8::try_from(port).unwrap_or(0), index.into()) {
        Err(_) => libc::ENODATA,
        Ok(()) if size < size_of::<abi::GidEntry>() => libc::EINVAL,
        Ok(()) => {
            // RoCEv2.
            let gid = gid_of(Context::of(context).device.address());
            entry.write(abi::GidEntry { gid, gid_index: 0, port_num: 1, gid_type: 2, ndev_ifindex: 0 });
            0
        }
    }
}

/// How the header's `ibv_query_gid_table` asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut abi::Context,
    entries: *mut abi::GidEntry,
    most: size_t,
    flags: u32,
    size: size_t,
) -> ssize_t {
    if most == 0 {
        // All of them or none.
        return -(libc::EINVAL as ssize_t);
    }
    match _ibv_query_gid_ex(context, 1, 0, entries, flags, size) {
        0 => 1,
        error => -(error as ssize_t),
    }
}

/// RoCEv2 is 1 here, where the file system of the kernel counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_gid_type(
    _context: *mut abi::Context,
    port: u8,
    index: c_uint,
    kind: *mut c_uint,
) -> c_int {
    if there(port, index.into()).is_err() {
        none::<()>(libc::EINVAL);
        return -1;
    }
    kind.write(1);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_pkey(
    _context: *mut abi::Context,
    port: u8,
    index: c_int,
    key: *mut u16,
) -> c_int {
    if there(port, index.into()).is_err() {
        none::<()>(libc::EINVAL);
        return -1;
    }
    key.write(0xffff);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_get_pkey_index(_context: *mut abi::Context, port: u8, key: u16) -> c_int {
    if port == 1 && key == 0xffff { 0 } else { -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_one_host_in_several_networks_have_guids_of_their_own() {
        let addresses = ["fd00::5", "fd00:0:0:1::5", "fd01::5", "fd00::6", "10.0.0.5", "10.0.1.5"];
        let guids: std::collections::HashSet<u64> =
            addresses.iter().map(|text| guid_of(text.parse().unwrap_or_else(|_| unreachable!()))).collect();
        assert_eq!(guids.len(), addresses.len());
    }
}
