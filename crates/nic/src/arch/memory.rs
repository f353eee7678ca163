//! What each structure of a NIC takes, on the chip and off it.

use super::spec::{Architecture, Entries};

/// A structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// Its name.
    pub name: &'static str,
    /// Octets that a conventional NIC has for it, all of it on the chip.
    pub conventional: u64,
    /// Octets on this NIC's chip.
    pub on_chip: u64,
    /// Octets of it that this NIC leaves in the host's memory.
    pub off_chip: u64,
}

/// The account of a NIC's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The NIC.
    pub name: String,
    /// Queue pairs.
    pub queue_pairs: u64,
    /// Its structures.
    pub structures: Vec<Structure>,
    /// Octets on the chip in all: what the chip has where that is known, else the sum.
    pub chip: u64,
    /// Queue pairs whose contexts are all on the chip at once, of those asked for; `None` where that is not known.
    pub resident: Option<u64>,
    /// Queue pairs that it serves without a miss, however many were asked for: as many as the chip has room for the
    /// contexts of, or was shown to have; `None` where that is not known.
    pub performant: Option<u64>,
    /// Octets on the chip with as many; zero where that is not known.
    pub performant_chip: u64,
}

/// The conceptual model of SRNIC §3: what selective repeat keeps per queue pair, and requests on the chip.
mod conventional {
    /// Requests cached per queue pair and direction (§3.2.1).
    pub(super) const WQES: u64 = 8;
    /// Octets of each.
    pub(super) const WQE: u64 = 64;
    /// Bitmaps (§3.2.2).
    pub(super) const BITMAPS: u64 = 5;
    /// Packets in flight that they cover.
    pub(super) const WINDOW: u64 = 500;
    /// Octets of reordering buffer: the bandwidth-delay product of 100 Gb/s and 40 µs, in units of 1024.
    pub(super) const REORDER: u64 = 512 * 1024;
    /// Octets of an entry of the table of outstanding requests.
    pub(super) const OUTSTANDING: u64 = 24;
}

/// The account of `architecture` with `queue_pairs` queue pairs.
pub fn account(architecture: &Architecture, queue_pairs: u64) -> Account {
    let performant = match (architecture.context.entries, architecture.memory.queue_pairs) {
        (Entries::All, 0) => None,
        (Entries::All, shown) => Some(u64::from(shown)),
        (Entries::Count(count), _) => Some(count.into()),
    };
    let structures = structures(architecture, queue_pairs);
    let on_chip = |structures: &[Structure]| match architecture.memory.chip.0 {
        0 => structures.iter().map(|structure| structure.on_chip).sum(),
        chip => chip,
    };
    Account {
        name: architecture.name.clone(),
        queue_pairs,
        chip: on_chip(&structures),
        structures,
        resident: match architecture.context.entries {
            Entries::All => performant.filter(|most| queue_pairs <= *most).map(|_| queue_pairs),
            entries => Some(kept(entries, queue_pairs)),
        },
        performant,
        performant_chip: performant
            .map_or(0, |queue_pairs| on_chip(&self::structures(architecture, queue_pairs))),
    }
}

/// Of `wanted` entries those for which there is room.
fn kept(entries: Entries, wanted: u64) -> u64 {
    match entries {
        Entries::All => wanted,
        Entries::Count(count) => wanted.min(count.into()),
    }
}

fn structures(architecture: &Architecture, queue_pairs: u64) -> Vec<Structure> {
    let memory = &architecture.memory;
    let mtt = match architecture.mtt.page.0 {
        0 => 0,
        page => memory.registered.0.div_ceil(page) * u64::from(architecture.mtt.store.size),
    };
    // A NIC that never moves contexts says only what one takes up there; one that pads none, only its size.
    let (context_size, stored) =
        match (u64::from(architecture.context.size), u64::from(memory.context_stored)) {
            (0, stored) => (stored, stored),
            (size, 0) => (size, size),
            both => both,
        };
    let receiving = match (memory.receive_buffer.0, architecture.receive.fifo) {
        (0, Some(fifo)) => fifo.0,
        (given, _) => given,
    };
    let resident = kept(architecture.context.entries, queue_pairs);
    let fetched = u64::from(architecture.send.fetch);
    let attached = architecture.pcie.attached;
    let requests = |store: &super::spec::Store, size| {
        let entry = fetched * size;
        (kept(store.entries, queue_pairs) * entry, if attached { queue_pairs * entry } else { 0 })
    };
    let (wqes, wqes_off) = requests(&architecture.wqe, architecture.send_request());
    let (receive_wqes, receive_wqes_off) =
        requests(&architecture.receive_wqe, architecture.receive_wqe.size.into());
    let mtt_entry = u64::from(architecture.mtt.store.size);
    let mtt_kept = match (architecture.mtt.store.entries, mtt_entry) {
        (_, 0) => 0,
        (entries, size) => {
            kept(
                entries,
                match entries {
                    Entries::All => mtt / size,
                    Entries::Count(count) => count.into(),
                },
            ) * size
        }
    };
    let table = architecture.table;
    let line = if table.line == 0 { table.size } else { table.line };
    let all = queue_pairs * u64::from(table.size);
    let law = match (architecture.cores.pairs, table.lines) {
        (0, _) => 0,
        (_, Entries::All) => all,
        (_, Entries::Count(lines)) => u64::from(lines) * u64::from(line),
    };
    let law_off = if architecture.cores.pairs == 0 || table.lines == Entries::All { 0 } else { all };
    let per_pair = |octets: u64| queue_pairs * octets;
    let window = u64::from(memory.window);
    let bitmaps = per_pair(conventional::BITMAPS * conventional::WINDOW) / 8;
    let row = |name, conventional, on_chip, off_chip| Structure { name, conventional, on_chip, off_chip };
    vec![
        row("receiving buffer", receiving, receiving, 0),
        row(
            "queue pair contexts",
            per_pair(context_size),
            resident * stored,
            (queue_pairs - resident) * context_size,
        ),
        row("address translations (MTT)", mtt, mtt_kept, if attached { mtt } else { 0 }),
        row(
            "requests (WQE caches)",
            per_pair(2 * conventional::WQES * conventional::WQE),
            wqes + receive_wqes,
            wqes_off + receive_wqes_off,
        ),
        row(
            "bitmaps",
            bitmaps,
            per_pair(u64::from(memory.bitmaps) * window) / 8,
            // The software that decides what a loss means keeps them (SRNIC §4.4.2).
            if architecture.recovery.octets > 0 { bitmaps } else { 0 },
        ),
        row("reordering buffers", per_pair(conventional::REORDER), per_pair(memory.reorder.0), 0),
        row(
            "outstanding requests",
            per_pair(conventional::OUTSTANDING * conventional::WINDOW),
            per_pair(u64::from(memory.outstanding_entry) * window),
            0,
        ),
        row("contexts of the cores' law", 0, law, law_off),
        row("scheduler", 0, memory.scheduler.0 + per_pair(memory.schedule_entry.into()), 0),
    ]
}

impl Account {
    /// Octets of a conventional NIC in all.
    pub fn conventional(&self) -> u64 {
        self.structures.iter().map(|structure| structure.conventional).sum()
    }

    /// The structure called `name`.
    pub fn structure(&self, name: &str) -> Option<&Structure> {
        self.structures.iter().find(|structure| structure.name == name)
    }

    /// Performant queue pairs per MiB of memory on the chip (SRNIC §1); `None` where the NIC has none, or nobody knows: the
    /// structures without a receiving buffer are not all that is on a chip.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub fn performant_per_mib(&self) -> Option<f64> {
        let mib = self.performant_chip as f64 / f64::from(1 << 20);
        let whole = self.structure("receiving buffer").is_some_and(|row| row.on_chip > 0);
        let performant = self.performant.filter(|_| self.performant_chip > 0 && whole)?;
        Some(performant as f64 / mib)
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets;
    use super::*;

    fn of(name: &str, queue_pairs: u64) -> Account {
        account(&presets::find(name).expect("it exists"), queue_pairs)
    }

    #[test]
    fn what_grows_with_the_queue_pairs_grows_in_proportion() {
        let (one, ten) = (of("srnic", 1_000), of("srnic", 10_000));
        for name in ["queue pair contexts", "bitmaps", "reordering buffers", "outstanding requests"] {
            let octets =
                |account: &Account| account.structure(name).map(|row| (row.conventional, row.on_chip));
            let (small, large) = (octets(&one).expect("it is there"), octets(&ten).expect("it is there"));
            assert_eq!((small.0 * 10, small.1 * 10), large, "{name}");
        }
        assert_eq!(one.structure("receiving buffer"), ten.structure("receiving buffer"));
    }

    #[test]
    fn what_is_not_on_the_chip_is_in_the_hosts_memory() {
        let cx5 = of("cx5", 1_000);
        let contexts = cx5.structure("queue pair contexts").expect("it is there");
        assert_eq!((contexts.on_chip, contexts.off_chip), (256 * 375, 744 * 375));
        assert_eq!(cx5.resident, Some(256));
        assert_eq!(cx5.chip, 2 << 20, "the chip's memory is known");
    }

    #[test]
    fn bitmaps_that_software_keeps_are_in_the_hosts_memory() {
        let bitmaps = |name| {
            let account = of(name, 10_000);
            account.structure("bitmaps").map(|row| (row.on_chip, row.off_chip))
        };
        // The 3.0 MB of SRNIC §4.4.2: five bitmaps of 500 bits each.
        assert_eq!(bitmaps("srnic"), Some((0, 3_125_000)));
        assert_eq!(bitmaps("tonic"), Some((480_000, 0)));
    }

    #[test]
    fn performant_queue_pairs_per_mib_are_srnics_and_do_not_depend_on_how_many_are_asked_for() {
        for queue_pairs in [1, 500, 20_000] {
            let (cx5, srnic) = (of("cx5", queue_pairs), of("srnic", queue_pairs));
            assert_eq!((cx5.performant, cx5.performant_per_mib()), (Some(256), Some(128.0)));
            // 10,000 in 4.4 MB, of which the paper makes 2273.
            let per_mib = srnic.performant_per_mib().expect("it has memory");
            assert!((per_mib / 2273.0 - 1.0).abs() < 0.01, "{per_mib}");
        }
        assert_eq!(of("soft-roce", 100).performant_per_mib(), None, "software has no chip");
        // Table 3 has 195 to 300 block RAMs for 1024 flows, of which contexts and bitmaps are not even half.
        assert_eq!(of("tonic", 100).performant_per_mib(), None, "its queues are not known");
    }

    #[test]
    fn contexts_beyond_those_that_a_nic_was_shown_to_hold_are_not_said_to_fit() {
        let known = |name, queue_pairs| {
            let account = of(name, queue_pairs);
            (account.resident, account.performant)
        };
        assert_eq!(known("srnic", 10_000), (Some(10_000), Some(10_000)));
        assert_eq!(known("srnic", 10_001), (None, Some(10_000)));
        assert_eq!(known("tonic", 2_048), (Some(2_048), Some(2_048)), "its Table 4");
        assert_eq!(known("tonic", 100_000), (None, Some(2_048)));
        assert_eq!(known("hdl", 1), (None, None), "nobody says");
        assert_eq!(known("cx5", 100_000), (Some(256), Some(256)));
    }

    #[test]
    fn a_fifo_is_a_receiving_buffer_and_what_a_context_takes_up_is_its_size_where_none_is_given() {
        let buffer = |name| of(name, 10).structure("receiving buffer").cloned().expect("it is there");
        assert_eq!((buffer("cx5").conventional, buffer("cx6").on_chip), (512 << 10, 512 << 10));
        let contexts = of("tonic", 10).structure("queue pair contexts").cloned().expect("it is there");
        assert_eq!((contexts.conventional, contexts.on_chip), (3_400, 3_400));
    }
}
