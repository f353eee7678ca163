//! Counters as Prometheus' text format.

use super::hops::{Hop, Way};
use crate::congestion::title;
use crate::counters::Counters;
use crate::device::DeviceInner;
use crate::numbers::inner;
use crate::shard::IoCounters;
use roci_control::Credit;
use roci_transport::Refusal;
use std::fmt::{Display, Write as _};

const REFUSALS: [(&str, Refusal); 9] = [
    ("no_queue_pair", Refusal::NoQueuePair),
    ("wrong_peer", Refusal::WrongPeer),
    ("wrong_opcode", Refusal::WrongOpcode),
    ("duplicate", Refusal::Duplicate),
    ("out_of_sequence", Refusal::OutOfSequence),
    ("unexpected_response", Refusal::UnexpectedResponse),
    ("receiver_not_ready", Refusal::ReceiverNotReady),
    ("rejected", Refusal::Rejected),
    ("datagram", Refusal::Datagram),
];

/// The text so far.
struct Text(String);

impl Text {
    fn begin(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP roci_{name} {help}\n# TYPE roci_{name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "roci_{name}{{{labels}}} {value}");
    }
}

impl Text {
    /// What switches told, of each way with the labels of its queue pair.
    fn hops(&mut self, ways: &[(String, Way)]) {
        let of_way = |(labels, way): &(String, Way)| format!("{labels},way=\"{}\"", way.direction());
        self.begin("qp_hops_told_seconds", "gauge", "How long ago switches told of the hops of a way.");
        for way in ways {
            self.value("qp_hops_told_seconds", &of_way(way), way.1.age.as_secs_f64());
        }
        self.begin(
            "qp_hops_anew_total",
            "counter",
            "Times that the hops of a way were met, at first or again, after which what they sent counts from 0.",
        );
        for way in ways {
            self.value("qp_hops_anew_total", &of_way(way), way.1.anew);
        }
        type Read = fn(&Hop) -> u64;
        let values: [(&str, &str, &str, Read); 3] = [
            ("qp_hop_queue_bytes", "gauge", "What waited at a port of the way.", |hop| hop.queued.0),
            ("qp_hop_rate_bits_per_second", "gauge", "The rate of a port of the way.", |hop| hop.rate.0),
            ("qp_hop_sent_bytes_total", "counter", "What a port has sent since its way was met.", |hop| {
                hop.sent.0
            }),
        ];
        for (name, kind, help, read) in values {
            self.begin(name, kind, help);
            for way in ways {
                for (place, hop) in way.1.hops.iter().enumerate() {
                    self.value(name, &format!("{},hop=\"{}\"", of_way(way), place + 1), read(hop));
                }
            }
        }
    }
}

impl DeviceInner {
    /// All counters.
    pub(super) fn prometheus(&self) -> String {
        let mut text = Text(String::new());
        let device = format!("device=\"{}\"", self.local);
        self.of_packets(&mut text, &device);
        self.of_programs(&mut text, &device);
        self.of_queue_pairs(&mut text, &device);
        text.0
    }

    /// What no queue pair knows of: packets that came and went, and those that were refused.
    fn of_packets(&self, text: &mut Text, device: &str) {
        let IoCounters {
            sent,
            unsent,
            received,
            runs,
            malformed,
            corrupt,
            stray,
            refused: _,
            overflowed,
            cnps,
            told,
            unrated,
            beyond,
            short,
        } = self.counters();
        for (name, help, value) in [
            ("packets_sent_total", "Packets sent.", sent),
            ("packets_unsent_total", "Packets that the operating system did not take.", unsent),
            ("packets_received_total", "Packets that arrived.", received),
            ("runs_received_total", "Runs that arrived, of one or more packets.", runs),
            ("malformed_total", "Packets that are no RoCEv2 packets.", malformed),
            ("corrupt_total", "Packets whose ICRC was wrong.", corrupt),
            ("stray_total", "Packets for queue pairs that do not exist.", stray),
            ("overflowed_total", "Packets that the operating system dropped.", overflowed),
            ("cnps_sent_total", "Congestion notifications sent.", cnps),
            ("telemetry_total", "Acknowledgements that brought telemetry of switches.", told),
            (
                "telemetry_unrated_total",
                "Packets whose telemetry was left alone, for it was of other hops than rates were said for.",
                unrated,
            ),
            (
                "telemetry_beyond_total",
                "How often a port had sent more than the rate lets through that was said for it.",
                beyond,
            ),
            (
                "telemetry_short_total",
                "How often a port had sent less for long than the rate lets through that was said for it, while packets waited.",
                short,
            ),
        ] {
            text.begin(name, "counter", help);
            text.value(name, device, value);
        }
        text.begin("telemetry_hop_rates", "gauge", "Rates said for hops one by one; 0: one is of all.");
        text.value("telemetry_hop_rates", device, self.ordered_rates());
        text.begin("refused_total", "counter", "Packets that the transport refused, by reason.");
        for (reason, refusal) in REFUSALS {
            text.value("refused_total", &format!("{device},reason=\"{reason}\""), self.refused(refusal));
        }
        text.begin(
            "bitmaps_refused_total",
            "counter",
            "Times that a queue pair with losses found no bitmap left, and recovered without.",
        );
        text.value("bitmaps_refused_total", device, self.bitmaps_refused());
    }

    /// What programs failed at.
    fn of_programs(&self, text: &mut Text, device: &str) {
        text.begin(
            "program_failures_total",
            "counter",
            "Queue pairs that programs lost to their fallback, by why.",
        );
        for (name, tally) in self.programs() {
            let whys = [
                ("trap", tally.traps),
                ("overrun", tally.overruns),
                ("starved", tally.starved),
                ("answer", tally.wrong),
            ];
            for (why, count) in whys {
                text.value(
                    "program_failures_total",
                    &format!("{device},program=\"{name}\",why=\"{why}\""),
                    count,
                );
            }
        }
    }

    /// What each queue pair met, where it stands, and what switches told it.
    fn of_queue_pairs(&self, text: &mut Text, device: &str) {
        let (mut rows, mut ways) = (Vec::new(), Vec::new());
        self.each(None, |core, entry, place, law, now| {
            let law = title(law).replace('\\', "\\\\").replace('"', "\\\"");
            let labels = format!("{device},qp=\"{:#08x}\",law=\"{law}\"", entry.qpn);
            let status = core.engine.query(inner(place)).ok();
            ways.extend(entry.ways(now).into_iter().map(|way| (labels.clone(), way)));
            rows.push((labels, entry.counters(&core.engine, place), status));
        });
        type Read = fn(&Counters) -> u64;
        let counters: [(&str, &str, Read); 12] = [
            ("qp_packets_total", "Data packets sent, again or not.", |c| c.packets),
            ("qp_payload_bytes_total", "Payload in them.", |c| c.octets),
            ("qp_retransmitted_total", "Data packets sent again.", |c| c.retransmitted),
            (
                "qp_repeated_total",
                "Of those, packets that had been sent again before; not with go-back-N.",
                |c| c.repeated,
            ),
            ("qp_timeouts_total", "Local ACK timeouts.", |c| c.timeouts),
            ("qp_naks_total", "NAKs for a sequence received.", |c| c.naks),
            ("qp_rnr_total", "RNR NAKs received.", |c| c.rnr),
            ("qp_cnps_total", "Congestion notifications received.", |c| c.cnps),
            ("qp_ecn_marked_total", "Data packets received with CE.", |c| c.ecn_marked),
            (
                "qp_dropped_total",
                "Messages of unreliable connections that came in part, or that nothing could take.",
                |c| c.dropped,
            ),
            (
                "qp_doubled_total",
                "Messages of unreliable connections that the network doubled and that were taken once more.",
                |c| c.doubled,
            ),
            ("qp_acknowledged_total", "Packets acknowledged.", |c| c.acknowledged),
        ];
        for (name, help, read) in counters {
            text.begin(name, "counter", help);
            for (labels, counters, _) in &rows {
                text.value(name, labels, read(counters));
            }
        }
        text.begin("qp_in_flight_bytes", "gauge", "Payload that is not acknowledged.");
        for (labels, _, status) in &rows {
            text.value("qp_in_flight_bytes", labels, status.as_ref().map_or(0, |status| status.in_flight));
        }
        text.begin("qp_rate_bits_per_second", "gauge", "The rate that the law allows; +Inf: not paced.");
        for (labels, _, status) in &rows {
            match status.as_ref().map_or(Credit::UNLIMITED, |status| status.credit.rate_kbps) {
                Credit::UNLIMITED => text.value("qp_rate_bits_per_second", labels, "+Inf"),
                rate => text.value("qp_rate_bits_per_second", labels, u64::from(rate) * 1000),
            }
        }
        if !ways.is_empty() {
            text.hops(&ways);
        }
    }
}
