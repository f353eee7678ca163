//! What a run keeps of its time series, as far as that is known before it begins.

use crate::results::series::{self, FLOWS_MAX};
use crate::scenario::Scenario;
use crate::traffic::Traffic;
use crate::traffic::jobs::{Jobs, Setting};
use roci_fabric::packet::HostId;
use roci_units::{Instant, Span};
use std::sync::Arc;

/// When a host has done what it was asked for, if its link is all that holds it up: as sender, and as receiver.
#[derive(Clone, Copy)]
struct Busy([Instant; 2]);

/// Octets of the samples that a run of `scenario` keeps, about: as many as where each flow takes as long as the links of its two hosts need for
/// what they have to carry before it is done, and the queue in front of its receiver changes meanwhile. Queues within the network
/// may add as much again, and the words of programs too.
pub(super) fn octets(scenario: &Scenario, seed: u64) -> u64 {
    let Some(interval) = scenario.measure.sample.filter(|interval| !interval.is_zero()) else { return 0 };
    let stop = scenario.stop.map_or(Instant::NEVER, |stop| Instant::ZERO + stop);
    let traffic: Arc<[Traffic]> = scenario.traffic.clone().into();
    let setting = Setting {
        topology: &scenario.topology,
        seed,
        stop: scenario.stop.map(|stop| Instant::ZERO + stop),
        packet: 0,
        start_jitter: Some(Span::ZERO),
    };
    let Ok(jobs) = Jobs::new(&traffic, &setting) else { return 0 };
    let rates = scenario.topology.graph.host_rates();
    let mut busy = vec![Busy([Instant::ZERO; 2]); rates.len()];
    let (mut lives, mut endless) = (Vec::new(), Vec::new());
    let mut waits = Span::ZERO;
    for job in jobs.take_while(|job| job.start < stop).take(FLOWS_MAX) {
        let octets = job.octets();
        if octets == u64::MAX {
            endless.push(job.start);
            continue;
        }
        let mut end = job.start;
        for (side, host) in [job.src, job.dst].into_iter().enumerate() {
            let HostId(host) = host;
            let (Some(rate), Some(busy)) = (rates.get(usize::from(host)), busy.get_mut(usize::from(host)))
            else {
                continue;
            };
            let takes = rate.time_for(octets);
            busy.0[side] = busy.0[side].max(job.start) + takes;
            end = end.max(busy.0[side]);
            if side == 1 {
                waits += takes;
            }
        }
        lives.push((job.start, end.min(stop)));
    }
    let last = lives.iter().map(|(_, end)| *end).max().unwrap_or(Instant::ZERO);
    let until = if stop == Instant::NEVER { last } else { stop };
    lives.extend(endless.iter().map(|start| (*start, until)));
    let samples = |span: Span| span.as_ps() / interval.as_ps();
    // A flow has one more in the sample after its end.
    let of_flows = lives.iter().map(|(start, end)| samples(end.since(*start)) + 1).sum();
    let of_queues = samples(waits) + if endless.is_empty() { 0 } else { samples(until.since(Instant::ZERO)) };
    series::octets_of(of_flows, of_queues)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Go, World as _};
    use crate::world::SimulatedWorld;

    const HEAD: &str = "[topology]\nkind = 'star'\nhosts = 6\nrate = '10Gb/s'\ndelay = '1us'\n";

    fn told_and_kept(text: &str) -> (u64, u64) {
        let scenario = Scenario::parse(text, "here.toml", &[]).unwrap();
        let results = SimulatedWorld.run(&scenario, 1, None, &mut |_| Go::On).unwrap();
        (octets(&scenario, 1), results.series.octets())
    }

    #[test]
    fn what_is_told_of_samples_is_about_what_a_run_keeps_of_them() {
        for (first, traffic) in [
            ("", "kind = 'incast'\nsenders = 5\nsize = '4MB'"),
            ("", "kind = 'permutation'\nsize = '10MB'"),
            ("", "kind = 'incast'\nsenders = 4\nsize = '1MB'\nevery = '10ms'\nuntil = '100ms'"),
            (
                "stop = '30ms'\n",
                "kind = 'closed-loop'\npairs = [['h0', 'h5'], ['h1', 'h4']]\nqps = 3\nmessage = '1MB'",
            ),
            ("", "kind = 'poisson'\nsizes = 'web-search'\nload = 0.4\nuntil = '60ms'"),
            ("measure.sample = '1us'\n", "kind = 'all-to-all'\nsize = '200KB'"),
        ] {
            let (told, kept) = told_and_kept(&format!("{first}{HEAD}[[traffic]]\n{traffic}\n"));
            assert!(kept > 0 && told < 2 * kept && kept < 2 * told, "{traffic}: {told} told, {kept} kept");
        }
        let without =
            format!("measure.sample = '0s'\n{HEAD}[[traffic]]\nkind = 'permutation'\nsize = '1MB'\n");
        assert_eq!(told_and_kept(&without), (0, 0));
    }

    #[test]
    fn no_run_keeps_more_samples_than_a_series_has_room_for() {
        let text = format!(
            "stop = '1000s'\n{HEAD}[[traffic]]\nkind = 'closed-loop'\nsrc = 'h0'\ndst = 'h1'\nmessage = '1MB'\n"
        );
        let scenario = Scenario::parse(&text, "here.toml", &[]).unwrap();
        assert_eq!(octets(&scenario, 1), series::octets_of(u64::MAX, 0));
    }
}
