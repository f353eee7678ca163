//! Requests and responses of several runs side by side.

use super::Group;
use crate::figures::statistics::Estimate;
use crate::results::{Results, RpcResult};
use roci_units::Span;

/// What a table of requests came to in one configuration, over its seeds.
#[derive(Clone, Copy, Debug)]
pub struct RpcSum<'a> {
    /// The configuration.
    pub label: &'a str,
    /// The name of the `[[traffic]]` table.
    pub name: &'a str,
    /// That of the first seed: threads, connections and sizes are those of all.
    pub of: &'a RpcResult,
    /// Requests answered per second; `None`, as all that follow, where a seed has none.
    pub per_second: Option<Estimate>,
    /// Payload of requests answered, in bits per second.
    pub goodput_bps: Option<Estimate>,
    /// The mean time of a request in seconds,
    pub mean: Option<Estimate>,
    /// the median,
    pub p50: Option<Estimate>,
    /// and the time that 99 of 100 do not exceed.
    pub p99: Option<Estimate>,
    /// Lines that came from memory, of those that were read.
    pub miss_share: Option<Estimate>,
}

impl Group {
    /// What each table of requests came to in each configuration, over its seeds; nothing where there are none.
    pub fn sums_of_rpcs<'a>(&'a self, results: &'a [Results]) -> Vec<RpcSum<'a>> {
        let of = |label: &'a str| {
            let alike: Vec<&Results> = self.alike(label, results).collect();
            let places = alike.iter().map(|results| results.rpcs.len()).min().unwrap_or(0);
            (0..places).map(|place| sum(label, place, &alike)).collect::<Vec<_>>()
        };
        self.configurations().into_iter().flat_map(of).collect()
    }
}

/// Of the table at `place` among those of each of `alike`, which is not empty.
fn sum<'a>(label: &'a str, place: usize, alike: &[&'a Results]) -> RpcSum<'a> {
    let of = &alike[0].rpcs[place];
    let estimate = |value: &dyn Fn(&RpcResult) -> Option<f64>| {
        let values = alike.iter().map(|results| value(&results.rpcs[place]));
        Estimate::of(&values.collect::<Option<Vec<f64>>>()?)
    };
    let percentile = |percent| move |it: &RpcResult| Some(it.times.percentile(percent)?.as_secs_f64());
    RpcSum {
        label,
        name: &alike[0].traffic[of.table].name,
        of,
        per_second: estimate(&RpcResult::per_second),
        goodput_bps: estimate(&RpcResult::goodput_bps),
        mean: estimate(&|it| it.times.mean().map(Span::as_secs_f64)),
        p50: estimate(&percentile(50)),
        p99: estimate(&percentile(99)),
        miss_share: estimate(&RpcResult::miss_share),
    }
}
