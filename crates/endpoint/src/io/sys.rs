//! The system calls that the standard library does not offer, each behind a safe function.
#![expect(unsafe_code, reason = "system calls")]

mod several;

pub(crate) use several::Several;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// `UDP_SEGMENT` and `UDP_GRO` (linux/udp.h).
pub(crate) const UDP_SEGMENT: libc::c_int = 103;
pub(crate) const UDP_GRO: libc::c_int = 104;
pub(crate) const UDP_NO_CHECK6_RX: libc::c_int = 102;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A socket that neither blocks nor is inherited.
pub(crate) fn socket(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed; the descriptor is fresh and nobody else owns it.
    unsafe {
        let fd = check(libc::socket(domain, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, protocol))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Sets an integer option.
pub(crate) fn set_option(
    fd: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    set_option_to(fd, level, name, &value)
}

/// Sets an option of type `T`, a plain C structure.
pub(crate) fn set_option_to<T: Copy>(
    fd: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    unsafe {
        let value = std::ptr::from_ref(value).cast();
        #[expect(clippy::cast_possible_truncation, reason = "a few octets")]
        check(libc::setsockopt(fd.as_raw_fd(), level, name, value, size_of::<T>() as u32))?;
    }
    Ok(())
}

/// Reads an integer option.
pub(crate) fn option(fd: &impl AsRawFd, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value = 0;
    #[expect(clippy::cast_possible_truncation, reason = "four")]
    let mut length = size_of::<libc::c_int>() as u32;
    // SAFETY: the pointers describe `value` and `length`, which outlive the call.
    unsafe {
        let place = std::ptr::from_mut(&mut value).cast();
        check(libc::getsockopt(fd.as_raw_fd(), level, name, place, &mut length))?;
    }
    Ok(value)
}

/// Socket buffers: as many octets as the kernel lets us have of this.
const SOCKET_BUFFER: libc::c_int = 16 << 20;

/// Makes a socket's buffer large: `forced` where that is allowed, `name` elsewhere.
pub(crate) fn enlarge(fd: &impl AsRawFd, name: libc::c_int, forced: libc::c_int) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, forced, SOCKET_BUFFER)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, name, SOCKET_BUFFER))
}

/// Octets that what a socket has not yet been asked for may take, with each packet's bookkeeping.
pub(crate) fn receive_buffer(fd: &impl AsRawFd) -> u64 {
    option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF).ok().and_then(|octets| octets.try_into().ok()).unwrap_or(0)
}

/// A UDP socket with a large buffer for what it sends, none of which is fragmented.
pub(crate) fn sending_socket(v6: bool) -> io::Result<OwnedFd> {
    let socket = socket(if v6 { libc::AF_INET6 } else { libc::AF_INET }, libc::SOCK_DGRAM, 0)?;
    enlarge(&socket, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE)?;
    if v6 {
        set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        set_option(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)?;
    } else {
        set_option(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)?;
    }
    Ok(socket)
}

/// The port that a socket is bound to.
pub(crate) fn local_port(fd: &impl AsRawFd) -> io::Result<u16> {
    let mut address = RawAddress::empty();
    // SAFETY: the pointers describe `address`, which outlives the call.
    unsafe {
        let place = std::ptr::from_mut(&mut address.storage).cast();
        check(libc::getsockname(fd.as_raw_fd(), place, &mut address.length))?;
    }
    address.get().map(|(_, port)| port).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// A socket address in the kernel's form.
#[derive(Clone, Copy)]
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    length: u32,
}

impl RawAddress {
    /// Room for any.
    pub(crate) fn empty() -> Self {
        // SAFETY: all zeros is a valid sockaddr_storage.
        let storage = unsafe { std::mem::zeroed() };
        #[expect(clippy::cast_possible_truncation, reason = "128")]
        let length = size_of::<libc::sockaddr_storage>() as u32;
        Self { storage, length }
    }

    #[expect(clippy::cast_possible_truncation, reason = "constants of C")]
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut raw = Self::empty();
        match address {
            SocketAddr::V4(address) => {
                let inner = libc::sockaddr_in {
                    sin_family: libc::AF_INET as u16,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                    sin_zero: [0; 8],
                };
                // SAFETY: a sockaddr_storage has room and alignment for every address.
                unsafe { std::ptr::from_mut(&mut raw.storage).cast::<libc::sockaddr_in>().write(inner) };
                raw.length = size_of::<libc::sockaddr_in>() as u32;
            }
            SocketAddr::V6(address) => {
                let inner = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as u16,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                // SAFETY: as above.
                unsafe { std::ptr::from_mut(&mut raw.storage).cast::<libc::sockaddr_in6>().write(inner) };
                raw.length = size_of::<libc::sockaddr_in6>() as u32;
            }
        }
        raw
    }

    /// The IP address and port, if it is one of those.
    pub(crate) fn get(&self) -> Option<(IpAddr, u16)> {
        match i32::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that it is a sockaddr_in, for which a sockaddr_storage is large enough.
                let inner = unsafe { std::ptr::from_ref(&self.storage).cast::<libc::sockaddr_in>().read() };
                let ip = Ipv4Addr::from(inner.sin_addr.s_addr.to_ne_bytes());
                Some((ip.into(), u16::from_be(inner.sin_port)))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let inner = unsafe { std::ptr::from_ref(&self.storage).cast::<libc::sockaddr_in6>().read() };
                Some((Ipv6Addr::from(inner.sin6_addr.s6_addr).into(), u16::from_be(inner.sin6_port)))
            }
            _ => None,
        }
    }

    /// The number of the interface of a link-local address; else zero.
    fn scope(&self) -> u32 {
        if i32::from(self.storage.ss_family) != libc::AF_INET6 {
            return 0;
        }
        // SAFETY: the family says that it is a sockaddr_in6, for which a sockaddr_storage is large enough.
        unsafe { std::ptr::from_ref(&self.storage).cast::<libc::sockaddr_in6>().read().sin6_scope_id }
    }

    pub(crate) fn bind(&self, fd: &impl AsRawFd) -> io::Result<()> {
        // SAFETY: the pointer and the length describe `storage`, which outlives the call.
        unsafe {
            let address = std::ptr::from_ref(&self.storage).cast();
            check(libc::bind(fd.as_raw_fd(), address, self.length))?;
        }
        Ok(())
    }

    pub(crate) fn connect(&self, fd: &impl AsRawFd) -> io::Result<()> {
        // SAFETY: as above.
        unsafe {
            let address = std::ptr::from_ref(&self.storage).cast();
            check(libc::connect(fd.as_raw_fd(), address, self.length))?;
        }
        Ok(())
    }
}

/// Room for the control messages of one datagram.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(crate) struct Control([u8; 96]);

impl Control {
    pub(crate) const EMPTY: Self = Self([0; 96]);
}

/// Writes the control messages for one outgoing run; gives their octets.
pub(crate) fn write_control(
    control: &mut Control,
    segment: Option<u16>,
    class: Option<(bool, libc::c_int)>,
) -> usize {
    let mut used = 0;
    let mut put = |level: libc::c_int, kind: libc::c_int, octets: &[u8]| {
        #[expect(clippy::cast_possible_truncation, reason = "a few octets")]
        let length = octets.len() as u32;
        // SAFETY: `CMSG_LEN` and `CMSG_SPACE` compute; three messages of at most 4 octets take 72 of the 96 octets, and
        // the header is written at a multiple of 8, as the type of the buffer is aligned.
        unsafe {
            let header = control.0.as_mut_ptr().add(used).cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = libc::CMSG_LEN(length) as usize;
            libc::CMSG_DATA(header).copy_from_nonoverlapping(octets.as_ptr(), octets.len());
            used += libc::CMSG_SPACE(length) as usize;
        }
    };
    if let Some(segment) = segment {
        put(libc::SOL_UDP, UDP_SEGMENT, &segment.to_ne_bytes());
    }
    match class {
        Some((false, class)) => put(libc::IPPROTO_IP, libc::IP_TOS, &class.to_ne_bytes()),
        Some((true, class)) => put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, &class.to_ne_bytes()),
        None => {}
    }
    used
}

/// What the control messages of a received datagram say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Octets of each datagram of a run.
    pub(crate) segment: Option<usize>,
    /// Type of service or traffic class.
    pub(crate) class: u8,
    /// Datagrams that the socket dropped since it was made.
    pub(crate) dropped: Option<u32>,
}

/// Pieces of messages, gathered for one call.
#[derive(Default)]
pub(crate) struct Pieces(Vec<libc::iovec>);

// SAFETY: the pointers within are used between the gathering and the call, by who gathered them; what stays behind
// afterwards is never followed.
unsafe impl Send for Pieces {}

impl Pieces {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends octets, which are to outlive the call.
    pub(crate) fn push(&mut self, octets: &[u8]) {
        self.0.push(libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() });
    }

    pub(crate) fn get(&self) -> &[libc::iovec] {
        &self.0
    }
}

/// Many messages received or sent by one call. The vectors have one length.
pub(crate) struct Messages {
    pub(crate) headers: Vec<libc::mmsghdr>,
    pub(crate) addresses: Vec<RawAddress>,
    pub(crate) controls: Vec<Control>,
    pub(crate) pieces: Vec<libc::iovec>,
}

// SAFETY: the pointers within point into the other vectors and into buffers owned beside it; they are set anew before
// each call.
unsafe impl Send for Messages {}

impl Messages {
    pub(crate) fn new(count: usize) -> Self {
        // SAFETY: all zeros is a valid mmsghdr and iovec.
        let (header, piece) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        Self {
            headers: vec![header; count],
            addresses: vec![RawAddress::empty(); count],
            controls: vec![Control::EMPTY; count],
            pieces: vec![piece; count],
        }
    }

    /// Receives into `buffers`, each of `size` octets, as many as there are messages; gives how many came.
    pub(crate) fn receive(&mut self, fd: RawFd, buffers: &mut [u8], size: usize) -> io::Result<usize> {
        for (index, buffer) in buffers.chunks_exact_mut(size).take(self.headers.len()).enumerate() {
            self.pieces[index] = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let header = &mut self.headers[index].msg_hdr;
            header.msg_name = std::ptr::from_mut(&mut self.addresses[index].storage).cast();
            #[expect(clippy::cast_possible_truncation, reason = "128")]
            {
                header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            }
            header.msg_iov = &raw mut self.pieces[index];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[index].0.as_mut_ptr().cast();
            header.msg_controllen = self.controls[index].0.len();
            header.msg_flags = 0;
        }
        let count = self.headers.len().min(buffers.len() / size);
        // SAFETY: `count` headers have been filled in above; all that they point to outlives the call. One message is
        // cheaper by the call for one.
        let received = unsafe {
            if let [one] = &mut self.headers[..count] {
                let length = libc::recvmsg(fd, &raw mut one.msg_hdr, libc::MSG_DONTWAIT);
                one.msg_len = u32::try_from(length).unwrap_or(0);
                if length < 0 { -1 } else { 1 }
            } else {
                #[expect(clippy::cast_possible_truncation, reason = "a few")]
                libc::recvmmsg(
                    fd,
                    self.headers.as_mut_ptr(),
                    count as u32,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            }
        };
        match check(received) {
            #[expect(clippy::cast_sign_loss, reason = "checked")]
            Ok(received) => Ok(received as usize),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Octets, sender and control messages of message `index` of the last call; `None` where it was cut off.
    pub(crate) fn told(&self, index: usize) -> Option<(usize, IpAddr, u16, Told)> {
        let header = &self.headers[index];
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return None;
        }
        let (address, port) = self.addresses[index].get()?;
        let mut told = Told::default();
        // SAFETY: the kernel has written `msg_controllen` octets of well-formed messages into the control buffer;
        // the macros walk it, and the data are read without assuming alignment.
        unsafe {
            let mut next = libc::CMSG_FIRSTHDR(&raw const header.msg_hdr);
            while let Some(message) = next.as_ref() {
                let data = libc::CMSG_DATA(message);
                match (message.cmsg_level, message.cmsg_type) {
                    (libc::SOL_UDP, UDP_GRO) => {
                        told.segment = usize::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
                    }
                    (libc::IPPROTO_IP, libc::IP_TOS) => told.class = data.read(),
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        told.class = data.cast::<libc::c_int>().read_unaligned().to_le_bytes()[0];
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                        told.dropped = Some(data.cast::<u32>().read_unaligned());
                    }
                    _ => {}
                }
                next = libc::CMSG_NXTHDR(&raw const header.msg_hdr, message);
            }
        }
        Some((header.msg_len as usize, address, port, told))
    }

    /// Sets message `index` up for sending `pieces`, which outlive the next [`send`](Self::send); to where the socket is
    /// connected if not said.
    pub(crate) fn prepare(
        &mut self,
        index: usize,
        to: Option<&RawAddress>,
        pieces: &[libc::iovec],
        segment: Option<u16>,
        class: Option<(bool, libc::c_int)>,
    ) {
        let control = write_control(&mut self.controls[index], segment, class);
        let header = &mut self.headers[index].msg_hdr;
        (header.msg_name, header.msg_namelen) = (std::ptr::null_mut(), 0);
        if let Some(to) = to {
            self.addresses[index] = *to;
            header.msg_name = std::ptr::from_mut(&mut self.addresses[index].storage).cast();
            header.msg_namelen = to.length;
        }
        header.msg_iov = pieces.as_ptr().cast_mut();
        header.msg_iovlen = pieces.len();
        header.msg_control =
            if control == 0 { std::ptr::null_mut() } else { self.controls[index].0.as_mut_ptr().cast() };
        header.msg_controllen = control;
        header.msg_flags = 0;
    }

    /// The same for `octets` in one piece, which outlive the next [`send`](Self::send).
    pub(crate) fn prepare_one(
        &mut self,
        index: usize,
        to: Option<&RawAddress>,
        octets: &[u8],
        segment: Option<u16>,
        class: Option<(bool, libc::c_int)>,
    ) {
        self.pieces[index] =
            libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
        self.prepare(index, to, &[], segment, class);
        let header = &mut self.headers[index].msg_hdr;
        (header.msg_iov, header.msg_iovlen) = (&raw mut self.pieces[index], 1);
    }

    /// Sends messages `from..to`, which have been prepared; gives how many were.
    ///
    /// # Safety
    /// What their pieces point to must be alive and not be written to.
    pub(crate) unsafe fn send(&mut self, fd: RawFd, from: usize, to: usize) -> io::Result<usize> {
        let headers = &mut self.headers[from..to];
        // SAFETY: the headers have been filled in by `prepare` and point into vectors that have not moved since; the
        // caller answers for the pieces.
        let sent = unsafe {
            if let [one] = headers {
                let header = &one.msg_hdr;
                let sent = if header.msg_iovlen == 1 && header.msg_controllen == 0 {
                    // A short packet is one piece, and the call for that has less to look at.
                    let piece = &*header.msg_iov;
                    let to = header.msg_name.cast();
                    libc::sendto(
                        fd,
                        piece.iov_base,
                        piece.iov_len,
                        libc::MSG_DONTWAIT,
                        to,
                        header.msg_namelen,
                    )
                } else {
                    libc::sendmsg(fd, header, libc::MSG_DONTWAIT)
                };
                if sent < 0 { -1 } else { 1 }
            } else {
                #[expect(clippy::cast_possible_truncation, reason = "a few")]
                libc::sendmmsg(fd, headers.as_mut_ptr(), headers.len() as u32, libc::MSG_DONTWAIT)
            }
        };
        #[expect(clippy::cast_sign_loss, reason = "checked")]
        check(sent).map(|sent| sent as usize)
    }
}

/// Waits until one of `fds` is readable (or writable, where so marked), or the time is over; `None`: for ever.
pub(crate) fn wait(fds: &[(RawFd, bool)], timeout: Option<Duration>) -> io::Result<bool> {
    let mut polled: Vec<libc::pollfd> = fds
        .iter()
        .map(|&(fd, write)| libc::pollfd {
            fd,
            events: if write { libc::POLLOUT } else { libc::POLLIN },
            revents: 0,
        })
        .collect();
    let time = timeout.map(|timeout| libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pointers describe `polled` and `time`, which outlive the call.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), polled.len() as u64, time, std::ptr::null()) };
    match check(ready) {
        Ok(ready) => Ok(ready > 0),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

/// Receives one datagram from a Unix socket that passes credentials; gives its octets and the sender's user. `None`:
/// there is none.
pub(crate) fn receive_with_user(fd: RawFd, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u32>)>> {
    #[expect(clippy::cast_possible_truncation, reason = "three words")]
    const USER: libc::c_uint = size_of::<libc::ucred>() as libc::c_uint;
    let mut control = Control::EMPTY;
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeros is a valid msghdr; its pointers describe `piece` and `control`, which outlive the call; the
    // kernel's control messages are well formed and read without assuming alignment.
    unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        // Room for the credentials alone, which come first: descriptors that somebody sends along are dropped.
        header.msg_controllen = libc::CMSG_SPACE(USER) as usize;
        let length = libc::recvmsg(fd, &raw mut header, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC);
        if length < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        let mut user = None;
        if let Some(message) = libc::CMSG_FIRSTHDR(&raw const header).as_ref()
            && (message.cmsg_level, message.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS)
        {
            user = Some(libc::CMSG_DATA(message).cast::<libc::ucred>().read_unaligned().uid);
        }
        Ok(Some((length.cast_unsigned(), user)))
    }
}

/// Lets this thread's sleeps end when they are to, not up to 50 µs later with those of others.
pub(crate) fn wake_on_time() {
    // SAFETY: no pointers are passed. It cannot fail, and if it did, pacing would only be coarser.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0u64, 0u64, 0u64) };
}

/// How often the kernel took the core from the calling thread for another; 0 where it does not say.
pub(crate) fn times_preempted() -> u64 {
    // SAFETY: `rusage` is integers, for which zeros do, and the call writes no more than one of it.
    let (said, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), usage)
    };
    if said == 0 { usage.ru_nivcsw.unsigned_abs() } else { 0 }
}

/// The user that this process runs as.
pub(crate) fn user() -> u32 {
    // SAFETY: it has no requirements and cannot fail.
    unsafe { libc::geteuid() }
}

/// The user at the other end of a Unix stream socket.
pub(crate) fn peer_user(fd: &impl AsRawFd) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    #[expect(clippy::cast_possible_truncation, reason = "twelve")]
    let mut length = size_of::<libc::ucred>() as u32;
    // SAFETY: the pointers describe `peer` and `length`, which outlive the call.
    unsafe {
        let place = std::ptr::from_mut(&mut peer).cast();
        check(libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut length))?;
    }
    Ok(peer.uid)
}

/// A counter that others can wait for as for a socket.
#[derive(Debug)]
pub(crate) struct EventFd(OwnedFd);

impl EventFd {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the descriptor is fresh.
        unsafe {
            let fd = check(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// Makes it readable.
    pub(crate) fn signal(&self) {
        self.add(1);
    }

    fn add(&self, signals: u64) {
        let signals = signals.to_ne_bytes();
        // SAFETY: eight octets are given. It fails only where the counter is at its end, and then it is readable.
        unsafe { libc::write(self.0.as_raw_fd(), signals.as_ptr().cast(), signals.len()) };
    }

    /// Makes it unreadable; whether it was readable.
    pub(crate) fn clear(&self) -> bool {
        self.taken() > 0
    }

    /// Takes one signal of those that have been given; whether there was any.
    pub(crate) fn take(&self) -> bool {
        let taken = self.taken();
        if taken > 1 {
            self.add(taken - 1);
        }
        taken > 0
    }

    /// Takes all signals; gives how many.
    fn taken(&self) -> u64 {
        let mut count = [0u8; 8];
        // SAFETY: eight octets of room are given.
        let read = unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        if read == 8 { u64::from_ne_bytes(count) } else { 0 }
    }
}

impl AsRawFd for EventFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// An address of this host.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) name: std::ffi::CString,
    pub(crate) address: IpAddr,
    pub(crate) is_loopback: bool,
    /// The interface's number, of a link-local address; of others zero.
    pub(crate) scope: u32,
}

/// An address of this host to bind to. A link-local one tells nothing without its interface, and it is the first that has it; a
/// socket that is bound so sends to link-local addresses on that link.
pub(crate) fn own(address: IpAddr, port: u16) -> io::Result<SocketAddr> {
    match address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            let known = interfaces()?;
            let owner = known.iter().find(|it| it.address == address);
            // The kernel would ask for an interface, and there is none to name.
            let owner = owner.ok_or_else(|| io::Error::from_raw_os_error(libc::EADDRNOTAVAIL))?;
            Ok(SocketAddrV6::new(v6, port, 0, owner.scope).into())
        }
        _ => Ok(SocketAddr::new(address, port)),
    }
}

/// The addresses of this host, with the interfaces that have them.
pub(crate) fn interfaces() -> io::Result<Vec<Interface>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: `list` is a place for the list, which is freed below.
    check(unsafe { libc::getifaddrs(&raw mut list) })?;
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: the kernel's list is well formed and lives until it is freed; names end with a zero.
    while let Some(entry) = unsafe { next.as_ref() } {
        if !entry.ifa_addr.is_null() {
            let mut raw = RawAddress::empty();
            // SAFETY: the address is as long as its family says.
            unsafe {
                let length = match i32::from((*entry.ifa_addr).sa_family) {
                    libc::AF_INET => size_of::<libc::sockaddr_in>(),
                    libc::AF_INET6 => size_of::<libc::sockaddr_in6>(),
                    _ => 0,
                };
                let place = std::ptr::from_mut(&mut raw.storage).cast::<u8>();
                place.copy_from_nonoverlapping(entry.ifa_addr.cast(), length);
            }
            if let Some((address, _)) = raw.get() {
                // SAFETY: as above.
                let name = unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) }.to_owned();
                let is_loopback = entry.ifa_flags & (libc::IFF_LOOPBACK as u32) != 0;
                found.push(Interface { name, address, is_loopback, scope: raw.scope() });
            }
        }
        next = entry.ifa_next;
    }
    // SAFETY: it came from `getifaddrs` and is not used any more.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// The MTU of the interface that has `address`; `None` where there is none.
pub(crate) fn mtu_of(address: IpAddr) -> Option<u32> {
    let known = interfaces().ok()?;
    // All of 127.0.0.0/8 is the loopback interface's.
    let has = |it: &&Interface| it.address == address || it.is_loopback && address.is_loopback();
    let name = &known.iter().find(has)?.name;
    let probe = socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    // SAFETY: all zeros is a valid ifreq; the name is cut to its room; the call fills in the MTU.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (place, octet) in request.ifr_name.iter_mut().zip(name.as_bytes().iter().take(15)) {
            *place = octet.cast_signed();
        }
        check(libc::ioctl(probe.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request)).ok()?;
        u32::try_from(request.ifr_ifru.ifru_mtu).ok()
    }
}

/// Attaches a classic BPF program.
pub(crate) fn attach(fd: &impl AsRawFd, name: libc::c_int, program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        #[expect(clippy::cast_possible_truncation, reason = "a few instructions")]
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    set_option_to(fd, libc::SOL_SOCKET, name, &program)
}

impl EventFd {
    /// The descriptor, to be waited for.
    pub(crate) fn borrow(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }
}
