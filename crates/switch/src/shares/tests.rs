//! Shares and turns alone.

use super::*;

fn shares(given: &[(usize, u8)]) -> Result<Shares, ConfigError> {
    let mut percent = [0; PRIORITIES];
    for &(priority, share) in given {
        percent[priority] = share;
    }
    Shares::new(percent)
}

#[test]
fn shares_are_two_at_least_and_make_a_hundred() {
    let made = shares(&[(3, 60), (0, 40)]).unwrap();
    assert_eq!((made.priorities(), made.of(3), made.of(0), made.of(5)), (0b1001, 60, 40, 0));
    assert_eq!(shares(&[(3, 60), (0, 30)]), Err(ConfigError::ShareSum(90)));
    assert_eq!(shares(&[(3, 255), (0, 101)]), Err(ConfigError::ShareSum(356)), "not modulo 256");
    assert_eq!(shares(&[]), Err(ConfigError::ShareSum(0)));
    assert_eq!(shares(&[(3, 100)]), Err(ConfigError::LoneShare));
}

#[test]
fn the_least_turn_holds_the_largest_frame_and_the_others_are_its_multiples_to_the_octet() {
    for (least, max_frame) in [(1, 4_178), (7, 1_100), (33, 64), (50, 9_018)] {
        let quanta = Quanta::new(&shares(&[(2, 100 - least), (5, least)]).unwrap(), max_frame);
        let (more, less) = (quanta.of(2), quanta.of(5));
        assert!(less >= max_frame + WIRE_OVERHEAD && less < max_frame + WIRE_OVERHEAD + u32::from(least));
        assert_eq!(more * u32::from(least), less * u32::from(100 - least));
        assert_eq!((quanta.of(3), quanta.priorities()), (0, 0b10_0100));
    }
}

#[test]
fn what_a_frame_takes_beyond_a_turn_is_taken_off_the_next_one() {
    let quanta = Quanta::new(&shares(&[(0, 50), (1, 50)]).unwrap(), 980);
    let mut turns = Turns::default();
    let mut lengths = [[480, 980].into_iter().cycle(), [980, 980].into_iter().cycle()];
    let taken: [u8; 10] = core::array::from_fn(|_| {
        let priority = turns.next(&quanta, 0b11);
        turns.sent(priority, lengths[usize::from(priority)].next().unwrap());
        priority
    });
    // A turn is 1000 octets on the wire. Priority 0 sends 500 and 1000 in its first, so that 500 are left for its second.
    assert_eq!(taken, [1, 0, 0, 1, 0, 1, 0, 1, 0, 0]);
}

#[test]
fn who_has_nothing_more_to_send_keeps_nothing_of_the_turn_and_what_it_took_too_much_is_not_forgotten() {
    let quanta = Quanta::new(&shares(&[(0, 80), (1, 20)]).unwrap(), 980);
    let mut turns = Turns::default();
    assert_eq!(turns.next(&quanta, 0b01), 0);
    turns.sent(0, 980);
    turns.end(0);
    assert_eq!(turns.left[0], 0, "3000 octets of its turn are gone");
    assert_eq!(turns.next(&quanta, 0b10), 1);
    turns.sent(1, 480);
    turns.sent(1, 980);
    turns.end(1);
    assert_eq!(turns.left[1], -500);
    assert_eq!(turns.next(&quanta, 0b01), 0, "whoever is ready has the turn, however often");
    assert_eq!(turns.next(&quanta, 0b10), 1);
    assert_eq!((turns.left[0], turns.left[1]), (0, 500));
}

#[test]
fn frames_longer_than_those_it_was_made_for_end_no_turn_for_good() {
    let quanta = Quanta::new(&shares(&[(0, 50), (7, 50)]).unwrap(), 64);
    let mut turns = Turns::default();
    let mut sent = [0u64; 2];
    for _ in 0..1_000 {
        let priority = turns.next(&quanta, 0b1000_0001);
        let octets = if priority == 0 { 9_000 } else { 1_500 };
        turns.sent(priority, octets);
        sent[usize::from(priority / 7)] += u64::from(octets + WIRE_OVERHEAD);
    }
    assert!(sent[0].abs_diff(sent[1]) <= 2 * 9_020, "{sent:?}");
}
