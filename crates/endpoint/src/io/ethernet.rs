//! Whole Ethernet frames: through a TAP device that is created, or through an interface that exists.
//!
//! Neither has offloads: the kernel splits and sums what it gives to a TAP device, and what a packet socket sees that is not split or
//! summed yet is refused, for it is no frame that a wire could carry.
#![expect(unsafe_code, reason = "system calls")]

use super::sys;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

/// Frames that the system holds for us: as in a NIC's ring, beyond which it drops.
const RING: libc::c_int = 4_096;
/// Octets of an 802.1Q tag.
const TAG: usize = 4;
/// Octets of both addresses.
const ADDRESSES: usize = 12;
const TPID: [u8; 2] = roci_wire::ethernet::VLAN.to_be_bytes();
/// From linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// From linux/ethtool.h: asks for speed and the like, in what has so many halves of a word.
const ETHTOOL_GSET: u32 = 1;
const ETHTOOL_HALVES: usize = 22;
/// From linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Something that frames come from and go to.
#[derive(Debug)]
pub(crate) struct Ethernet {
    file: File,
    /// The interface's number; `None`: a TAP device.
    index: Option<libc::c_uint>,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Nothing is there.
    Nothing,
    /// A frame of so many octets, and when it came by the system's clock, where it tells.
    Frame(usize, Option<Duration>),
    /// What a wire could not carry: longer than the buffer, or not split or summed yet.
    Unfinished,
}

/// An interface's name for the system; an error where it is too long.
fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains(['/', '\0', ' ']) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device's name has 1 to 15 letters"));
    }
    for (place, &octet) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *place = octet.cast_signed() as libc::c_char;
    }
    Ok(request)
}

fn ioctl(fd: RawFd, code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: `request` is an `ifreq`, which is what these requests read and write.
    match unsafe { libc::ioctl(fd, code, std::ptr::from_mut(request)) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Octets that an IP packet may have on the interface `name`.
pub(crate) fn mtu(name: &str) -> io::Result<u32> {
    let mut asked = request(name)?;
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as libc::Ioctl, &mut asked)?;
    // SAFETY: this request fills that field.
    Ok(unsafe { asked.ifr_ifru.ifru_mtu }.unsigned_abs())
}

/// Megabits a second that the interface `name` has been set to; `None`: nobody says.
pub(crate) fn speed(name: &str) -> Option<u32> {
    let mut asked = request(name).ok()?;
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    // `struct ethtool_cmd`: first what is asked for, the speed's lower half behind two more words, its upper half behind four.
    let mut told = [0_u16; ETHTOOL_HALVES];
    let [first, second] = [0, 2]
        .map(|at| u16::from_ne_bytes([ETHTOOL_GSET.to_ne_bytes()[at], ETHTOOL_GSET.to_ne_bytes()[at + 1]]));
    (told[0], told[1]) = (first, second);
    asked.ifr_ifru.ifru_data = told.as_mut_ptr().cast();
    ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut asked).ok()?;
    let speed = u32::from(told[14]) << 16 | u32::from(told[6]);
    (speed != 0 && speed != u32::MAX).then_some(speed)
}

impl Ethernet {
    /// Creates the TAP device `name`, which goes when this does, with so much room for a packet.
    pub(crate) fn tap(name: &str, mtu: u16) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let mut asked = request(name)?;
        #[expect(clippy::cast_possible_truncation, reason = "flags of C")]
        let flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as libc::c_short;
        asked.ifr_ifru.ifru_flags = flags;
        ioctl(file.as_raw_fd(), libc::TUNSETIFF as libc::Ioctl, &mut asked)?;
        let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        asked.ifr_ifru.ifru_mtu = mtu.into();
        ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU as libc::Ioctl, &mut asked)?;
        asked.ifr_ifru.ifru_metric = RING;
        ioctl(socket.as_raw_fd(), libc::SIOCSIFTXQLEN as libc::Ioctl, &mut asked)?;
        Ok(Self { file, index: None })
    }

    /// Opens the interface `name`, which then also hears what is meant for others.
    #[expect(clippy::cast_possible_truncation, reason = "constants of C, and the size of an address")]
    pub(crate) fn interface(name: &str) -> io::Result<Self> {
        request(name)?;
        let text = CString::new(name)?;
        // SAFETY: `text` ends with a zero.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is no such device"));
        }
        let probe = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let mut asked = request(name)?;
        ioctl(probe.as_raw_fd(), libc::SIOCGIFHWADDR as libc::Ioctl, &mut asked)?;
        // SAFETY: this request fills that field.
        if unsafe { asked.ifr_ifru.ifru_hwaddr.sa_family } != libc::ARPHRD_ETHER {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no Ethernet device"));
        }
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        // It hears nothing before it is bound.
        let socket = sys::socket(libc::AF_PACKET, kind, 0)?;
        let _ = sys::enlarge(&socket, libc::SO_RCVBUF, libc::SO_RCVBUFFORCE);
        let _ = sys::enlarge(&socket, libc::SO_SNDBUF, libc::SO_SNDBUFFORCE);
        sys::set_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)?;
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        let member = libc::packet_mreq {
            mr_ifindex: index.cast_signed(),
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        sys::set_option_to(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)?;
        // SAFETY: all zeros are a valid address, whose fields are then set.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = all;
        address.sll_ifindex = index.cast_signed();
        // SAFETY: `address` is a link-layer address of the length that is given.
        let bound = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                std::ptr::from_ref(&address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if bound != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { file: File::from(socket), index: Some(index) })
    }

    /// Reads a frame into `buffer`, if one is there.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Read> {
        let mut came = None;
        let read =
            if self.index.is_none() { (&self.file).read(buffer) } else { self.receive(buffer, &mut came) };
        match read {
            Ok(0) => Ok(Read::Unfinished),
            // A TAP device cuts off what is longer than the buffer.
            Ok(length) if length >= buffer.len() => Ok(Read::Unfinished),
            Ok(length) => Ok(Read::Frame(length, came)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
            Err(error) => Err(error),
        }
    }

    /// From a packet socket, with the tag that the system has taken out of it; 0 for what is unfinished.
    fn receive(&self, buffer: &mut [u8], came: &mut Option<Duration>) -> io::Result<usize> {
        let (_, place) = buffer.split_at_mut(TAG);
        let mut piece = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: place.len() };
        let mut control = [0_u64; 12];
        // SAFETY: all zeros are a valid message header, whose fields are then set.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        // SAFETY: the header names one piece of memory that is ours, and so much of `control`.
        let read = unsafe { libc::recvmsg(self.file.as_raw_fd(), &raw mut header, libc::MSG_TRUNC) };
        let length = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
        if length > place.len() {
            return Ok(0);
        }
        let (mut status, mut tag, mut kind) = (0, 0, TPID);
        // SAFETY: the system has filled `control` up to the length that it has put into the header.
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(&raw const header);
            while let Some(told) = message.as_ref() {
                let data = libc::CMSG_DATA(message);
                match (told.cmsg_level, told.cmsg_type) {
                    (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                        let data = data.cast::<libc::tpacket_auxdata>().read_unaligned();
                        (status, tag) = (data.tp_status, data.tp_vlan_tci);
                        if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
                            kind = data.tp_vlan_tpid.to_be_bytes();
                        }
                    }
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
                        *came = u64::try_from(time.tv_sec).ok().map(|seconds| Duration::new(seconds, nanos));
                    }
                    _ => {}
                }
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
        }
        if status & libc::TP_STATUS_CSUMNOTREADY != 0 {
            return Ok(0);
        }
        if status & libc::TP_STATUS_VLAN_VALID == 0 || length < ADDRESSES {
            buffer.copy_within(TAG..TAG + length, 0);
            return Ok(length);
        }
        buffer.copy_within(TAG..TAG + ADDRESSES, 0);
        buffer[ADDRESSES..ADDRESSES + 2].copy_from_slice(&kind);
        buffer[ADDRESSES + 2..ADDRESSES + TAG].copy_from_slice(&tag.to_be_bytes());
        Ok(length + TAG)
    }

    /// Writes a frame; whether the system took it.
    pub(crate) fn write(&self, frame: &[u8]) -> bool {
        (&self.file).write(frame).is_ok()
    }

    /// Whether the device exists no more, after a read failed with `error`.
    pub(crate) fn is_gone(&self, error: &io::Error) -> bool {
        let Some(index) = self.index else { return error.raw_os_error() == Some(libc::EBADFD) };
        let mut name = [0; libc::IF_NAMESIZE];
        // SAFETY: there is as much room for a name as it may take.
        unsafe { libc::if_indextoname(index, name.as_mut_ptr()) }.is_null()
    }

    /// Frames that the system has dropped since this was asked last, because they came faster than they were read. Of a TAP device nobody
    /// says: it counts them itself.
    #[expect(clippy::cast_possible_truncation, reason = "the size of two words")]
    pub(crate) fn missed(&self) -> u32 {
        if self.index.is_none() {
            return 0;
        }
        // SAFETY: all zeros are valid statistics.
        let mut told: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the pointers describe `told` and its length, which outlive the call.
        let said = unsafe {
            let told = std::ptr::from_mut(&mut told).cast();
            libc::getsockopt(
                self.file.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                told,
                &raw mut length,
            )
        };
        if said == 0 { told.tp_drops } else { 0 }
    }

    /// What becomes readable when a frame is there.
    pub(crate) fn readable(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}
