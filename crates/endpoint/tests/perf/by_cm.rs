//! Ends that meet by RDMA-CM.

use crate::{Notes, TURN, options};
use roci_endpoint::perf::{self, Metric, Options, Verb};
use roci_endpoint::{BitsPerSec, Law, Recovery};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server at this address.
fn server(address: &str) -> Options {
    Options {
        rdma_cm: true,
        device: Some(address.parse().unwrap()),
        ..options(Verb::Write, Metric::Bandwidth)
    }
}

/// A client of that server, which it calls `host`, from this address.
fn client(server: &Options, host: &str, address: &str) -> Options {
    let device: IpAddr = address.parse().unwrap();
    Options { host: Some(host.to_owned()), device: Some(device), ..server.clone() }
}

/// Waits up to ten seconds.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let is_so = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        is_so()
    });
    assert!(is_so, "{what}");
}

#[test]
fn a_server_is_found_by_an_ipv4_address_within_ipv6() {
    let _turn = turn();
    let options = server("127.0.0.81");
    let (far, near) = (Notes::default(), Notes::default());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| perf::run(&options, &far));
        until("the server waits", || far.waiting.load(Ordering::SeqCst));
        let done = perf::run(&client(&options, "::ffff:127.0.0.81", "127.0.0.82"), &near);
        far.stop.store(done.is_err(), Ordering::SeqCst);
        assert!(done.is_ok() && server.join().unwrap().is_ok(), "{done:?}");
    });
}

#[test]
fn who_comes_to_a_busy_server_hears_at_once_that_nobody_listens() {
    let _turn = turn();
    let lasts = Options { duration: Some(Duration::from_secs(60)), peak: false, ..server("127.0.0.83") };
    let (far, near, late) = (Notes::default(), Notes::default(), Notes::default());
    std::thread::scope(|scope| {
        let server = scope.spawn(|| perf::run(&lasts, &far));
        until("the server waits", || far.waiting.load(Ordering::SeqCst));
        let first = scope.spawn(|| perf::run(&client(&lasts, "127.0.0.83", "127.0.0.84"), &near));
        until("the ends have met", || far.connected.load(Ordering::SeqCst));
        let begin = Instant::now();
        let second = perf::run(&client(&lasts, "127.0.0.83", "127.0.0.85"), &late);
        let took = begin.elapsed();
        for notes in [&far, &near] {
            notes.stop.store(true, Ordering::SeqCst);
        }
        let ended = [server.join().unwrap(), first.join().unwrap()];
        assert!(ended.iter().all(Result::is_err), "until they were stopped");
        let why = second.unwrap_err().to_string();
        assert!(why.contains("127.0.0.83:") && why.contains("nobody listens at this port"), "{why}");
        assert!(why.contains("or it is busy with another client"), "{why}");
        assert!(took < Duration::from_secs(2), "{took:?}");
    });
}

#[test]
fn recoveries_and_laws_of_ours_have_their_layouts_by_rdma_cm_as_well() {
    let _turn = turn();
    let hpcc = Law::from_settings("hpcc", &[], BitsPerSec::from_gbps(10)).unwrap();
    for (recovery, law) in [(Recovery::Srnic, None), (Recovery::GoBackN, Some(hpcc))] {
        let options = Options { recovery, law, ..server("127.0.0.86") };
        let (far, near) = (Notes::default(), Notes::default());
        std::thread::scope(|scope| {
            let server = scope.spawn(|| perf::run(&options, &far));
            until("the server waits", || far.waiting.load(Ordering::SeqCst));
            let done = perf::run(&client(&options, "127.0.0.86", "127.0.0.87"), &near);
            far.stop.store(done.is_err(), Ordering::SeqCst);
            assert!(done.is_ok() && server.join().unwrap().is_ok(), "{recovery:?}: {done:?}");
        });
        let told = near.counted.lock().unwrap().unwrap().told;
        assert_eq!(told, (recovery == Recovery::GoBackN).then_some(0), "there is no switch");
    }
}
