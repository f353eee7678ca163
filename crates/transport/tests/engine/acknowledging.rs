//! Who acknowledges data that a law hears of: the law with words of its own, or the engine; never both, never nobody.

use crate::pair::{ALL_DEFERRED, Fate, Pair};
use crate::scripts::{MTU, config};
use roci_control::program::Options;
use roci_control::{Class, Image, Law, Programmed};
use roci_transport::{
    Access, Arrival, Deferral, Deferred, Engine, EngineConfig, Pd, QpConfig, Reaction, Resolution, Status,
};
use roci_units::{BitsPerSec, Instant};
use roci_wire::{Cc, Header, Layout, Opcode, Reth};
use std::sync::Arc;

const LINK: BitsPerSec = BitsPerSec::from_gbps(10);

/// An engine with a program of ours, or of the tests of programs.
pub(crate) fn programmed(seed: u64, file: &[u8], initial: &[(&str, &str)]) -> Engine {
    let mut engine = Engine::new(EngineConfig { seed, link: LINK, ..EngineConfig::default() });
    let image = Image::new("program", file, &Options { checked: false, ..Options::default() }).unwrap();
    let fallback = Law::from_settings("dcqcn", &[], LINK).unwrap();
    let mut program = Programmed::new(Arc::new(image), fallback).unwrap();
    for (name, text) in initial {
        program.set_initial(name, text).unwrap();
    }
    assert_eq!(engine.add_law(Law::Program(Box::new(program))), 1);
    engine
}

const PACED: &[u8] = include_bytes!("../../../../firmware/paced.elf");
const CREDIT: &[u8] = include_bytes!("../../../../firmware/credit.elf");
const FAULTS: &[u8] = include_bytes!("../../../control/tests/images/faults.elf");

/// A connection whose two ends run `file`, at once or with everything deferred.
fn running(file: &[u8], initial: &[(&str, &str)], deferred: Deferred, more: QpConfig) -> Pair {
    let config = QpConfig { law: 1, deferred, ..more };
    let engine = |seed| programmed(seed, file, initial);
    let pair = Pair::with_engines(engine(1), engine(2), config, 1);
    if deferred == Deferred::default() { pair } else { pair.late(3) }
}

fn count(story: &[String], what: &str) -> usize {
    story.iter().filter(|word| word.starts_with(what)).count()
}

#[test]
fn data_that_a_law_does_not_acknowledge_is_acknowledged_by_the_engine_once() {
    // The law answers a mark with a CNP and other data with nothing. Coalescing is off where a law hears of data.
    for deferred in [Deferred::default(), ALL_DEFERRED] {
        for ack_every in [1, 4] {
            let mut pair = running(PACED, &[], deferred, QpConfig { ack_every, ..config() });
            pair = pair.fate(5, Fate::Mark).fate(7, Fate::Mark);
            pair.write(1, 0, 4096, 20 * MTU);
            pair.run();
            let story = pair.server.story();
            assert_eq!((count(&story, "ack"), count(&story, "cnp")), (20, 1), "{story:?}");
            assert_eq!(story.len(), 21);
            assert_eq!(pair.client.ended(), [(1, Status::Success)]);
            assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
            pair.assert_copied(0, 4096, 20 * MTU);
        }
    }
}

#[test]
fn data_that_a_law_acknowledges_is_acknowledged_by_it_alone() {
    let layout = Layout::Cc(Cc::new(false, false, 1).unwrap());
    for deferred in [Deferred::default(), ALL_DEFERRED] {
        let mut pair =
            running(CREDIT, &[("total_credit", "8KiB")], deferred, QpConfig { layout, ..config() });
        pair.write(1, 0, 4096, 20 * MTU);
        pair.run();
        let story = pair.server.story();
        assert_eq!((count(&story, "ack"), story.len()), (20, 20), "{story:?}");
        assert!(pair.server.sent.iter().all(|packet| packet.words == [MTU]));
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
    }
}

#[test]
fn data_with_which_a_program_fails_is_acknowledged() {
    for deferred in [Deferred::default(), ALL_DEFERRED] {
        let mut pair = running(FAULTS, &[], deferred, config());
        // At three octets it answers what is no answer.
        pair.write(1, 0, 4096, 3);
        pair.write(2, 0, 4096, 100);
        pair.run();
        assert_eq!(count(&pair.server.story(), "ack"), 2);
        assert_eq!(pair.client.ended(), [(1, Status::Success), (2, Status::Success)]);
        assert_eq!(pair.client.engine.counters(pair.client.qpns[0]).timeouts, 0);
    }
}

#[test]
fn data_of_which_a_law_that_is_out_never_hears_is_acknowledged_at_once() {
    let mut engine = Engine::new(EngineConfig::default());
    let law = engine.add_law(Law::External(Class::WRITE));
    let (key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let deferred = Deferred { law: true, ..Deferred::default() };
    let qpn = engine.create_qp(QpConfig { law, deferred, path: 9, ..config() }).unwrap();
    let mut acknowledged = 0;
    for psn in 0..300 {
        let mut header = Header::new(Opcode::WRITE_ONLY, qpn, config().receive_psn.plus(psn));
        header.payload = 8;
        header.set_reth(Reth { va: 0, rkey: key, length: 8 });
        let arrival = Arrival::new(&header, 9);
        let mut reaction = Reaction::default();
        engine.receive(Instant::ZERO, &arrival, &mut reaction);
        assert_eq!((reaction.refused, reaction.reply), (None, None));
        acknowledged += usize::from(reaction.notice.is_some());
        assert!(engine.poll_notice().is_none());
    }
    // One is out, and 256 wait.
    assert_eq!(acknowledged, 300 - 257);
    while let Some(Deferral::Law { token, qpn, event }) = engine.poll_deferral() {
        let outcome = engine.evaluate(qpn, &event).unwrap();
        engine.resolve(Instant::ZERO, token, Resolution::Law(outcome));
        acknowledged += usize::from(engine.poll_notice().is_some());
    }
    assert_eq!(acknowledged, 300);
}
