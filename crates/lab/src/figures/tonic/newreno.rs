//! One NewReno flow, as a recovery program on the engine and as the RFCs have it, over one path with the same losses
//! (Tonic, Figure 3a and 3b).

use super::super::bench::Bench;
use super::super::plain;
use super::super::plot::Plot;
use super::super::{FigureError, Measured};
use super::path::{Happened, Log, Path, SEGMENT, Sender, What};
use roci_transport::{
    Arrival, Engine, EngineConfig, Operation, QpConfig, Reaction, Recovery, SendRequest, Tail,
};
use roci_units::{Instant, Psn, Qpn, Span};
use roci_wire::{Aeth, Header, Layout, Opcode, Syndrome};

/// The minimum timeout of §6.2.1.
const RTO: Span = Span::from_millis(200);
/// Tonic's cycle at 10 Gb/s (§6.2.1).
const CYCLE: Span = Span::from_nanos(100);
const INITIAL: u16 = 10;
/// What a receiver keeps out of order.
const RECEIVE_WINDOW: u64 = 2048;

/// A recovery program on the engine.
struct OnEngine {
    engine: Engine,
    qpn: Qpn,
}

impl OnEngine {
    fn new(recovery: Recovery, segments: u32) -> Self {
        let mut engine = Engine::new(EngineConfig::default());
        let config = QpConfig {
            recovery,
            layout: Layout::Irn,
            mtu: u16::try_from(SEGMENT).unwrap_or(u16::MAX),
            timeout: RTO,
            initial_window: INITIAL,
            ..QpConfig::default()
        };
        let qpn = engine.create_qp(config).expect("the attributes go together");
        let operation = Operation::Write { va: 0, rkey: 1, tail: Tail::Plain };
        let request = SendRequest {
            id: 1,
            operation,
            length: segments * SEGMENT,
            address: 0,
            lkey: 0,
            solicited: false,
            signaled: true,
            fence: false,
        };
        engine.post_send(Instant::ZERO, qpn, &request).expect("the queue pair is connected");
        Self { engine, qpn }
    }
}

impl Sender for OnEngine {
    fn on_ack(&mut self, now: Instant, cumulative: u32, came: u32) {
        let mut header = Header::new(Opcode::ACKNOWLEDGE, self.qpn, Psn::new(cumulative).minus(1));
        let syndrome = Syndrome::Ack { credits: Syndrome::CREDITS_OFF }.to_u8();
        header.set_aeth(Aeth { syndrome, msn: 0 });
        header.set_trigger(Psn::new(came));
        let arrival = Arrival::new(&header, 0);
        self.engine.receive(now, &arrival, &mut Reaction::default());
    }

    fn wake(&mut self, now: Instant) {
        self.engine.wake(now);
    }

    fn wakeup(&self) -> Option<Instant> {
        self.engine.next_wakeup()
    }

    fn transmit(&mut self, now: Instant) -> Option<u32> {
        self.engine.transmit(now).map(|segment| segment.header.psn.get())
    }

    fn window(&self) -> u32 {
        self.engine.query(self.qpn).ok().and_then(|status| status.congestion_window).unwrap_or(0)
    }

    fn timeouts(&self) -> u32 {
        self.engine.counters(self.qpn).timeouts
    }
}

impl Sender for plain::newreno::NewReno {
    fn on_ack(&mut self, now: Instant, cumulative: u32, _came: u32) {
        self.on_ack(now, u64::from(cumulative * SEGMENT));
    }

    fn wake(&mut self, now: Instant) {
        if self.deadline() <= now {
            self.on_timeout(now);
        }
    }

    fn wakeup(&self) -> Option<Instant> {
        Some(self.deadline()).filter(|&at| at != Instant::NEVER)
    }

    fn transmit(&mut self, now: Instant) -> Option<u32> {
        let first = self.next_segment(now)?;
        u32::try_from(first / u64::from(SEGMENT)).ok()
    }

    fn window(&self) -> u32 {
        u32::try_from(self.cwnd() / u64::from(SEGMENT)).unwrap_or(u32::MAX)
    }

    fn timeouts(&self) -> u32 {
        self.timeouts
    }
}

/// Both, over the same path; the textbook's has no clock.
fn pair(recovery: Recovery, path: Path) -> (Log, Log) {
    let segment = u64::from(SEGMENT);
    let end = u64::from(path.segments) * segment;
    let mut plain = plain::newreno::NewReno::new(segment, INITIAL.into(), RECEIVE_WINDOW * segment, end, RTO);
    let plain = Path { cycle: Span::ZERO, ..path }.play(&mut plain);
    (path.play(&mut OnEngine::new(recovery, path.segments)), plain)
}

/// How many events are not the same in both: another event in its place, or another window after it.
fn differing(a: &Log, b: &Log) -> usize {
    let same = |(a, b): &(&Happened, &Happened)| (a.what, a.window) == (b.what, b.window);
    let equal = a.events.iter().zip(&b.events).filter(same).count();
    a.events.len().max(b.events.len()) - equal
}

/// How far an event of the first log lags behind that of the second, in cycles for each round trip until then.
fn lag(a: &Log, b: &Log) -> f64 {
    let each = a.events.iter().zip(&b.events).map(|(a, b)| {
        let late = a.at.as_ps().abs_diff(b.at.as_ps());
        let round_trips = (b.at.as_ps() / Span::from_micros(10).as_ps()).max(1);
        ratio(late, CYCLE.as_ps() * round_trips)
    });
    each.fold(0.0, f64::max)
}

#[expect(clippy::cast_precision_loss, reason = "a report shows fewer digits")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b as f64
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * ratio(part as u64, whole as u64)
}

/// Figure 3a and 3b.
pub(in super::super) fn measure(bench: &Bench<'_>) -> Result<Measured, FigureError> {
    let mut measured = Measured::default();
    let ablated = bench.ablation().iter().any(|(key, value)| key == "transport.recovery" && value == "reno");
    let recovery = if ablated { Recovery::Reno } else { Recovery::NewReno };
    // What tells NewReno from Reno is a second loss in a window, which the lower rate takes longer to bring about.
    let rates = [
        (0.001, 200_000, ["exact_low", "clocked_low", "lag_low", "again_low", "timeouts_low"]),
        (0.01, 20_000, ["exact_high", "clocked_high", "lag_high", "again_high", "timeouts_high"]),
    ];
    let mut sequences = Vec::new();
    for (loss, segments, [exact, clocked, late, again, timeouts]) in rates {
        let path = |seed, cycle| Path { cycle, loss, seed, segments };
        let at_once: Vec<_> =
            bench.seeds().iter().map(|&seed| pair(recovery, path(seed, Span::ZERO))).collect();
        let by_clock: Vec<_> = bench.seeds().iter().map(|&seed| pair(recovery, path(seed, CYCLE))).collect();
        measured.each(exact, &at_once, |(engine, plain)| ratio(differing(engine, plain) as u64, 1));
        measured.each(clocked, &by_clock, |(engine, plain)| {
            percent(differing(engine, plain), plain.events.len())
        });
        measured.each(late, &by_clock, |(engine, plain)| lag(engine, plain));
        measured
            .each(again, &at_once, |(engine, _)| ratio(engine.sent.len() as u64 - u64::from(segments), 1));
        measured.each(timeouts, &at_once, |(engine, _)| {
            ratio(engine.events.iter().filter(|event| event.what == What::Timeout).count() as u64, 1)
        });
        if let Some((engine, plain)) = by_clock.first() {
            measured.plots.push(windows(loss, engine, plain));
            sequences.push(sequence(loss, engine, plain));
        }
    }
    measured.plots.extend(sequences);
    Ok(measured)
}

/// How many transmissions are drawn before the first segment that is sent again, and how many from there on.
const BEFORE: usize = 100;
const AFTER: usize = 400;

/// The segments that both sent over time, around the first that was sent again: the trace of the paper's figures.
fn sequence(loss: f64, engine: &Log, plain: &Log) -> Plot {
    let again = plain.sent.windows(2).position(|pair| pair[1].1 < pair[0].1).unwrap_or_default();
    let points = |log: &Log| {
        let sent = log.sent.iter().skip(again.saturating_sub(BEFORE)).take(BEFORE + AFTER);
        sent.map(|(at, segment)| (at.as_secs_f64() * 1e6, f64::from(*segment))).collect()
    };
    let title = format!("NewReno, {} % of segments lost: segments as they were sent", loss * 100.0);
    Plot::new(&title, "time (µs)", "segment").line("program", points(engine)).line("textbook", points(plain))
}

/// The window over the first events of both.
fn windows(loss: f64, engine: &Log, plain: &Log) -> Plot {
    let points = |log: &Log| {
        let events = log.events.iter().take(4_000);
        (0u32..).zip(events).map(|(number, event)| (f64::from(number), f64::from(event.window))).collect()
    };
    let title = format!("NewReno, {} % of segments lost: congestion window", loss * 100.0);
    Plot::new(&title, "event", "segments").line("program", points(engine)).line("textbook", points(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_does_at_each_event_what_the_textbook_does() {
        for loss in [0.001, 0.01, 0.05] {
            for seed in 1..=10 {
                let path = Path { cycle: Span::ZERO, loss, seed, segments: 5_000 };
                let (engine, plain) = pair(Recovery::NewReno, path);
                assert!(plain.sent.len() > 5_000 && plain.events.len() > 4_000, "there were losses");
                let mut both = engine.events.iter().zip(&plain.events).enumerate();
                let first = both.find(|(_, (engine, plain))| engine != plain);
                assert_eq!(first, None, "loss {loss}, seed {seed}");
                let mut both = engine.sent.iter().zip(&plain.sent).enumerate();
                assert_eq!(both.find(|(_, (engine, plain))| engine != plain), None, "{loss}, {seed}");
                assert_eq!(engine.events.len(), plain.events.len());
            }
        }
    }

    #[test]
    fn the_drawn_sequences_have_the_segment_that_was_sent_again() {
        let path = Path { cycle: CYCLE, loss: 0.01, seed: 1, segments: 2_000 };
        let (engine, plain) = pair(Recovery::NewReno, path);
        let plot = sequence(path.loss, &engine, &plain);
        assert_eq!(plot.lines.len(), 2);
        for line in plot.lines {
            assert_eq!(line.points.len(), BEFORE + AFTER, "{}", line.name);
            assert!(line.points.is_sorted_by(|a, b| a.0 <= b.0), "{}", line.name);
            let back = line.points.windows(2).position(|pair| pair[1].1 < pair[0].1);
            assert_eq!(back, Some(BEFORE), "{}", line.name);
        }
    }

    #[test]
    fn another_program_does_otherwise() {
        let path = Path { cycle: Span::ZERO, loss: 0.01, seed: 1, segments: 5_000 };
        for recovery in [Recovery::Reno, Recovery::Sack] {
            let (engine, plain) = pair(recovery, path);
            assert!(differing(&engine, &plain) > 100);
        }
    }
}
