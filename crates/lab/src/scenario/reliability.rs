//! The keys `service` and `recovery` of `[transport]`: who makes up for what is lost, and what an unreliable connection cannot have.

use super::read::Table;
use super::source::{ScenarioError, Source, listed};
use super::traffic::Reading;
use super::transport::{Control, Transport};
use super::tree::Kind;
use crate::traffic::{Op, Traffic};
use roci_control::LAWS;
use roci_transport::{Recovery, Service};
use roci_units::BitsPerSec;
use roci_wire::Layout;

const SERVICES: [(&str, Service); 2] = [("RC", Service::Rc), ("UC", Service::Uc)];

/// Keys that are about answers and repetition.
const OF_ANSWERS: [&str; 10] = [
    "recovery",
    "retry",
    "rnr_retry",
    "min_rnr_timer",
    "ack_every",
    "max_rd_atomic",
    "max_in_flight",
    "bitmaps",
    "initial_window",
    "paths",
];

/// The key `service`; with an unreliable connection nothing is said that it has not.
pub(super) fn service(table: Table<'_>) -> Result<Service, ScenarioError> {
    let service = table.word("service", &SERVICES)?.unwrap_or_default();
    if service != Service::Uc {
        return Ok(service);
    }
    if let Some(key) = OF_ANSWERS.into_iter().find(|key| table.get(key).is_some()) {
        return Err(table.refuse(
            key,
            "an unreliable connection has no answers, and sends nothing again",
            format!("leave `{key}` out, or `service`"),
        ));
    }
    if table.get("layout").is_some_and(|node| !matches!(&node.kind, Kind::Text(name) if name == "standard")) {
        return Err(table.refuse(
            "layout",
            "an unreliable connection has the standard layout",
            "leave `layout` out, or `service`",
        ));
    }
    if table.span("timeout")?.is_some_and(|timeout| timeout.is_zero()) {
        return Err(table.refuse(
            "timeout",
            "nobody tells of a message that was lost: it is one when this time is over",
            "leave `timeout` out, or say how long after the last packet a flow's messages are waited for",
        ));
    }
    Ok(service)
}

/// The key `recovery`.
pub(super) fn recovery(table: Table<'_>) -> Result<Option<Recovery>, ScenarioError> {
    match table.text("recovery")? {
        Some(name)
            if LAWS.contains(&name.value.as_str())
                && !Recovery::NAMED.iter().any(|(it, _)| *it == name.value) =>
        {
            let beside = if name.value == "homa" {
                "and leave `recovery` out"
            } else {
                "and choose a recovery besides"
            };
            Err(table.refuse(
                "recovery",
                format!("there is no recovery `{0}`: `{0}` is a law of congestion control", name.value),
                format!(
                    "set `transport.control = \"{}\"` {beside}; those that exist are {}",
                    name.value,
                    listed(Recovery::NAMED.iter().map(|(name, _)| *name))
                ),
            ))
        }
        _ => table.word("recovery", &Recovery::NAMED),
    }
}

/// Whether an unreliable connection can do what the traffic does, and its laws hear all they live on.
pub(super) fn fits<'a>(
    source: &Source,
    transport: &Transport,
    reading: &Reading<'_>,
    used: impl Iterator<Item = &'a Control>,
) -> Result<(), ScenarioError> {
    if transport.service != Service::Uc {
        return Ok(());
    }
    for (traffic, origin) in reading.traffic.iter().zip(&reading.origins) {
        let (what, remedy) = match traffic {
            Traffic::Collective(_) | Traffic::Goal(_) | Traffic::Rpc(_) => (
                format!(
                    "traffic of kind `{}` waits for its messages, and on an unreliable connection for those that are lost too",
                    traffic.kind()
                ),
                "give it a scenario with `transport.service = \"RC\"`",
            ),
            _ => match traffic.ops().find(|op| !matches!(op, Op::Send | Op::Write)) {
                None => continue,
                Some(op) => (
                    format!(
                        "an unreliable connection has SENDs and WRITEs, and this is `{op}`, which needs an answer"
                    ),
                    "set `op` to \"write\" or \"send\", or leave `transport.service` out",
                ),
            },
        };
        return Err(source.error(*origin, what, remedy));
    }
    for control in used {
        let law = control.make(source, BitsPerSec::from_gbps(100), MTU)?;
        if !transport.service.has_answers_for(&law) {
            let message = format!(
                "law `{}` lives on acknowledgements or grants, and an unreliable connection has none",
                control.law.value
            );
            let remedy = "use \"dcqcn\", which lives on CNPs, or \"none\"; or leave `transport.service` out";
            return Err(source.error(control.law.origin, message, remedy));
        }
    }
    // The control of all flows that have none of their own says which headers there are, also where there are no such flows.
    if transport.layout != Layout::Standard {
        let law = &transport.control.law;
        let message = format!(
            "law `{}` has headers of its own, and an unreliable connection the standard ones",
            law.value
        );
        return Err(source.error(law.origin, message, "leave `transport.control` out, or `service`"));
    }
    Ok(())
}

/// Whatever packets have, a law hears of the same events.
const MTU: u16 = 1024;

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;
    use roci_transport::Service;

    const PLAIN: &str = "topology = { kind = \"star\", hosts = 4, rate = \"10Gb/s\", delay = \"1us\" }\n\
                         transport.service = \"UC\"\n\
                         [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";

    /// The scenario with these keys, or why there is none.
    fn parse(set: &[(&str, &str)]) -> Result<Scenario, String> {
        let set: Vec<_> = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Scenario::parse(PLAIN, "here.toml", &set).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unreliable_connection_runs_under_dcqcn_none_and_programs_that_live_on_marks() {
        for control in ["dcqcn", "none", "{ law = \"dcqcn\", preset = \"hpcc\" }"] {
            let scenario = parse(&[("transport.control", control)]).unwrap();
            assert_eq!(scenario.transport.service, Service::Uc);
        }
        assert_eq!(parse(&[("transport.service", "RC")]).unwrap().transport.service, Service::Rc);
    }

    #[test]
    fn what_needs_answers_is_refused_with_what_to_do() {
        let cases = [
            (("transport.control", "timely"), "law `timely` lives on acknowledgements", "use \"dcqcn\""),
            (("traffic.0.control", "hpcc"), "law `hpcc` lives on acknowledgements", "use \"dcqcn\""),
            (("transport.recovery", "irn"), "sends nothing again", "leave `recovery` out"),
            (("transport.max_in_flight", "8"), "has no answers", "leave `max_in_flight` out"),
            (("transport.layout", "irn"), "has the standard layout", "leave `layout` out"),
            (("transport.timeout", "0s"), "nobody tells of a message that was lost", "leave `timeout` out"),
            (("traffic.0.op", "read"), "this is `read`, which needs an answer", "set `op` to"),
            (("transport.service", "UD"), "no service `UD`", "`RC` and `UC`"),
        ];
        for (set, what, remedy) in cases {
            let why = parse(&[set]).unwrap_err();
            assert!(why.contains(what) && why.contains(remedy), "{set:?}: {why}");
        }
        let collective = PLAIN.replace("permutation", "collective") + "operation = \"all-reduce\"\n";
        let why = Scenario::parse(&collective, "here.toml", &[]).unwrap_err().to_string();
        assert!(why.contains("traffic of kind `collective` waits for its messages"), "{why}");
    }

    #[test]
    fn a_law_with_headers_of_its_own_is_refused_also_where_it_holds_for_no_flow() {
        let why = parse(&[("transport.control", "homa"), ("traffic.0.control", "none")]).unwrap_err();
        assert!(
            why.contains("law `homa` has headers of its own")
                && why.contains("leave `transport.control` out"),
            "{why}"
        );
        assert!(parse(&[("transport.control", "timely"), ("traffic.0.control", "none")]).is_ok());
    }
}
