//! `links.csv`: one line for each way of each link, for spreadsheets (RFC 4180).

use super::flows::quoted;
use crate::results::{LinkResult, Results};
use roci_units::Instant;
use std::io::{self, Write};

const HEADER: &str =
    "link,rate_bps,tx_bytes,utilisation,drops,ecn_marks,trimmed,pause_received,paused_s,lost,corrupted";

/// Writes the links of `results`.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for link in &results.links {
        let LinkResult { name, rate, tx_bytes, drops, ecn_marks, trimmed, pause_received, paused, .. } = link;
        let LinkResult { lost, corrupted, .. } = link;
        let (name, utilisation, paused) =
            (quoted(name), utilisation(link, results.simulated), paused.as_secs_f64());
        writeln!(
            out,
            "{name},{},{tx_bytes},{utilisation},{drops},{ecn_marks},{trimmed},{pause_received},{paused},{lost},{corrupted}",
            rate.0
        )?;
    }
    Ok(())
}

/// The share of what `link` could have carried until `now` that its frames took.
fn utilisation(link: &LinkResult, now: Instant) -> f64 {
    let most = link.rate.0 as f64 * now.since(Instant::ZERO).as_secs_f64();
    if most > 0.0 { link.tx_bytes as f64 * 8.0 / most } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roci_units::{BitsPerSec, Span};

    #[test]
    fn a_link_is_told_with_the_share_of_its_rate_that_it_carried() {
        let link = LinkResult {
            name: "leaf0>spine1#2".into(),
            rate: BitsPerSec::from_gbps(10),
            tx_bytes: 2_500_000,
            ecn_marks: 3,
            pause_received: 2,
            paused: Span::from_micros(5),
            lost: 4,
            corrupted: 1,
            ..LinkResult::default()
        };
        let simulated = Instant::ZERO + Span::from_millis(4);
        let mut csv = Vec::new();
        write(&mut csv, &Results { links: vec![link], simulated, ..Results::default() }).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert_eq!(csv, format!("{HEADER}\nleaf0>spine1#2,10000000000,2500000,0.5,0,3,0,2,0.000005,4,1\n"));
    }
}
