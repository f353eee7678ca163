//! What signals do to who waits for an event of RDMA-CM.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

use roci_verbs::cm::abi::port_space;
use roci_verbs::cm::channel::*;
use roci_verbs::cm::connect::*;
use roci_verbs::cm::id::*;
use roci_verbs::cm::resolve::*;
use std::mem::zeroed;
use std::net::Ipv4Addr;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::time::Duration;

const NEAR: Ipv4Addr = Ipv4Addr::new(127, 0, 5, 5);

extern "C" fn handle(_signal: i32) {}

/// What is said of a thread in a line of its status (proc(5)).
fn said<'a>(status: &'a str, key: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim()
}

/// tgtd takes SIGUSR2 by a descriptor (signalfd(2)), for which it has blocked it in all threads that it knows.
#[test]
fn no_thread_of_the_library_takes_a_signal_of_the_program() {
    unsafe {
        std::env::set_var("ROCI_DEVICES", NEAR.to_string());
        let (channel, mut id) = (rdma_create_event_channel(), null_mut());
        assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
        let mut at: libc::sockaddr_in = zeroed();
        at.sin_family = 2;
        at.sin_addr.s_addr = u32::from(NEAR).to_be();
        assert_eq!(rdma_bind_addr(id, (&raw mut at).cast()), 0);
        assert_eq!(rdma_listen(id, 1), 0);
        // They have their names a moment after they begin.
        let begin = std::time::Instant::now();
        let ours = loop {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
            let mut ours: Vec<_> = tasks.filter_map(|task| status(task.unwrap())).collect();
            ours.retain(|status| said(status, "Name:").starts_with("roci-"));
            let is_there = |name| ours.iter().any(|status| said(status, "Name:") == name);
            if ["roci-cm", "roci-rdmacm", "roci-shard"].into_iter().all(is_there) {
                break ours;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{ours:?}");
        };
        for status in &ours {
            let blocked = u64::from_str_radix(said(status, "SigBlk:"), 16).unwrap();
            let asked = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGCHLD, libc::SIGALRM];
            assert!(asked.into_iter().all(|signal| blocked & 1 << (signal - 1) != 0), "{status}");
        }
        assert_eq!(rdma_destroy_id(id), 0);
        rdma_destroy_event_channel(channel);
    }
}

#[test]
fn who_waits_for_an_event_goes_on_after_signals_whose_handlers_say_so_and_no_others() {
    unsafe {
        std::env::set_var("ROCI_DEVICES", NEAR.to_string());
        for (signal, goes_on) in [(libc::SIGUSR1, true), (libc::SIGUSR2, false)] {
            let (channel, mut id) = (rdma_create_event_channel(), null_mut());
            assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = handle as extern "C" fn(i32) as usize;
            action.sa_flags = if goes_on { libc::SA_RESTART } else { 0 };
            assert_eq!(libc::sigaction(signal, &raw const action, null_mut()), 0);
            let place = channel.expose_provenance();
            let (tell, told) = std::sync::mpsc::channel();
            let waits = std::thread::spawn(move || {
                tell.send(libc::pthread_self()).unwrap();
                let mut got = null_mut();
                match rdma_get_cm_event(with_exposed_provenance_mut(place), &raw mut got) {
                    0 => rdma_ack_cm_event(got),
                    _ => std::io::Error::last_os_error().raw_os_error().unwrap(),
                }
            });
            let thread = told.recv().unwrap();
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(libc::pthread_kill(thread, signal), 0);
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(waits.is_finished(), !goes_on);
            let mut to: libc::sockaddr_in = zeroed();
            (to.sin_family, to.sin_port) = (2, 9);
            to.sin_addr.s_addr = u32::from(NEAR).to_be();
            assert_eq!(rdma_resolve_addr(id, null_mut(), (&raw mut to).cast(), 2000), 0);
            assert_eq!(waits.join().unwrap(), if goes_on { 0 } else { libc::EINTR });
            assert_eq!(rdma_destroy_id(id), 0);
            rdma_destroy_event_channel(channel);
        }
    }
}
