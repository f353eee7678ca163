//! `[application]`: what takes the SENDs that arrive.

use super::read::Table;
use super::source::ScenarioError;
use crate::traffic::spec::{Op, Traffic};
use roci_units::Span;

/// What the receiving application does on each queue pair that SENDs come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Application {
    /// How many receive requests are posted at the start; `None`: one for each message that its sender may have outstanding.
    pub rx_depth: Option<u32>,
    /// How long a message keeps it busy, one after the other, before it posts the receive request anew.
    pub rx_time: Span,
}

impl Application {
    /// Reads `[application]`.
    pub(super) fn read(table: Option<Table<'_>>) -> Result<Self, ScenarioError> {
        let Some(table) = table else { return Ok(Self::default()) };
        Ok(Self {
            rx_depth: table.count("rx_depth", 1..=65_535)?,
            rx_time: table.span("rx_time")?.unwrap_or_default(),
        })
    }

    /// What a user should know who has set keys of `transport` that are about receivers that are not ready, or who has set this,
    /// where no receiver ever is.
    pub(super) fn note(&self, transport: Option<Table<'_>>, traffic: &[Traffic]) -> Option<String> {
        // Requests have receive buffers of their own, which can run out.
        let is_rpc = |traffic: &&Traffic| matches!(traffic, Traffic::Rpc(_));
        let others = traffic.iter().filter(|traffic| !is_rpc(traffic));
        let sends = others.flat_map(Traffic::ops).any(|op| op == Op::Send);
        if *self != Self::default() && !sends {
            return Some("`[application]` takes SENDs, and nothing here has `op = \"send\"`".to_owned());
        }
        if traffic.iter().any(|traffic| is_rpc(&traffic)) {
            return None;
        }
        let keys = ["rnr_retry", "min_rnr_timer"];
        let set = |key: &&str| transport.is_some_and(|table| table.get(key).is_some());
        let key = keys.into_iter().find(set).filter(|_| *self == Self::default() || !sends)?;
        Some(format!(
            "`transport.{key}` has no effect: a receive request stands ready for each SEND, and other operations need none. To have the \
             receiver busy with what came, set `application.rx_time`"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{PERMUTATION, parse, star};

    #[test]
    fn keys_about_receivers_that_are_not_ready_are_told_of_where_all_are() {
        let told = |op: &str, lines: &str| {
            let traffic = format!("{PERMUTATION}op = \"{op}\"\n");
            let scenario = parse(&(star(&traffic) + lines)).unwrap();
            scenario.notes().collect::<Vec<_>>().join(" ")
        };
        let (rnr, busy) = ("[transport]\nmin_rnr_timer = \"20us\"\n", "[application]\nrx_time = \"2us\"\n");
        assert!(told("send", rnr).contains("`transport.min_rnr_timer` has no effect"));
        assert!(told("write", busy).contains("takes SENDs"));
        assert_eq!(told("send", &format!("{rnr}{busy}")), "");
        assert_eq!(told("send", busy), "");
        let requests = "[[traffic]]\nkind = \"rpc\"\nserver = \"h0\"\nrequest = 64\ncount = 1\n";
        let told = |lines: &str| {
            let scenario = parse(&(star(requests) + lines)).unwrap();
            scenario.notes().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(rnr), "");
        assert!(told(busy).contains("takes SENDs"));
    }
}
