//! What is lost while others keep the receiver's link busy.

use super::*;

#[test]
fn who_stands_behind_others_is_asked_for_after_eight_intervals_though_the_link_is_never_idle() {
    let mut grants = agent(PARAMS);
    data(&mut grants, at(0), 2, 9_000, 0, 1_000);
    let mut again = Vec::new();
    // Whole messages of others fill the link, for two milliseconds.
    for n in 0..2_500 {
        let now = at(0) + Span::from_nanos(800 * n);
        data(&mut grants, now, 3, 1_000, 0, 1_000);
        if grants.next_wakeup().is_some_and(|wakeup| wakeup <= now) {
            grants.wake(now);
        }
        again.extend(
            asked(&mut grants, now)
                .into_iter()
                .filter(|(offset, end)| offset < end)
                .map(|octets| (n, octets)),
        );
    }
    // A packet at first, four the next time: none came.
    assert_eq!(again, [(1_000, (1_000, 2_000)), (2_000, (1_000, 5_000))]);
}
