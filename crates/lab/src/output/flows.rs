//! `flows.csv`: one line per flow with the keys of `flows[]` in `summary.json`, for spreadsheets (RFC 4180).

use super::summary::FlowRecord;
use crate::results::Results;
use std::borrow::Cow;
use std::io::{self, Write};

const HEADER: &str = "name,src,dst,op,control,bytes,start_s,end_s,status,fct_s,ideal_fct_s,slowdown,goodput_bps,packets,\
                      retransmitted,repeated,timeouts,naks,rnr_naks,cnps,ecn_marked,reordered";

/// Writes the flows of `results`; what is null in `summary.json` is empty here.
///
/// # Errors
/// What `out` answers.
pub fn write(out: &mut impl Write, results: &Results) -> io::Result<()> {
    writeln!(out, "{HEADER}{}", if results.is_unreliable { ",lost" } else { "" })?;
    for flow in &results.flows {
        let FlowRecord {
            name,
            src,
            dst,
            op,
            control,
            bytes,
            start_s,
            end_s,
            status,
            fct_s,
            ideal_fct_s,
            slowdown,
            goodput_bps,
            packets,
            retransmitted,
            repeated,
            timeouts,
            naks,
            rnr_naks,
            cnps,
            ecn_marked,
            reordered,
            lost,
        } = FlowRecord::new(flow, results);
        let (name, src, dst) = (quoted(&name), quoted(src), quoted(dst));
        let control = quoted(control);
        let (end_s, fct_s) = (optional(end_s), optional(fct_s));
        let (ideal_fct_s, slowdown) = (optional(ideal_fct_s), optional(slowdown));
        let lost = lost.map_or_else(String::new, |lost| format!(",{lost}"));
        writeln!(
            out,
            "{name},{src},{dst},{op},{control},{bytes},{start_s},{end_s},{status},{fct_s},{ideal_fct_s},{slowdown},{goodput_bps},\
             {packets},{retransmitted},{repeated},{timeouts},{naks},{rnr_naks},{cnps},{ecn_marked},{reordered}{lost}"
        )?;
    }
    Ok(())
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// `text` as a field of a CSV file: in quotes where it needs them.
pub fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{summary, test_results::sample};
    use crate::results::FlowName;

    #[test]
    fn the_columns_are_the_keys_of_the_summary_in_their_order() {
        let mut json = Vec::new();
        summary::write(&mut json, &sample()).unwrap();
        let json = String::from_utf8(json).unwrap();
        let record = json.lines().skip_while(|line| !line.contains("\"flows\"")).nth(1).unwrap();
        let mut rest = record;
        for column in HEADER.split(',') {
            let key = format!("\"{column}\": ");
            let place = rest.find(&key).unwrap_or_else(|| panic!("{column} in {rest}"));
            rest = &rest[place + key.len()..];
        }
        assert!(!rest.contains("\": "), "a key without a column in {rest}");
    }

    #[test]
    fn a_name_with_a_comma_is_quoted_and_null_is_empty() {
        let mut results = sample();
        results.flows[0].name = FlowName::Given("disk \"a\", rack 2".into());
        let mut csv = Vec::new();
        write(&mut csv, &results).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert!(csv.lines().nth(1).unwrap().starts_with("\"disk \"\"a\"\", rack 2\","));
        let running = csv.lines().find(|line| line.contains(",running,")).unwrap();
        assert!(running.contains(",,running,,"), "{running}");
        assert_eq!(csv.lines().count(), 1 + results.flows.len());
    }
}
