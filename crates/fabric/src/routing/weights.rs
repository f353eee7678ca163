//! Weighted multipath: what of equal ports each is to carry (WCMP, EuroSys 2014).
//!
//! A port's weight is what the paths through it carry to the leaf: its link's rate, or what the next switch carries there if that is
//! less, which is the sum over that switch's own equal ports. This is what BGP tells with the link bandwidth community, where
//! switches add up what they hear. Ports stand in their group as often as their weight, as in the tables of switches, so that choosing among
//! them is what it is without weights.

/// Entries of a group, at most, where weights have no common measure that needs fewer.
const ENTRIES: u64 = 256;

/// Has each of `ports` as often as its share of `capacities`, in the order in which taking turns is the most even. Where one
/// carries nothing, it still stands there once.
pub(super) fn weigh(ports: &mut Vec<u16>, capacities: &[u64]) {
    let measure = capacities.iter().fold(0, |measure, &capacity| common(measure, capacity)).max(1);
    let sum = capacities.iter().fold(0u64, |sum, &capacity| sum.saturating_add(capacity));
    let most = ENTRIES.max(2 * capacities.len() as u64);
    let weight = |capacity: u64| match sum / measure <= most {
        true => capacity / measure,
        false => nearest(capacity, sum, most),
    };
    let weights: Vec<u64> = capacities.iter().map(|&capacity| weight(capacity).max(1)).collect();
    if weights.iter().all(|&weight| weight == weights[0]) {
        return;
    }
    // Port i has its turns at (2k + 1) / 2w: compared crosswise.
    let mut turns: Vec<(u64, u64, u16)> = ports
        .iter()
        .zip(&weights)
        .flat_map(|(&port, &weight)| (0..weight).map(move |turn| (2 * turn + 1, weight, port)))
        .collect();
    turns.sort_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)).then(a.2.cmp(&b.2)));
    ports.clear();
    ports.extend(turns.iter().map(|&(_, _, port)| port));
}

/// The greatest common divisor.
const fn common(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// `capacity` of `sum` in parts of which there are `most`, to the nearest.
fn nearest(capacity: u64, sum: u64, most: u64) -> u64 {
    let parts = (u128::from(capacity) * u128::from(most) + u128::from(sum) / 2) / u128::from(sum.max(1));
    u64::try_from(parts).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighed(capacities: &[u64]) -> Vec<u16> {
        let mut ports = (0..).take(capacities.len()).collect();
        weigh(&mut ports, capacities);
        ports
    }

    #[test]
    fn ports_alike_stand_once_each_and_others_as_often_as_their_rates_say() {
        assert_eq!(weighed(&[]), []);
        assert_eq!(weighed(&[100]), [0]);
        assert_eq!(weighed(&[100, 100, 100]), [0, 1, 2]);
        assert_eq!(weighed(&[100, 25]), [0, 0, 1, 0, 0]);
        assert_eq!(weighed(&[100, 0]).iter().filter(|&&port| port == 1).count(), 1);
    }

    #[test]
    fn weights_without_a_common_measure_are_as_near_as_the_table_has_entries() {
        let capacities = [99_999_989, 50_000_017, 10_000_019];
        let ports = weighed(&capacities);
        assert!(ports.len() <= 258, "{}", ports.len());
        for (port, capacity) in (0..).zip(capacities) {
            let [share, exact] = [
                ports.iter().filter(|&&it| it == port).count() as f64 / ports.len() as f64,
                capacity as f64 / 160_000_025.0,
            ];
            assert!((share - exact).abs() < 0.004, "{share} for {exact}");
        }
    }
}
