//! What takes the SENDs: receivers that are not ready.

use super::{CLOSED_LOOP, run};
use roci_lab::results::FlowStatus;
use roci_transport::Status;

/// Sixteen SENDs outstanding at an application that is busy with each for 3 us.
const SENDS: &str = "op = \"send\"\nmessage = \"1KB\"\ndepth = 16\ncount = 1000\n\
                     [transport]\ncontrol = \"none\"\n[application]\nrx_depth = 4\nrx_time = \"3us\"\n";

#[test]
fn senders_wait_for_an_application_that_is_slower_than_they_are_with_every_recovery() {
    for recovery in ["go-back-n", "irn", "srnic", "reno", "newreno", "sack", "ndp"] {
        let text = format!("{CLOSED_LOOP}{SENDS}");
        let flow = &run(&text, &[("transport.recovery", recovery)]).flows[0];
        assert_eq!(flow.status, FlowStatus::OK, "{recovery}");
        let busy = flow.fct().unwrap().as_secs_f64() / (1_000.0 * 3e-6);
        // It waits for an RNR timer of 10 us while four messages, 12 us, are taken; the last messages need no taking.
        assert!((0.97..1.4).contains(&busy), "{recovery}: {busy}");
        assert!(flow.rnr_naks > 100 && flow.timeouts == 0, "{recovery}: {flow:?}");
    }
}

#[test]
fn an_application_that_is_ready_for_each_message_or_quick_enough_answers_no_rnr_nak() {
    let text = format!("{CLOSED_LOOP}{SENDS}");
    for ready in [[("application.rx_depth", "1000")], [("application.rx_time", "0s")]] {
        let flow = &run(&text, &ready).flows[0];
        assert_eq!((flow.status, flow.rnr_naks), (FlowStatus::OK, 0), "{ready:?}");
    }
}

#[test]
fn a_receiver_that_stays_busy_beyond_the_retries_ends_the_flow() {
    let text = format!("{CLOSED_LOOP}{SENDS}");
    let failed = run(&text, &[("application.rx_time", "1ms"), ("transport.rnr_retry", "3")]);
    assert_eq!(failed.flows[0].status, FlowStatus::Completed(Status::RnrRetryCounterExceeded));
    // The first, and three more.
    assert_eq!(failed.flows[0].rnr_naks, 4);
    let patient = run(&text, &[("application.rx_time", "1ms"), ("traffic.0.count", "8")]);
    assert_eq!(patient.flows[0].status, FlowStatus::OK);
}
