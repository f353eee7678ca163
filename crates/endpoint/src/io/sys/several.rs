//! Many descriptors that are waited for as one.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// So many are told of at once; the others the next time.
const READY_MAX: usize = 16;

/// Descriptors, each with a name; it is readable itself when one of them is (epoll(7)).
#[derive(Debug)]
pub(crate) struct Several(OwnedFd);

impl Several {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers are passed; the descriptor is fresh.
        unsafe {
            let fd = check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    pub(crate) fn add(&self, fd: &impl AsRawFd, name: u64) -> io::Result<()> {
        self.change(libc::EPOLL_CTL_ADD, fd, name)
    }

    /// To be called before a descriptor is closed: a child of this process may have a copy, and then it stays.
    pub(crate) fn remove(&self, fd: &impl AsRawFd) -> io::Result<()> {
        self.change(libc::EPOLL_CTL_DEL, fd, 0)
    }

    fn change(&self, what: libc::c_int, fd: &impl AsRawFd, name: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: name };
        // SAFETY: `event` outlives the call.
        let done =
            check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd.as_raw_fd(), &raw mut event) });
        done.map(drop)
    }

    /// The names of those that are readable now.
    pub(crate) fn ready(&self) -> io::Result<impl Iterator<Item = u64> + use<>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; READY_MAX];
        let room = libc::c_int::try_from(READY_MAX).unwrap_or(1);
        // SAFETY: there is room for as many events as are asked for; it does not wait.
        let count = check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, 0) })?;
        Ok(events.into_iter().take(usize::try_from(count).unwrap_or(0)).map(|event| event.u64))
    }
}

impl AsRawFd for Several {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EventFd, wait};
    use super::*;
    use std::time::Duration;

    #[test]
    fn it_is_readable_as_long_as_one_is_and_knows_nothing_of_those_that_were_removed() {
        let several = Several::new().unwrap();
        let is_readable = || wait(&[(several.as_raw_fd(), false)], Some(Duration::ZERO)).unwrap();
        let fds = [(); 3].map(|()| EventFd::new().unwrap());
        fds.iter().zip(7..).for_each(|(fd, name)| several.add(fd, name).unwrap());
        assert!(!is_readable());
        fds[1].signal();
        assert!(is_readable());
        assert_eq!(several.ready().unwrap().collect::<Vec<_>>(), [8]);
        several.remove(&fds[1]).unwrap();
        assert!(!is_readable() && several.ready().unwrap().next().is_none());
        fds[2].signal();
        assert_eq!(several.ready().unwrap().collect::<Vec<_>>(), [9]);
    }
}
