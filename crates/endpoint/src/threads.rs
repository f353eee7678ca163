//! Threads of the library's own, in programs of others.
#![expect(unsafe_code, reason = "system calls")]

use std::io;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::thread::JoinHandle;

/// What the processor raises where a thread itself errs, of which nobody else can be told.
const OWN: [libc::c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Begins a thread that takes none of the process's signals. Which of its threads takes one is the program's to say, by blocking it in the
/// others; it does not know of ours, to which the kernel would deliver what all others have blocked (for signalfd(2)), and end the program.
///
/// # Errors
/// What the operating system says.
pub fn spawn(name: &str, does: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let (mut blocked, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: each set is filled in before it is read. A thread begins with what the one that makes it has blocked.
    unsafe {
        libc::sigfillset(blocked.as_mut_ptr());
        for signal in OWN {
            libc::sigdelset(blocked.as_mut_ptr(), signal);
        }
        let changed = libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), before.as_mut_ptr());
        if changed != 0 {
            return Err(io::Error::from_raw_os_error(changed));
        }
        let thread = std::thread::Builder::new().name(name.into()).spawn(does);
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signals that the calling thread has blocked, bit by bit (proc(5)).
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_thread_of_ours_takes_no_signals_and_who_begins_it_takes_those_that_it_took() {
        let (tell, told) = std::sync::mpsc::channel();
        let before = blocked();
        spawn("roci-test", move || tell.send(blocked()).unwrap()).unwrap().join().unwrap();
        assert_eq!(blocked(), before);
        let its = told.recv().unwrap();
        let has = |signal: libc::c_int| its & 1 << (signal - 1) != 0;
        assert!(
            [libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM, libc::SIGALRM, libc::SIGCHLD].into_iter().all(has)
        );
        assert!(!OWN.into_iter().any(has));
    }
}
