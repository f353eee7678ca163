//! Who comes to a server over TCP, until one of them turns out to be a client.

use super::handshake::{VERSION_LEN, is_number};
use super::{Event, PerfError, Watch};
use crate::clock::Clock;
use crate::io::sys;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// How often it looks whether it is to end.
const SLICE: Duration = Duration::from_millis(50);
/// More of them have no room: who came first goes.
const GUESTS_MAX: usize = 64;

/// Somebody who has not yet said what it is.
struct Guest {
    stream: TcpStream,
    address: SocketAddr,
    since: Duration,
    said: Vec<u8>,
    has_left: bool,
}

/// What is known of a guest.
#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    /// Nothing yet.
    Open,
    /// It talks as perftest does, of whichever version.
    Client,
    /// It does not; what it did instead.
    Stranger(String),
}

/// Who has said its version: its connection, its address, and what it said.
pub(super) type Client = (TcpStream, SocketAddr, Vec<u8>);

/// Waits until a client has said its version. Strangers are reported and shown out.
pub(super) fn client(
    listener: &TcpListener,
    patience: Duration,
    watch: &dyn Watch,
) -> Result<Client, PerfError> {
    listener.set_nonblocking(true)?;
    let clock = Clock::new();
    let mut guests: Vec<Guest> = Vec::new();
    let mut obstacle = None;
    loop {
        // Who stands before a door that does not open would be seen there again and again.
        let door = (listener.as_raw_fd(), false);
        let door = if obstacle.is_none() { Some(door) } else { None };
        let all = door.into_iter().chain(guests.iter().map(|it| (it.stream.as_raw_fd(), false)));
        sys::wait(&all.collect::<Vec<_>>(), Some(SLICE))?;
        if watch.stopped() {
            return Err(PerfError::Stopped);
        }
        let short = admit(|| open(listener), &mut guests, clock.passed())?;
        let mut place = 0;
        while place < guests.len() {
            guests[place].listen();
            let guest = &guests[place];
            let is_late = clock.passed().saturating_sub(guest.since) >= patience;
            match judge(&guest.said, guest.has_left, is_late) {
                Judgement::Open => place += 1,
                Judgement::Client => {
                    let Guest { stream, address, said, .. } = guests.swap_remove(place);
                    stream.set_nonblocking(false)?;
                    return Ok((stream, address, said));
                }
                Judgement::Stranger(deed) => show_out(&guests.remove(place), &deed, watch),
            }
        }
        if guests.len() > GUESTS_MAX || short.is_some() && !guests.is_empty() {
            show_out(&guests.remove(0), "was one too many that said nothing", watch);
            continue;
        }
        if let (Some(error), None) = (&short, &obstacle) {
            watch.event(Event::Shut(error));
        }
        obstacle = short;
    }
}

fn show_out(guest: &Guest, deed: &str, watch: &dyn Watch) {
    report(guest.address, deed, watch);
}

/// Tells of a stranger.
pub(super) fn report(from: SocketAddr, deed: &str, watch: &dyn Watch) {
    let from = SocketAddr::new(from.ip().to_canonical(), from.port());
    watch.event(Event::Stranger { from, deed });
}

/// Takes in the next, if anybody has come: the system is short of descriptors whether or not, for it looks for one first.
fn open(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    match sys::wait(&[(listener.as_raw_fd(), false)], Some(Duration::ZERO))? {
        true => listener.accept(),
        false => Err(ErrorKind::WouldBlock.into()),
    }
}

/// Takes in all who have come. Gives what keeps one out for now: the system is short of something that others may give back.
fn admit(
    mut accept: impl FnMut() -> io::Result<(TcpStream, SocketAddr)>,
    guests: &mut Vec<Guest>,
    since: Duration,
) -> Result<Option<io::Error>, PerfError> {
    loop {
        match accept() {
            Ok((stream, address)) => {
                stream.set_nonblocking(true)?;
                guests.push(Guest { stream, address, since, said: Vec::new(), has_left: false });
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => return Ok(Some(error)),
                // The socket itself is at fault, and stays so.
                None | Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK) => return Err(error.into()),
                // One who came has gone again, or the way there was lost (accept(2), *Error handling*).
                Some(_) => {}
            },
        }
    }
}

impl Guest {
    /// Hears what it has said, up to a version.
    fn listen(&mut self) {
        let mut octets = [0; VERSION_LEN];
        while self.said.len() < VERSION_LEN && !self.has_left {
            match self.stream.read(&mut octets[self.said.len()..]) {
                Ok(0) => self.has_left = true,
                Ok(more) => {
                    let before = self.said.len();
                    self.said.extend_from_slice(&octets[before..before + more]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.has_left = true,
            }
        }
    }
}

/// What somebody is who said this so far, has perhaps left, and perhaps `is_late`.
fn judge(said: &[u8], has_left: bool, is_late: bool) -> Judgement {
    let word = said.split(|octet| *octet == 0).next().unwrap_or_default();
    // Whatever follows the zero, see `terms`.
    if said.len() == VERSION_LEN && is_number(word) {
        return Judgement::Client;
    }
    let begins_so = word.iter().all(|octet| octet.is_ascii_digit() || *octet == b'.');
    if said.len() < VERSION_LEN && begins_so && !has_left && !is_late {
        return Judgement::Open;
    }
    let word = if word.is_empty() { said } else { word };
    let said = match word.iter().all(|octet| *octet == 0) {
        true if said.is_empty() => "said nothing".to_owned(),
        true => "said octets that are no text".to_owned(),
        false => format!("said {:?}", String::from_utf8_lossy(word)),
    };
    Judgement::Stranger(if has_left { format!("{said} and left") } else { said })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(deed: &str) -> Judgement {
        Judgement::Stranger(deed.to_owned())
    }

    #[test]
    fn who_says_a_version_is_a_client_however_old() {
        for said in
            [b"6.06\0\0\0\0\0\0\0\0\0\0\0\0", b"6.06\0RoCI\x01\0\0\0\0\0\0", b"5.30\0\0\0\0\0\0\0\0\0\0\0\0"]
        {
            assert_eq!(judge(said, false, false), Judgement::Client);
            for part in 0..VERSION_LEN {
                assert_eq!(judge(&said[..part], false, false), Judgement::Open, "it is slow");
            }
        }
    }

    #[test]
    fn who_says_anything_else_is_a_stranger_as_soon_as_that_shows() {
        assert_eq!(judge(b"GET / HTTP/1.1\r\n", false, false), stranger(r#"said "GET / HTTP/1.1\r\n""#));
        assert_eq!(judge(b"hi\n", false, false), stranger(r#"said "hi\n""#));
        assert_eq!(judge(b"6.06", true, false), stranger(r#"said "6.06" and left"#));
        assert_eq!(judge(b"\x16\x03", false, false), stranger(r#"said "\u{16}\u{3}""#));
        assert_eq!(judge(b"1.2.3.4.5.6.7.8.", false, false), stranger(r#"said "1.2.3.4.5.6.7.8.""#));
        assert_eq!(judge(b"inf\0\0\0\0\0\0\0\0\0\0\0\0\0", false, false), stranger(r#"said "inf""#));
        assert_eq!(judge(&[0; VERSION_LEN], false, false), stranger("said octets that are no text"));
    }

    #[test]
    fn who_cannot_be_taken_in_for_now_ends_no_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _visitor = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut guests = Vec::new();
        let mut failing = [libc::ECONNABORTED, libc::ENETDOWN, libc::EMFILE].into_iter();
        let mut accept = || match failing.next() {
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => listener.accept(),
        };
        let obstacle = admit(&mut accept, &mut guests, Duration::ZERO).unwrap();
        assert_eq!(obstacle.and_then(|error| error.raw_os_error()), Some(libc::EMFILE));
        listener.set_nonblocking(true).unwrap();
        assert!(admit(&mut accept, &mut guests, Duration::ZERO).unwrap().is_none());
        assert_eq!(guests.len(), 1);
        let broken = || Err(io::Error::from_raw_os_error(libc::EINVAL));
        assert!(admit(broken, &mut guests, Duration::ZERO).is_err());
    }

    #[test]
    fn who_says_nothing_is_a_stranger_once_it_has_left_or_is_late() {
        assert_eq!(judge(b"", false, false), Judgement::Open);
        assert_eq!(judge(b"", true, false), stranger("said nothing and left"));
        assert_eq!(judge(b"", false, true), stranger("said nothing"));
    }
}
