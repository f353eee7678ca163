//! What the command holds of memory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests look at more")]
mod scratch;

use scratch::{Scratch, text};
use serde_json::Value;

#[test]
fn tables_of_short_flows_leave_no_holes_behind_them() {
    let scratch = Scratch::new("holes");
    // 21 000 flows, most of a few hundred octets, none of which ends before all have begun.
    let flows = r#"
        topology = { kind = "fat-tree", hosts = 16, rate = "200Gb/s", delay = "20us" }
        switch = { pfc = false }
        transport = { recovery = "reno", control = { law = "dctcp" } }
        traffic = [{ kind = "poisson", sizes = "homa-w1", load = 0.5, until = "20us" }]
    "#;
    scratch.scenario("flows.toml", flows);
    let output = scratch.roci(&["run", "flows.toml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let summary: Value = serde_json::from_slice(&scratch.read("out/summary.json")).unwrap();
    let resident = summary["host"]["peak_rss_bytes"].as_u64().unwrap();
    // 70 to 80 MB, of which 20 are the program; with the allocator of the C library 280.
    assert!(resident < 140_000_000, "{resident} octets");
}
