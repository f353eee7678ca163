//! What the parts of a NIC counted, as `summary.json` has it.

use roci_nic::arch::counters::{Cause, Lookups};
use roci_nic::{ArchCounters, CoreCounters};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// The counters of one host's NIC.
#[derive(Serialize)]
pub(super) struct NicRecord {
    pcie_bytes: ByCause,
    context: LookupRecord,
    wqe: LookupRecord,
    receive_wqe: LookupRecord,
    mtt: LookupRecord,
    units_waited_s: f64,
    turns: u64,
    dropped_wqes: u64,
    halts: u64,
    recoveries: u64,
    overflowed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cores: Option<CoresRecord>,
}

/// What its cores counted, where they ran anything.
#[derive(Serialize)]
struct CoresRecord {
    sends: u64,
    receives: u64,
    loop_backs: u64,
    held_up: u64,
    held_up_s: f64,
    send_cycles: u64,
    receive_cycles: u64,
    behind_s: f64,
    waited_s: f64,
    stalled_s: f64,
    busy_s: f64,
    busiest_s: f64,
    busiest_over_s: f64,
    hinted: LookupRecord,
    wanted: LookupRecord,
}

impl CoresRecord {
    fn new(cores: &CoreCounters) -> Option<Self> {
        (cores.sends + cores.receives > 0).then(|| Self {
            sends: cores.sends,
            receives: cores.receives,
            loop_backs: cores.loop_backs,
            held_up: cores.held_up,
            held_up_s: cores.held_up_for.as_secs_f64(),
            send_cycles: cores.cycles[0],
            receive_cycles: cores.cycles[1],
            behind_s: cores.behind.as_secs_f64(),
            waited_s: cores.waited.as_secs_f64(),
            stalled_s: cores.stalled.as_secs_f64(),
            busy_s: cores.busy.as_secs_f64(),
            busiest_s: cores.busiest.as_secs_f64(),
            busiest_over_s: cores.busiest_over.as_secs_f64(),
            hinted: LookupRecord::new(cores.hinted),
            wanted: LookupRecord::new(cores.wanted),
        })
    }
}

impl NicRecord {
    pub(super) fn new(counters: &ArchCounters) -> Self {
        Self {
            pcie_bytes: ByCause(*counters),
            context: LookupRecord::new(counters.context),
            wqe: LookupRecord::new(counters.wqe),
            receive_wqe: LookupRecord::new(counters.receive_wqe),
            mtt: LookupRecord::new(counters.mtt),
            units_waited_s: counters.units_waited.as_secs_f64(),
            turns: counters.turns,
            dropped_wqes: counters.dropped_wqes,
            halts: counters.halts,
            recoveries: counters.recoveries,
            overflowed: counters.overflowed,
            cores: CoresRecord::new(&counters.cores),
        }
    }
}

#[derive(Serialize)]
struct LookupRecord {
    hits: u64,
    misses: u64,
}

impl LookupRecord {
    const fn new(lookups: Lookups) -> Self {
        Self { hits: lookups.hits, misses: lookups.misses }
    }
}

struct ByCause(ArchCounters);

impl Serialize for ByCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Cause::ALL.len()))?;
        for cause in Cause::ALL {
            map.serialize_entry(cause.name(), &self.0.pcie_of(cause))?;
        }
        map.end()
    }
}
