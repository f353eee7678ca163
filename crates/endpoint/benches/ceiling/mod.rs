//! What RoCEv2 over UDP sockets could give at most: bare sockets, and of the protocol only what no endpoint can do without.
//!
//! Each packet has its headers and its ICRC, which the sender computes and the receiver checks, and its payload is put in
//! its place once it has been checked. The packets form runs as their lengths allow: a message's first one, longer
//! by a RETH, begins one that ends with the next. There is no transport: no acknowledgement, no window, no queue pair, no lock, no request.

use crate::ROUND;
use crate::bare::{Bare, bare_pair, cpu_seconds};
use crate::icrc::{self, Flow, Heads, Id, Solver};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// Octets of payload that are sent before any is received, as the endpoint has it.
const BURST: usize = 256 << 10;
/// Octets after which what was put together is sent before another run begins, as the endpoint has it.
const ENOUGH: usize = 128 << 10;
const BTH: usize = 12;
const RETH: usize = 16;
const ICRC: usize = 4;
const PORT: u16 = 4791;

pub(crate) struct Ceiling {
    sockets: Bare,
    flow: Flow,
    data: Vec<u8>,
    region: Vec<u8>,
    arena: Vec<u8>,
    buffer: Vec<u8>,
    mtu: usize,
    message: usize,
    lone: bool,
}

/// Packets that are sent as one: of one length, but for a shorter last one.
struct Run {
    segment: usize,
    packets: usize,
    octets: usize,
    /// Where it begins.
    first: usize,
}

impl Run {
    /// Whether a packet of `octets` cannot join it.
    fn is_closed(&self, octets: usize) -> bool {
        let has_short_end = self.octets < self.packets * self.segment;
        has_short_end || octets > self.segment || self.packets == 64 || self.octets + octets > 65_000
    }
}

impl Ceiling {
    /// For messages of `message` octets, `depth` of them in memory on either side, in packets of `mtu`.
    pub(crate) fn new(here: IpAddr, mtu: usize, message: usize, depth: usize, lone: bool) -> Self {
        let memory = message * depth;
        Self {
            sockets: bare_pair(here, None),
            flow: Flow::new(here, here),
            data: vec![1; memory],
            region: vec![0; memory],
            arena: vec![0; ENOUGH + (1 << 16)],
            buffer: vec![0; 1 << 16],
            mtu,
            message,
            lone,
        }
    }

    /// Payload in Gb/s.
    pub(crate) fn blast(&mut self) -> f64 {
        let (begin, cpu) = (Instant::now(), cpu_seconds());
        let (mut sent, mut placed, mut solver) = (0, 0, Solver::default());
        while begin.elapsed() < ROUND {
            self.send(sent);
            sent += BURST;
            self.receive(&mut placed, &mut solver);
        }
        assert_eq!(sent, placed, "a socket holds a burst");
        placed as f64 * 8.0 / (cpu_seconds() - cpu) / 1e9
    }

    /// Sends a burst, the first octet of which is number `sent` of all.
    fn send(&mut self, sent: usize) {
        let mut runs: Vec<Run> = Vec::with_capacity(64);
        let (mut used, mut heads) = (0, Heads::default());
        for at in (sent..sent + BURST).step_by(self.mtu) {
            let begins = at % self.message == 0 || self.lone;
            let headers = BTH + if begins { RETH } else { 0 };
            let octets = headers + self.mtu + ICRC;
            if runs.last().is_none_or(|run| run.is_closed(octets)) {
                if used >= ENOUGH {
                    self.emit(&mut runs);
                    used = 0;
                }
                runs.push(Run { segment: octets, packets: 0, octets: 0, first: used });
            }
            let Some(run) = runs.last_mut() else { continue };
            let id = u16::try_from(run.packets).unwrap_or(0);
            (run.packets, run.octets) = (run.packets + 1, run.octets + octets);
            let (front, rest) = self.arena[used..used + octets].split_at_mut(headers);
            front.fill(0);
            front[8..12].copy_from_slice(&u32::try_from(at / self.mtu).unwrap_or(0).to_be_bytes());
            let payload = &self.data[at % self.data.len()..][..self.mtu];
            let crc = heads.head(&self.flow, octets, id, PORT);
            let (place, end) = rest.split_at_mut(self.mtu);
            let crc = icrc::copy_packet(crc, front, 0, payload, place);
            end.copy_from_slice(&crc.to_le_bytes());
            used += octets;
        }
        self.emit(&mut runs);
    }

    /// Sends runs.
    fn emit(&mut self, runs: &mut Vec<Run>) {
        let mut controls = [[0u64; 4]; 64];
        let mut pieces: Vec<libc::iovec> = runs.iter().map(|run| self.piece(run)).collect();
        let messages: Vec<libc::mmsghdr> =
            runs.iter().zip(&mut pieces).zip(&mut controls).map(header).collect();
        let mut messages = &messages[..];
        while !messages.is_empty() {
            let count = u32::try_from(messages.len()).unwrap_or(0);
            // SAFETY: all that the headers point to outlives the call, which writes their lengths only.
            let sent = unsafe {
                libc::sendmmsg(self.sockets.from.as_raw_fd(), messages.as_ptr().cast_mut(), count, 0)
            };
            messages = &messages[usize::try_from(sent).unwrap()..];
        }
        runs.clear();
    }

    fn piece(&self, run: &Run) -> libc::iovec {
        let octets = &self.arena[run.first..run.first + run.octets];
        libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() }
    }

    /// Receives, checks and places what is there.
    fn receive(&mut self, placed: &mut usize, solver: &mut Solver) {
        let mut control = [0u64; 8];
        loop {
            let mut piece =
                libc::iovec { iov_base: self.buffer.as_mut_ptr().cast(), iov_len: self.buffer.len() };
            // SAFETY: zeros are a valid header; what it points to outlives the call; the kernel's control message is
            // well formed.
            let (length, segment) = unsafe {
                let mut header: libc::msghdr = std::mem::zeroed();
                header.msg_iov = &raw mut piece;
                header.msg_iovlen = 1;
                header.msg_control = control.as_mut_ptr().cast();
                header.msg_controllen = size_of_val(&control);
                let length = libc::recvmsg(self.sockets.to.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT);
                let told = libc::CMSG_FIRSTHDR(&raw const header);
                let segment =
                    told.as_ref().map(|told| libc::CMSG_DATA(told).cast::<libc::c_int>().read_unaligned());
                (length, segment)
            };
            let Ok(length) = usize::try_from(length) else { return };
            let segment = segment.map_or(length, |segment| usize::try_from(segment).unwrap_or(length));
            for (index, packet) in (0u16..).zip(self.buffer[..length].chunks(segment)) {
                let id = Id::Guess(index);
                assert_eq!(icrc::judge(&self.flow, id, PORT, packet, 0, solver), Some(index));
                let end = packet.len() - ICRC;
                let place = *placed % self.region.len();
                self.region[place..place + self.mtu].copy_from_slice(&packet[end - self.mtu..end]);
                *placed += self.mtu;
            }
        }
    }
}

/// The header of a message for `sendmmsg`, with the length of its packets in `control` where there are several.
fn header(((run, piece), control): ((&Run, &mut libc::iovec), &mut [u64; 4])) -> libc::mmsghdr {
    // SAFETY: zeros are a valid header, and the control buffer has room for one message.
    unsafe {
        let mut message: libc::mmsghdr = std::mem::zeroed();
        let header = &mut message.msg_hdr;
        (header.msg_iov, header.msg_iovlen) = (std::ptr::from_mut(piece), 1);
        if run.packets > 1 {
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE(2) as usize;
            let told = control.as_mut_ptr().cast::<libc::cmsghdr>();
            (*told).cmsg_level = libc::SOL_UDP;
            (*told).cmsg_type = 103;
            (*told).cmsg_len = libc::CMSG_LEN(2) as usize;
            let segment = u16::try_from(run.segment).unwrap_or(0);
            libc::CMSG_DATA(told).cast::<u16>().write_unaligned(segment);
        }
        message
    }
}
