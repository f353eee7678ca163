//! Engines with queue pairs for benches.

use roci_control::Law;
use roci_transport::{Access, Engine, EngineConfig, Operation, Pd, QpConfig, SendRequest, Tail};
use roci_units::{Instant, Qpn};

pub(crate) const MTU: u16 = 1024;
pub(crate) const MESSAGE: u32 = 1 << 30;

pub(crate) fn engine(flows: u32, config: QpConfig) -> (Engine, u32) {
    engine_with(None, flows, config)
}

pub(crate) fn engine_with(law: Option<Law>, flows: u32, config: QpConfig) -> (Engine, u32) {
    let mut engine = Engine::new(EngineConfig::default());
    let (key, _) = engine.register_everything(Pd(0), Access::ALL).unwrap();
    let config = QpConfig { law: law.map_or(0, |law| engine.add_law(law)), ..config };
    for index in 0..flows {
        let qpn = Qpn::new(2 + index);
        engine.create_qp(QpConfig { qpn: Some(qpn), peer: qpn, mtu: MTU, ..config }).unwrap();
    }
    (engine, key)
}

pub(crate) fn write(rkey: u32) -> SendRequest {
    SendRequest {
        id: 1,
        operation: Operation::Write { va: 0, rkey, tail: Tail::Plain },
        length: MESSAGE,
        address: 0,
        lkey: 0,
        solicited: false,
        signaled: true,
        fence: false,
    }
}

pub(crate) const ROUND: u32 = 8192;

/// Flows in turn, for ever: each with its place and the number of the turn. Counted, for a division takes 3 ns of a round.
pub(crate) fn turns(flows: u32) -> impl Iterator<Item = (u32, u32)> {
    let (mut flow, mut turn) = (0, 0);
    core::iter::repeat_with(move || {
        let now = (flow, turn);
        flow += 1;
        if flow == flows {
            (flow, turn) = (0, turn + 1);
        }
        now
    })
}

/// An engine whose flows are all under way: each has sent its first packets, and its timer runs.
pub(crate) fn under_way(flows: u32, config: QpConfig) -> Engine {
    let (mut engine, key) = engine(flows, config);
    for index in 0..flows {
        engine.post_send(Instant::ZERO, Qpn::new(2 + index), &write(key)).unwrap();
    }
    for _ in 0..2 * flows {
        engine.transmit(Instant::ZERO).unwrap();
    }
    engine
}
