//! Links whose rate laws cannot tell: they count in kb/s, in 32 bits.

use super::source::{ScenarioError, Source};
use super::transport::Control;
use roci_fabric::graph::Graph;
use roci_fabric::topology::COUNTED_MAX;
use roci_units::BitsPerSec;

/// The laws that calculate with no link's rate. At their top those with a rate are as fast as the link, and do not pace.
const LAWS: [&str; 5] = ["none", "dcqcn", "timely", "swift", "homa"];

/// The fastest link, if it is faster than laws can tell.
fn fastest(graph: &Graph) -> Option<BitsPerSec> {
    graph.links.iter().map(|link| link.rate).max().filter(|rate| *rate > COUNTED_MAX)
}

/// Refuses links too fast for one of the laws that are used.
pub(super) fn fits<'a>(
    source: &Source,
    graph: &Graph,
    mut used: impl Iterator<Item = &'a Control>,
) -> Result<(), ScenarioError> {
    let Some(rate) = fastest(graph) else { return Ok(()) };
    let counts = |control: &&Control| {
        let is_known = LAWS.contains(&control.law.value.as_str()) || control.is_program();
        !is_known || control.wants_telemetry()
    };
    used.find(counts).map_or(Ok(()), |control| {
        let law = &control.law.value;
        let message = format!(
            "law `{law}` calculates with the rates of links, of up to {COUNTED_MAX}, and here one has {rate}"
        );
        let others = LAWS.map(|name| format!("`{name}`")).join(", ");
        let remedy = format!("give no link more than {COUNTED_MAX}, or take one of {others}");
        Err(source.error(control.law.origin, message, remedy))
    })
}

/// What a program is told instead.
pub(super) fn note<'a>(graph: &Graph, mut used: impl Iterator<Item = &'a Control>) -> Option<String> {
    let rate = fastest(graph)?;
    used.find(|control| control.is_program()).map(|control| {
        format!(
            "{} reads 4294967295 kb/s as the rate of a link that is faster, such as those of {rate} here: as its own rate that is the link's, \
             but a window that it calculates from it is too short",
            control.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;

    const NVLINK: &str = r#"
        [topology]
        kind = "star"
        hosts = 2
        rate = "7.2Tb/s"
        delay = "100ns"
        [[traffic]]
        kind = "flows"
        flows = [{ src = "h0", dst = "h1", size = "1MB" }]
    "#;

    fn parse(set: &[(&str, &str)]) -> Result<Scenario, super::ScenarioError> {
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Scenario::parse(NVLINK, "here.toml", &set)
    }

    #[test]
    fn laws_that_calculate_with_the_rates_of_links_are_refused_where_one_is_faster_than_they_can_tell() {
        for law in ["hpcc", "powertcp", "theta-powertcp", "dctcp", "nscc"] {
            let error = parse(&[("transport.control", law)]).unwrap_err().to_string();
            let told = format!(
                "law `{law}` calculates with the rates of links, of up to 4Tb/s, and here one has 7200Gb/s"
            );
            assert!(error.contains(&told) && error.contains("take one of `none`, `dcqcn`"), "{error}");
            parse(&[("transport.control", law), ("topology.rate", "4Tb/s")]).unwrap();
        }
        for law in super::LAWS {
            parse(&[("transport.control", law)]).unwrap();
        }
        let error = parse(&[("topology.rate", "101Tb/s")]).unwrap_err().to_string();
        assert!(error.contains("up to 100Tb/s"), "{error}");
    }

    #[test]
    fn a_program_is_taken_with_a_note_on_what_it_reads_and_refused_where_it_reads_telemetry() {
        let program = |name: &str| {
            let control = format!("{{ law = \"program\", elf = \"firmware/{name}.elf\" }}");
            parse(&[("transport.control", &control)])
        };
        let scenario = program("dcqcn").unwrap();
        let is_told = |note: &str| {
            note.contains("firmware/dcqcn.elf reads 4294967295 kb/s") && note.contains("7200Gb/s")
        };
        assert!(scenario.notes().any(is_told), "{:?}", scenario.notes().collect::<Vec<_>>());
        let error = program("hpcc").unwrap_err().to_string();
        assert!(error.contains("law `program` calculates with the rates of links"), "{error}");
    }
}
