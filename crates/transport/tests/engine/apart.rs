//! A caller that nothing holds to the link's rate: what a law has paced stays paced.

use crate::laws::{LINK, notify};
use crate::pair::Pair;
use crate::scripts::{MTU, config};
use roci_control::{Credit, Law};
use roci_transport::{Engine, EngineConfig, QpConfig, Status};
use roci_units::Instant;

fn engine(law: &str, settings: &[(&str, &str)], link_is_apart: bool) -> Engine {
    let mut engine = Engine::new(EngineConfig { link: LINK, ..EngineConfig::default() });
    if link_is_apart {
        engine.hold_to_link();
    }
    engine.add_law(Law::from_settings(law, settings, LINK).unwrap());
    engine
}

/// The rate without a limit, for a caller whose port is the link and for one whose is not.
const FREE: [(bool, u32); 2] = [(false, Credit::UNLIMITED), (true, LINK.as_kbps())];

#[test]
fn a_law_that_recovers_from_a_notification_ends_at_the_links_rate_where_nothing_else_limits() {
    for settings in [&[][..], &[("limiter", "port")]] {
        for (link_is_apart, free) in FREE {
            let mut engine = engine("dcqcn", settings, link_is_apart);
            let qpn = engine.create_qp(QpConfig { law: 1, path: 9, ..config() }).unwrap();
            let rate = |engine: &Engine| engine.query(qpn).unwrap().credit.rate_kbps;
            assert_eq!(rate(&engine), Credit::UNLIMITED, "until the first notification");
            for _ in 0..2 {
                notify(&mut engine, Instant::ZERO, qpn);
                assert!(rate(&engine) < LINK.as_kbps());
                while let Some(at) = engine.next_wakeup() {
                    engine.wake(at);
                }
                assert_eq!(rate(&engine), free, "{settings:?}");
            }
        }
    }
}

#[test]
fn a_law_that_rises_with_acknowledgements_ends_at_the_links_rate_where_nothing_else_limits() {
    let settings = [("delta", "1Gb/s"), ("t_low", "1ms"), ("segment", "0B")];
    for (link_is_apart, free) in FREE {
        let engine = || engine("timely", &settings, link_is_apart);
        let mut pair = Pair::with_engines(engine(), engine(), QpConfig { law: 1, ..config() }, 1);
        let qpn = pair.client.qpns[0];
        pair.client.engine.control_set(qpn, "rate", "1Gb/s", Instant::ZERO).unwrap();
        pair.write(1, 0, 4096, 400 * MTU);
        pair.run();
        assert_eq!(pair.client.ended(), [(1, Status::Success)]);
        assert_eq!(pair.client.engine.query(qpn).unwrap().credit.rate_kbps, free);
        // A hundred packets of 1106 octets while it rose, and the rest at the link's rate at most.
        assert!(pair.now > Instant::ZERO + LINK.time_for(400 * 1106));
    }
}
