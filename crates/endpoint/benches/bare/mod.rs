//! Bare UDP sockets with segmentation offload: what the kernel gives.

pub(crate) mod calls;

use crate::ROUND;
use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// Octets of headers and ICRC in a packet from the middle of a message.
pub(crate) const AROUND: usize = 16;

pub(crate) struct Bare {
    pub(crate) from: UdpSocket,
    pub(crate) to: UdpSocket,
    buffer: Vec<u8>,
}

pub(crate) fn bare_pair(here: IpAddr, segment: Option<usize>) -> Bare {
    let from = UdpSocket::bind((here, 0)).unwrap();
    let to = UdpSocket::bind((here, 0)).unwrap();
    from.connect(to.local_addr().unwrap()).unwrap();
    to.connect(from.local_addr().unwrap()).unwrap();
    for socket in [&from, &to] {
        socket.set_nonblocking(true).unwrap();
        for (level, name, value) in [
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 16 << 20),
            (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 16 << 20),
            (libc::SOL_UDP, 104, 1),
        ] {
            set(socket, level, name, value);
        }
    }
    if let Some(segment) = segment {
        set(&from, libc::SOL_UDP, 103, i32::try_from(segment).unwrap());
    }
    Bare { from, to, buffer: vec![0; 1 << 16] }
}

fn set(socket: &UdpSocket, level: i32, name: i32, value: i32) {
    // SAFETY: the pointer and the length describe `value`.
    unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), 4);
    }
}

impl Bare {
    /// Payload in Gb/s. It walks through `memory` octets on either side, as messages do.
    pub(crate) fn blast(&mut self, mtu: usize, memory: usize) -> f64 {
        let run = (61_440 / mtu) * (mtu + AROUND);
        let size = memory.next_multiple_of(run);
        let data = vec![7u8; size];
        self.buffer.resize(size + (1 << 16), 0);
        let (mut from, mut to) = (0, 0);
        let (begin, cpu, mut octets) = (Instant::now(), cpu_seconds(), 0usize);
        while begin.elapsed() < ROUND {
            for _ in 0..4 {
                self.from.send(&data[from..from + run]).unwrap();
                from = (from + run) % size;
            }
            loop {
                match self.to.recv(&mut self.buffer[to..to + (1 << 16)]) {
                    Ok(received) => {
                        octets += received / (mtu + AROUND) * mtu;
                        to = (to + received) % size;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        octets as f64 * 8.0 / (cpu_seconds() - cpu) / 1e9
    }
}

/// Processor time of this thread: the machine may have other things to do.
pub(crate) fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
