//! `roci dash` as a script meets it, beside endpoints that send.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests look at more")]
mod scratch;

use scratch::{Scratch, text};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Both ends of a test of bandwidth, of which the one that sends has a control socket; they are ended with it.
struct Traffic(Vec<Child>);

impl Traffic {
    fn new(scratch: &Scratch, options: &[&str], address: &str) -> Self {
        let mut ends = Vec::new();
        for (end, socket) in [(&["-d", address][..], ""), (&[address], "roci")] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_roci"));
            command.args(["perf", "write-bw", "--quiet"]).args(options).args(end).current_dir(&scratch.0);
            if !socket.is_empty() {
                command.env("ROCI_CONTROL", scratch.0.join(socket));
            }
            ends.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
            // A client asks once, so the server has to listen by then.
            let port = options[options.iter().position(|option| *option == "-p").unwrap() + 1];
            let listens = format!(":{:04X} 00000000:0000 0A", port.parse::<u16>().unwrap());
            wait(|| {
                !socket.is_empty() || std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&listens)
            });
        }
        Self(ends)
    }

    fn end(&mut self) {
        for end in &mut self.0 {
            let _ = end.kill();
            let _ = end.wait();
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits until it is so, a minute at most.
fn wait(mut is_so: impl FnMut() -> bool) {
    assert!(
        (0..1200).any(|_| is_so() || {
            std::thread::sleep(Duration::from_millis(50));
            false
        }),
        "not within a minute"
    );
}

#[test]
fn two_readings_show_the_queue_pairs_of_an_endpoint_with_what_they_send() {
    let scratch = Scratch::new("dash-once");
    let options = ["-q", "3", "-s", "64K", "-m", "1024", "-D", "120", "-p", "19552", "--control", "dcqcn"];
    let mut traffic = Traffic::new(&scratch, &options, "127.0.0.91");
    let look = |more: &[&str]| {
        let line = [&["dash", "--socket", "roci", "--every", "300ms"], more].concat();
        scratch.roci(&line)
    };
    let sends = |told: &Value| {
        let sends = |pair: &Value| pair["sent_bps"].as_f64().is_some_and(|rate| rate > 0.0);
        told["queue_pairs"].as_array().is_some_and(|pairs| pairs.len() == 3 && pairs.iter().all(sends))
    };
    let mut told = Value::Null;
    wait(|| {
        let output = look(&["--once", "--json"]);
        told = serde_json::from_slice(&output.stdout).unwrap_or_default();
        output.status.success() && sends(&told)
    });
    let pairs = told["queue_pairs"].as_array().unwrap();
    let sum = |name: &str| pairs.iter().map(|pair| pair[name].as_f64().unwrap()).sum::<f64>();
    for (of_one, of_all) in [("sent_bps", "sent_bps"), ("packets_per_s", "packets_per_s")] {
        let total = told["totals"][of_all].as_f64().unwrap();
        assert!((sum(of_one) / total - 1.0).abs() < 1e-9, "{told}");
    }
    for pair in pairs {
        assert_eq!(pair["bytes"].as_u64().unwrap(), pair["packets"].as_u64().unwrap() * 1024, "{pair}");
        assert_eq!((&pair["law"], &pair["state"]), (&"dcqcn".into(), &"ReadyToSend".into()));
    }
    // Where the output is no terminal the same comes as text, of the queue pairs that `ctl` has as well.
    let plain = text(&look(&[]).stdout);
    assert_eq!(plain.lines().count(), 5, "{plain}");
    assert!(plain.lines().last().unwrap().starts_with("3 queue pairs: sent "), "{plain}");
    let known = text(&scratch.roci(&["ctl", "--socket", "roci", "get", "all", "state"]).stdout);
    for line in known.lines() {
        assert!(plain.contains(line.split(' ').next().unwrap()), "{line}: {plain}");
    }
    assert_eq!(known.lines().count(), 3);
    let json = |more: &[&str]| -> Value {
        let told = scratch.roci(&[&["ctl", "--socket", "roci"], more].concat());
        serde_json::from_slice(&told.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&told.stderr)))
    };
    let registers = json(&["get", "--json"]);
    assert_eq!(registers.as_array().unwrap().len(), 3, "{registers}");
    for pair in registers.as_array().unwrap() {
        assert!(known.contains(pair["queue_pair"].as_str().unwrap()), "{pair}");
        assert_eq!((&pair["law"], &pair["registers"]["state"]), (&"dcqcn".into(), &"ReadyToSend".into()));
    }
    let one = registers[0]["queue_pair"].as_str().unwrap();
    assert_eq!(
        json(&["get", "--json", one, "state"])[0]["registers"],
        serde_json::json!({ "state": "ReadyToSend" })
    );
    let counters = json(&["counters", "--json"]);
    let sent =
        counters.as_array().unwrap().iter().find(|it| it["name"] == "roci_packets_sent_total").unwrap();
    assert!(
        sent["value"].as_u64().unwrap() > 0
            && sent["labels"]["device"].as_str().unwrap().starts_with("127.0.0."),
        "{sent}"
    );
    let watched = text(&scratch.roci(&["ctl", "--socket", "roci", "watch", "--json", "--times", "1"]).stdout);
    let changes: Vec<Value> = watched.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        changes.iter().any(|it| it["register"] == "packets" && it["time_s"].as_f64().unwrap() > 1.7e9),
        "{watched}"
    );
    // One of two that nobody serves is named, beside what the other has.
    let output = look(&["--socket", "nosuch"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("3 queue pairs: sent "));
    let missing = "nosuch: no endpoint serves it, there is no such socket; start an endpoint with ROCI_CONTROL=nosuch\n";
    assert_eq!(text(&output.stderr), missing);
    // An endpoint that was killed leaves its socket behind.
    traffic.end();
    let output = look(&["--once"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    let why = "roci: no endpoint serves it, whoever did has ended; ";
    assert!(text(&output.stderr).starts_with(why), "{}", text(&output.stderr));
}
