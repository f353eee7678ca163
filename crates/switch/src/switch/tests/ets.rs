//! Priorities that have shares of the bandwidth.

use super::*;
use crate::shares::{Quanta, Shares};
use roci_wire::WIRE_OVERHEAD;

const MAX_FRAME: u32 = 4_178;

fn shares(given: &[(u8, u8)]) -> Shares {
    let mut percent = [0; PRIORITIES];
    for &(priority, share) in given {
        percent[usize::from(priority)] = share;
    }
    Shares::new(percent).unwrap()
}

fn with(given: &[(u8, u8)]) -> SwitchConfig {
    SwitchConfig {
        pfc: None,
        alpha: Ratio::new(1_000, 1),
        ecn: None,
        ets: Some(shares(given)),
        max_frame: MAX_FRAME,
        ..SwitchConfig::default()
    }
}

/// A port at which some priorities always have frames waiting, of lengths that each takes in turn.
struct Saturated {
    bench: Bench,
    lengths: Vec<(u8, Vec<u32>)>,
    drawn: [usize; PRIORITIES],
    /// Octets on the wire that left, by priority.
    sent: [u64; PRIORITIES],
    /// The priorities in the order in which they left.
    order: Vec<u8>,
}

impl Saturated {
    fn new(config: &SwitchConfig, lengths: &[(u8, &[u32])]) -> Self {
        let lengths: Vec<_> =
            lengths.iter().map(|&(priority, lengths)| (priority, lengths.to_vec())).collect();
        let (drawn, sent, order) = ([0; PRIORITIES], [0; PRIORITIES], Vec::new());
        let mut port = Self { bench: Bench::new(config), lengths, drawn, sent, order };
        let priorities: Vec<u8> = port.lengths.iter().map(|(priority, _)| *priority).collect();
        for priority in priorities.into_iter().flat_map(|priority| [priority; 2]) {
            port.refill(priority);
        }
        port
    }

    fn refill(&mut self, priority: u8) {
        let (_, lengths) = self.lengths.iter().find(|(of, _)| *of == priority).unwrap();
        let drawn = &mut self.drawn[usize::from(priority)];
        let octets = lengths[*drawn % lengths.len()];
        *drawn += 1;
        assert_eq!(self.bench.admit(1, Frame { priority, ..data(octets) }).outcome, Outcome::Queued);
    }

    /// Sends `octets`, of the priorities in `open`.
    fn run(&mut self, octets: u64, open: u8) {
        let end = self.sent.iter().sum::<u64>() + octets;
        while self.sent.iter().sum::<u64>() < end {
            let bench = &mut self.bench;
            let Some(left) = bench.switch.dequeue(&mut bench.ports, &mut bench.slab, 1, open) else { return };
            let octets = self.bench.frame(left).octets + WIRE_OVERHEAD;
            self.sent[usize::from(left.priority)] += u64::from(octets);
            self.order.push(left.priority);
            self.refill(left.priority);
        }
    }
}

#[test]
fn saturated_priorities_leave_in_the_ratio_of_their_shares_whatever_the_lengths_of_their_frames() {
    let lengths: [&[u32]; 4] = [&[64], &[4_178], &[1_100, 64, 64], &[4_178, 90]];
    for (high, low) in [(50, 50), (60, 40), (75, 25), (90, 10), (99, 1), (1, 99)] {
        for of_high in lengths {
            for of_low in lengths {
                let mut port = Saturated::new(&with(&[(3, high), (0, low)]), &[(3, of_high), (0, of_low)]);
                let quanta = Quanta::new(&shares(&[(3, high), (0, low)]), MAX_FRAME);
                port.run(250 * u64::from(quanta.of(3) + quanta.of(0)), 0xff);
                let share = port.sent[3] as f64 / (port.sent[0] + port.sent[3]) as f64 * 100.0;
                let off =
                    (share / f64::from(high) - 1.0).abs().max(((100.0 - share) / f64::from(low) - 1.0).abs());
                assert!(off < 0.01, "{high} to {low}, {of_high:?} to {of_low:?}: {share} %");
            }
        }
    }
}

#[test]
fn a_priority_that_idles_leaves_its_share_to_the_others_in_the_ratio_of_theirs() {
    let config = with(&[(1, 50), (3, 30), (4, 20)]);
    let mut port = Saturated::new(&config, &[(3, &[1_100]), (4, &[1_100])]);
    port.run(50_000_000, 0xff);
    let share = port.sent[3] as f64 / (port.sent[3] + port.sent[4]) as f64;
    assert!((share - 0.6).abs() < 0.002, "{share}");
    let mut alone = Saturated::new(&config, &[(4, &[1_100])]);
    alone.run(1_000_000, 0xff);
    assert!(alone.sent[4] >= 1_000_000, "nobody waits for whom nothing is there");
}

#[test]
fn a_priority_without_a_share_goes_before_all_that_have_one_even_a_lower_one() {
    let mut bench = Bench::new(&with(&[(3, 50), (5, 50)]));
    for priority in [3, 5, 0, 7, 3, 0] {
        bench.admit(1, Frame { priority, ..data(1_000) });
    }
    let left: Vec<u8> = bench.drain(1).into_iter().map(|frame| frame.priority).collect();
    assert_eq!(left[..3], [7, 0, 0]);
    assert_eq!(left.len(), 6);
    let mut port = Saturated::new(&with(&[(3, 50), (0, 50)]), &[(3, &[1_100]), (0, &[64]), (6, &[64])]);
    port.run(1_000_000, 0xff);
    assert_eq!((port.sent[3], port.sent[0]), (0, 0), "strict is strict");
}

#[test]
fn a_paused_priority_neither_blocks_nor_saves_up_what_it_did_not_send() {
    let given = [(3, 75), (0, 25)];
    let quanta = Quanta::new(&shares(&given), MAX_FRAME);
    let mut port = Saturated::new(&with(&given), &[(3, &[1_500, 64]), (0, &[4_178])]);
    port.run(10_000, 0xff);
    let before = port.sent;
    port.run(10_000_000, !(1 << 3));
    assert_eq!(port.sent[3], before[3]);
    assert!(port.sent[0] - before[0] >= 10_000_000, "the other has it all");
    let resumed = port.sent;
    port.run(1_000_000, 0xff);
    let (high, low) = (port.sent[3] - resumed[3], port.sent[0] - resumed[0]);
    let most = (high + low) * 3 / 4 + u64::from(quanta.of(3) + MAX_FRAME + WIRE_OVERHEAD);
    let least = (high + low) * 3 / 4 - u64::from(quanta.of(0) + MAX_FRAME + WIRE_OVERHEAD);
    assert!((least..=most).contains(&high), "{high} of {}", high + low);
}

#[test]
fn flows_with_queues_of_their_own_take_equal_turns_within_the_share_of_their_priority() {
    let config = SwitchConfig { queues: Buffering::PerFlow, ..with(&[(3, 80), (0, 20)]) };
    let mut bench = Bench::new(&config);
    for flow in 0..4 {
        for _ in 0..400 {
            bench.admit(1, Frame { flow, priority: if flow == 3 { 0 } else { 3 }, ..data(1_000) });
        }
    }
    let mut left = [0u32; 4];
    for _ in 0..1_000 {
        let departure = bench.dequeue(1).unwrap();
        left[bench.frame(departure).flow as usize] += 1;
    }
    assert!(left[3].abs_diff(200) <= 5, "{left:?}");
    assert!(left[..3].iter().all(|of| of.abs_diff(267) <= 6), "{left:?}");
}

#[test]
fn trimmed_headers_go_before_shares_and_let_those_have_every_so_many_a_turn() {
    let trim = Trim {
        threshold: Some(Bytes(1_000_000)),
        headers: None,
        return_to_sender: false,
        header_priority: 5,
        random_tail: false,
        headers_per_packet: 10,
    };
    let config = SwitchConfig { trim: Some(trim), ..with(&[(6, 75), (0, 25)]) };
    let mut port = Saturated::new(&config, &[(6, &[1_100]), (5, &[64]), (0, &[1_100])]);
    port.run(3_000_000, 0xff);
    let count = |of| port.order.iter().filter(|priority| **priority == of).count();
    let (high, headers, low) = (count(6), count(5), count(0));
    assert!(headers.abs_diff(10 * (high + low)) <= 10, "{headers} headers, {high} and {low} packets");
    assert!((high as f64 / (high + low) as f64 - 0.75).abs() < 0.01, "{high} to {low}");

    let shared = SwitchConfig { trim: Some(trim), ..with(&[(5, 75), (0, 25)]) };
    let mut ports = vec![Port::new(()); 4];
    let refused = Switch::new(&shared, &mut ports, 0, &[LINK; 4], Random::new(1, 0));
    assert_eq!(refused.err(), Some(ConfigError::SharedHeaders(5)));
}

#[test]
fn ports_take_their_turns_apart() {
    let mut bench = Bench::new(&with(&[(3, 60), (0, 40)]));
    for egress in [1, 2] {
        for priority in [3, 0].repeat(50) {
            bench.admit(egress, Frame { priority, ..data(4_178) });
        }
    }
    let mut order = [Vec::new(), Vec::new()];
    for step in 0..90 {
        // The second port is served half as often.
        for egress in if step % 2 == 0 { vec![1, 2] } else { vec![1] } {
            order[egress as usize - 1].push(bench.dequeue(egress).unwrap().priority);
        }
    }
    assert_eq!(order[0][..45], order[1][..]);
}

/// What happens at the port.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive { priority: u8, octets: u32 },
    Leave(u8),
    Pause(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![Just(64), Just(MAX_FRAME), 64..=MAX_FRAME];
    let step = prop_oneof![
        5 => (0..6u8, length).prop_map(|(priority, octets)| Step::Arrive { priority, octets }),
        4 => (1..6u8).prop_map(Step::Leave),
        1 => (0..8u8).prop_map(Step::Pause),
    ];
    prop::collection::vec(step, 1..1_500)
}

proptest! {
    /// Shreedhar and Varghese's Theorem 3: while two priorities both have frames and are not paused, what they sent, each
    /// over its quantum, never differs by more than one turn and a frame of each, in no interval. Whatever else comes, goes or is paused.
    #[test]
    fn of_two_that_have_frames_and_are_not_paused_each_gets_its_share_to_a_turn_and_a_frame(
        steps in steps(),
        cuts in prop::collection::vec(1..=40u8, 3),
        per_flow: bool,
    ) {
        let mut given: Vec<(u8, u8)> = (1..4).zip(cuts.iter().map(|cut| cut.div_ceil(2))).collect();
        given.push((4, 100 - given.iter().map(|(_, share)| share).sum::<u8>()));
        let queues = if per_flow { Buffering::PerFlow } else { Buffering::PerPriority };
        let mut bench = Bench::new(&SwitchConfig { queues, ..with(&given) });
        let quanta = Quanta::new(&shares(&given), MAX_FRAME);
        let frame = i128::from(MAX_FRAME + WIRE_OVERHEAD);
        let mut open = 0xff_u8;
        let mut waiting = [0i32; PRIORITIES];
        // For each pair: how far the first is ahead since both have been ready, and the extremes of that.
        let mut ahead = [[(0i128, 0i128, 0i128); PRIORITIES]; PRIORITIES];
        for (serial, step) in (0u32..).zip(steps) {
            let times = match step {
                Step::Leave(times) => times,
                Step::Arrive { priority, octets } => {
                    waiting[usize::from(priority)] += 1;
                    let frame = Frame { priority, flow: serial % 3, ..data(octets) };
                    prop_assert_eq!(bench.admit(1, frame).outcome, Outcome::Queued);
                    0
                }
                Step::Pause(priority) => {
                    open ^= 1 << priority;
                    0
                }
            };
            for _ in 0..times {
                let ready = (0..8u8).filter(|p| waiting[usize::from(*p)] > 0 && open >> p & 1 == 1);
                let ready = ready.fold(0u8, |set, p| set | 1 << p);
                let left = bench.switch.dequeue(&mut bench.ports, &mut bench.slab, 1, open);
                prop_assert_eq!(left.is_some(), ready != 0, "who may send, sends");
                let Some(left) = left else { break };
                prop_assert!(ready >> left.priority & 1 == 1);
                waiting[usize::from(left.priority)] -= 1;
                let strict = ready & !quanta.priorities();
                if strict != 0 {
                    prop_assert_eq!(left.priority, highest(strict));
                    continue;
                }
                let octets = i128::from(bench.frame(left).octets + WIRE_OVERHEAD);
                for other in (0..8).filter(|p| *p != left.priority && ready >> p & 1 == 1) {
                    let (i, j) = (left.priority.min(other), left.priority.max(other));
                    let (of_i, of_j) = (i128::from(quanta.of(i)), i128::from(quanta.of(j)));
                    let (now, least, most) = &mut ahead[usize::from(i)][usize::from(j)];
                    *now += if left.priority == i { octets * of_j } else { -octets * of_i };
                    (*least, *most) = ((*least).min(*now), (*most).max(*now));
                    let bound = of_i * of_j + frame * (of_i + of_j);
                    prop_assert!(*most - *least <= bound, "{i} and {j}: {} of {bound}", *most - *least);
                }
            }
            for (i, row) in ahead.iter_mut().enumerate() {
                for (j, pair) in row.iter_mut().enumerate() {
                    let ready = |p: usize| waiting[p] > 0 && open >> p & 1 == 1;
                    if !(ready(i) && ready(j)) {
                        *pair = (0, 0, 0);
                    }
                }
            }
        }
    }
}

#[test]
fn a_switch_that_forgets_everything_forgets_whose_turn_it_was() {
    let config = with(&[(3, 60), (0, 40)]);
    let order = |bench: &mut Bench| {
        for _ in 0..6 {
            for priority in [3, 0] {
                assert_eq!(bench.admit(1, Frame { priority, ..data(4_000) }).outcome, Outcome::Queued);
            }
        }
        (0..12).map(|_| bench.dequeue(1).unwrap().priority).collect::<Vec<_>>()
    };
    let fresh = order(&mut Bench::new(&config));
    for sent in 1..8 {
        let mut bench = Bench::new(&config);
        for _ in 0..6 {
            for priority in [3, 0] {
                bench.admit(1, Frame { priority, ..data(4_000) });
            }
        }
        for _ in 0..sent {
            bench.dequeue(1).unwrap();
        }
        let Bench { switch, ports, slab, .. } = &mut bench;
        switch.clear(ports, slab, |_| {});
        assert_eq!(order(&mut bench), fresh, "after {sent}");
    }
}
