//! Arbitrary files as Chakra traces of one to four ranks: nothing panics, and what they are imported as can be read and run.
//!
//! The input is a first octet, of which two bits say how many ranks there are and one that all have the same trace; and the traces, each behind its length in two octets, of which the last needs none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use roci_lab::import::chakra::{Options, import};
use roci_lab::traffic::goal::Schedule;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A folder of this process's own, whose files are written over.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("roci-fuzz-chakra-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made where others are");
        folder
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, mut rest)) = input.split_first() else { return };
    let ranks = 1 + usize::from(kind & 3);
    let mut traces = Vec::new();
    while traces.len() < ranks {
        if kind & 4 != 0 || traces.len() + 1 == ranks {
            traces.resize(ranks, rest);
            break;
        }
        let Some((length, behind)) = rest.split_first_chunk() else { return };
        let (trace, left) = behind.split_at(usize::from(u16::from_le_bytes(*length)).min(behind.len()));
        traces.push(trace);
        rest = left;
    }
    for rank in 0..4 {
        let file = folder().join(format!("step.{rank}.et"));
        match traces.get(rank) {
            Some(trace) => std::fs::write(file, trace).expect("it can be written"),
            None => _ = std::fs::remove_file(file),
        }
    }
    let options = Options::default();
    let Ok(imported) = import(&folder().join("step"), &options, "step.goal") else { return };
    let schedule = Schedule::read(imported.schedule.as_bytes()).expect("what is written can be read");
    assert_eq!(schedule.ranks.len(), ranks);
});
