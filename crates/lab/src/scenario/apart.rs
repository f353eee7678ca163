//! Hosts that no pair of their NICs joins, as GPUs on different rails without spines: no traffic may be between them.

use super::source::{ScenarioError, Source};
use super::traffic::Reading;
use crate::traffic::{Algorithm, Traffic};
use roci_fabric::packet::HostId;
use roci_fabric::topology::Topology;

/// Refuses traffic that is, or may be, between hosts of which no NIC of the one reaches any of the other.
pub(super) fn refuse_unjoined(
    source: &Source,
    topology: &Topology,
    reading: &Reading<'_>,
) -> Result<(), ScenarioError> {
    if topology.homes.is_none() {
        return Ok(());
    }
    let islands = topology.islands_of_hosts();
    let Some(some) = islands.apart() else { return Ok(()) };
    let name = |host: HostId| &topology.hosts()[usize::from(host.0)];
    for (traffic, origin) in reading.traffic.iter().zip(&reading.origins) {
        let (pair, may) = match traffic.pairs() {
            Some(mut pairs) => (pairs.find(|&(a, b, _)| !islands.join([a, b])).map(|(a, b, _)| [a, b]), ""),
            None => (Some(some), ", and this traffic may be between any two"),
        };
        if let Some([from, to]) = pair {
            let (from, to) = (name(from), name(to));
            let message = format!("no NIC of `{from}` reaches any of `{to}`, and hosts do not forward{may}");
            let remedy = match traffic {
                Traffic::Collective(spec) if spec.per_server > 1 && spec.algorithm == Algorithm::Ring => {
                    "join them by links or spines, or have an even number of servers, as rings keep to their rails among these alone"
                }
                Traffic::Collective(_) => {
                    "join them by links or spines, or have traffic keep to rails, as rings, trees and `pxn` with `ranks_per_server` do"
                }
                _ => "join them by links or spines, or leave such traffic out",
            };
            return Err(source.error(*origin, message, remedy));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;

    /// Two servers of two GPUs whose rails nothing joins.
    fn with(traffic: &str) -> String {
        format!(
            "[topology]\nkind = \"rails\"\nservers = 2\ngpus = 2\nspines = 0\nrate = \"100Gb/s\"\ndelay = \"1us\"\nscale_up = \"1Tb/s\"\n\
             [[traffic]]\n{traffic}\n"
        )
    }

    #[test]
    fn traffic_between_rails_that_nothing_joins_is_refused_with_the_names_of_two_hosts() {
        let flow = |to: &str| {
            with(&format!("kind = \"flows\"\nflows = [{{ src = \"h0\", dst = \"{to}\", size = \"1KB\" }}]"))
        };
        for to in ["h1", "h2"] {
            parse(&flow(to)).unwrap();
        }
        let error = parse(&flow("h3")).unwrap_err().to_string();
        assert!(error.contains("test.toml:9"), "{error}");
        assert!(error.contains("no NIC of `h0` reaches any of `h3`, and hosts do not forward"), "{error}");
        let uneven = with("kind = \"collective\"\noperation = \"all-reduce\"\nsize = \"1MB\"")
            .replace("servers = 2", "servers = 3");
        let error = parse(&uneven).unwrap_err().to_string();
        assert!(error.contains("an even number of servers"), "{error}");
        let drawn = parse(&with("kind = \"permutation\"\nsize = \"1KB\"")).unwrap_err().to_string();
        assert!(drawn.contains("no NIC of `h0` reaches any of `h3`, and hosts do not forward, and this traffic may be between any two"), "{drawn}");
    }

    #[test]
    fn collectives_that_keep_to_rails_need_nothing_that_joins_them() {
        let one = |rest: &str| {
            parse(&with(&format!("kind = \"collective\"\nsize = \"1MB\"\nchannels = 2\n{rest}"))).map(drop)
        };
        for rest in [
            "operation = \"all-reduce\"",
            "operation = \"all-reduce\"\nalgorithm = \"tree\"",
            "operation = \"all-to-all\"\nalgorithm = \"pxn\"",
        ] {
            one(rest).unwrap();
        }
        for rest in ["operation = \"all-to-all\"", "operation = \"all-reduce\"\nranks_per_server = 1"] {
            assert!(one(rest).unwrap_err().to_string().contains("`pxn`"), "{rest}");
        }
    }
}
