//! Every key of an architecture's TOML: what it means, its kind, and how it is read and shown.

use super::clock::Clock;
use super::spec::{Architecture, Entries, Replacement, Time};
use roci_units::{BitsPerSec, Bytes, Span};

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its path, such as `pcie.read`.
    pub path: &'static str,
    /// What it means.
    pub what: &'static str,
    /// What it takes.
    pub takes: &'static str,
    set: fn(&mut Architecture, &str) -> bool,
    show: fn(&Architecture) -> String,
}

impl Key {
    /// Sets it from text; false where that is not what it takes, and then nothing has changed.
    pub fn set(&self, architecture: &mut Architecture, text: &str) -> bool {
        (self.set)(architecture, text)
    }

    /// Its value, as it would be written.
    pub fn show(&self, architecture: &Architecture) -> String {
        (self.show)(architecture)
    }
}

/// The key at `path`.
pub fn key(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// What a key can hold.
trait Value: Sized {
    const TAKES: &'static str;
    fn parse(text: &str) -> Option<Self>;
    fn show(&self) -> String;
}

impl Value for Span {
    const TAKES: &'static str = "a time, such as \"1.1us\"";
    fn parse(text: &str) -> Option<Self> {
        // A second is far beyond anything in a NIC, and keeps sums of many within range.
        text.parse().ok().filter(|span| *span <= Self::from_secs(1))
    }
    fn show(&self) -> String {
        let ps = self.as_ps();
        match ps {
            0 => "0ns".to_owned(),
            _ if ps.is_multiple_of(1_000) => format!("{}ns", ps / 1_000),
            _ => format!("{ps}ps"),
        }
    }
}

impl Value for Time {
    const TAKES: &'static str = "a time, such as \"10ns\", or cycles of `clock`, such as \"4 cycles\"";
    fn parse(text: &str) -> Option<Self> {
        let cycles = text.strip_suffix("cycles").or_else(|| text.strip_suffix("cycle"));
        match cycles {
            Some(number) => number.trim().parse().ok().filter(|count| *count <= 1_000_000).map(Self::Cycles),
            None => Span::parse(text).map(Self::Span),
        }
    }
    fn show(&self) -> String {
        match self {
            Self::Span(span) => span.show(),
            Self::Cycles(1) => "1 cycle".to_owned(),
            Self::Cycles(cycles) => format!("{cycles} cycles"),
        }
    }
}

impl Value for Option<Clock> {
    const TAKES: &'static str = "a frequency, such as \"300MHz\"";
    fn parse(text: &str) -> Option<Self> {
        Clock::parse(text).map(Some)
    }
    fn show(&self) -> String {
        self.map_or("none".to_owned(), |clock| clock.to_string())
    }
}

impl Value for Option<BitsPerSec> {
    const TAKES: &'static str = "a rate, such as \"126Gb/s\", or \"unlimited\"";
    fn parse(text: &str) -> Option<Self> {
        match text {
            "unlimited" => Some(None),
            _ => text.parse::<BitsPerSec>().ok().filter(|rate| rate.0 >= 1_000_000).map(Some),
        }
    }
    fn show(&self) -> String {
        self.map_or("unlimited".to_owned(), |rate| rate.to_string())
    }
}

impl Value for Bytes {
    const TAKES: &'static str = "a size, such as \"16KiB\"";
    fn parse(text: &str) -> Option<Self> {
        text.parse::<Self>().ok().filter(|bytes| bytes.0 <= 1 << 50)
    }
    fn show(&self) -> String {
        match self.0 {
            0 => "0B".to_owned(),
            octets if octets.is_multiple_of(1024) => format!("{}KiB", octets / 1024),
            octets => format!("{octets}B"),
        }
    }
}

impl Value for Option<Bytes> {
    const TAKES: &'static str = "a size of 16KiB or more, or \"unlimited\"";
    fn parse(text: &str) -> Option<Self> {
        match text {
            "unlimited" => Some(None),
            _ => Bytes::parse(text).filter(|bytes| bytes.0 >= 16 << 10).map(Some),
        }
    }
    fn show(&self) -> String {
        self.map_or("unlimited".to_owned(), |bytes| bytes.show())
    }
}

impl Value for Entries {
    const TAKES: &'static str = "a whole number below 2^24, or \"all\"";
    fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => Some(Self::All),
            _ => text.parse().ok().filter(|count| *count < 1 << 24).map(Self::Count),
        }
    }
    fn show(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Count(count) => count.to_string(),
        }
    }
}

impl Value for Replacement {
    const TAKES: &'static str = "\"lru\" or \"random\"";
    fn parse(text: &str) -> Option<Self> {
        match text {
            "lru" => Some(Self::Lru),
            "random" => Some(Self::Random),
            _ => None,
        }
    }
    fn show(&self) -> String {
        match self {
            Self::Lru => "lru",
            Self::Random => "random",
        }
        .to_owned()
    }
}

impl Value for u32 {
    const TAKES: &'static str = "a whole number, 0 to 65536";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number| *number <= 65_536)
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for u16 {
    const TAKES: &'static str = "a whole number of cycles, 1 to 1000";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|cycles| (1..=1_000).contains(cycles))
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const TAKES: &'static str = "true or false";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// What a field takes, by its type.
const fn takes<V: Value>(_of: fn(&Architecture) -> &V) -> &'static str {
    V::TAKES
}

macro_rules! keys {
    ($($path:literal => $($field:ident).+, $what:literal;)*) => {
        /// Every key, in the order in which they are shown.
        pub static KEYS: &[Key] = &[$(Key {
            path: $path,
            what: $what,
            takes: takes(|a| &a.$($field).+),
            set: |a, text| Value::parse(text).map(|value| a.$($field).+ = value).is_some(),
            show: |a| Value::show(&a.$($field).+),
        }),*];
    };
}

keys! {
    "clock" => clock, "The clock that cycles are counted by.";
    "pcie.attached" => pcie.attached, "Whether payload, requests and contexts lie in the host's memory, beyond PCIe.";
    "pcie.read" => pcie.read, "From a read's request to its first octet.";
    "pcie.write" => pcie.write, "From a write's last octet on the link until it is in the host's memory.";
    "pcie.rate" => pcie.rate, "The rate of the link, each way.";
    "pcie.payload" => pcie.payload, "The most octets that one transaction carries.";
    "pcie.overhead" => pcie.overhead, "Octets of each transaction besides.";
    "units.count" => units.count, "Processing units, each with one piece of work at a time; 0: a pipeline, in which packets of all queue pairs keep their order.";
    "units.send" => units.send, "How long a unit is taken by the first packet that it sends in a turn.";
    "units.more" => units.more, "How long it is taken by each further packet of the turn.";
    "units.receive" => units.receive, "How long a unit is taken by a packet that arrived.";
    "units.copy" => units.copy, "How long it is taken by each KiB of payload, for copies.";
    "units.jitter" => units.jitter, "How long it is taken besides, at random: the mean of an exponential distribution.";
    "cores.pairs" => cores.pairs, "Pairs of cores that run the law, one for what is sent and one for all else; 0: the engine runs it.";
    "cores.shared" => cores.shared, "Whether a single core does the work of both of a pair.";
    "cores.clock" => cores.clock, "Their clock; none: that of the NIC.";
    "cores.load" => cores.load, "From an event's turn, with its context at hand, until the core can begin; cycles are the cores'.";
    "cores.word" => cores.word, "Cycles of an instruction that reads or writes a word of context or header, in a program.";
    "cores.register" => cores.register, "Cycles of one on another register: event, clock, credit.";
    "cores.costs.alu" => cores.costs.alu, "Cycles of arithmetic, logic, a shift, a comparison, LUI and AUIPC, in a program.";
    "cores.costs.load" => cores.costs.load, "Cycles of a load.";
    "cores.costs.store" => cores.costs.store, "Cycles of a store.";
    "cores.costs.branch_untaken" => cores.costs.branch_untaken, "Cycles of a conditional branch that falls through.";
    "cores.costs.branch_taken" => cores.costs.branch_taken, "Cycles of a conditional branch that is taken.";
    "cores.costs.jump" => cores.costs.jump, "Cycles of JAL.";
    "cores.costs.jump_register" => cores.costs.jump_register, "Cycles of JALR.";
    "cores.costs.multiply" => cores.costs.multiply, "Cycles of MUL and its high-word forms.";
    "cores.costs.divide" => cores.costs.divide, "Cycles of DIV, REM and their unsigned forms.";
    "cores.costs.fence" => cores.costs.fence, "Cycles of FENCE; FENCE.I takes one more.";
    "cores.native" => cores.native, "Cycles of an event of a law that is no program.";
    "cores.queue" => cores.queue, "Packets that a pair has still to hear of before further ones for it wait in the receive FIFO, and all behind them.";
    "cores.handler" => cores.handler, "From the hint of what is to be sent until it stands in line for its core.";
    "cores.loop_back" => cores.loop_back, "From a core's refusal until the packet stands in line again.";
    "table.size" => table.size, "Octets that the cores keep of a queue pair.";
    "table.line" => table.line, "Octets of a line of the table; 0: a context is one line.";
    "table.lines" => table.lines, "Lines of the table on the chip.";
    "table.ways" => table.ways, "Lines of a set; 0: any may stand anywhere.";
    "table.memory" => table.memory, "How long a line takes that is not on the chip.";
    "table.hint" => table.hint, "Whether lines are fetched as soon as the queue pair's number is known.";
    "send.interval" => send.interval, "From one decision whose turn it is to the next.";
    "send.latency" => send.latency, "From the decision to the packet, besides what is waited for.";
    "send.pace" => send.pace, "From one packet handed to the port to the next.";
    "send.slack" => send.slack, "How much of the time by which a queue pair's packets leave later than its pace lets them is made up, at most.";
    "send.fetch" => send.fetch, "Send requests (WQEs) fetched at once where they stay (`wqe.entries`) and their queue pair comes again; else as many as a turn serves.";
    "send.serve" => send.serve, "Send requests served in a turn, at most.";
    "send.burst" => send.burst, "Octets of payload sent in a turn, at most, though at least one packet.";
    "send.whole" => send.whole, "Whether a turn about whose packets cores are asked, one by one, goes on until its message ends.";
    "send.turns" => send.turns, "Turns under way at once.";
    "send.buffer" => send.buffer, "Octets of payload fetched, or being fetched, ahead of the port.";
    "send.inline" => send.inline, "Payload up to this long lies in the send request itself, at most 1KiB; each takes as much more, in steps of 64 octets.";
    "receive.interval" => receive.interval, "From one packet taken out of the receive FIFO to the next.";
    "receive.latency" => receive.latency, "From there to the engine's decision, besides what is waited for.";
    "receive.fifo" => receive.fifo, "Octets of frames that wait or are worked on; a NIC that it fills sends PAUSE, or drops without PFC.";
    "receive.ack_after_placement" => receive.ack_after_placement, "Whether the acknowledgement waits until the payload is in the host's memory.";
    "context.size" => context.size, "Octets of a queue pair's context.";
    "context.entries" => context.entries, "Contexts on the chip; the others are in the host's memory.";
    "context.ways" => context.ways, "Contexts of a set; 0: any may stand anywhere.";
    "context.replacement" => context.replacement, "Which context of a set makes way: the least recently used (\"lru\"), or any (\"random\").";
    "wqe.size" => wqe.size, "Octets of a send request, without payload that lies in it.";
    "wqe.entries" => wqe.entries, "Queue pairs whose fetched send requests stay on the chip after their turn.";
    "wqe.ways" => wqe.ways, "Of them, those of a set; 0: any may stand anywhere.";
    "wqe.replacement" => wqe.replacement, "Which of a set makes way, as `context.replacement`.";
    "receive_wqe.size" => receive_wqe.size, "Octets of a receive request.";
    "receive_wqe.entries" => receive_wqe.entries, "Queue pairs whose receive requests stay on the chip, where `send.fetch` come at once for one that comes again.";
    "receive_wqe.ways" => receive_wqe.ways, "Of them, those of a set; 0: any may stand anywhere.";
    "receive_wqe.replacement" => receive_wqe.replacement, "Which of a set makes way, as `context.replacement`.";
    "mtt.size" => mtt.store.size, "Octets of an address translation.";
    "mtt.entries" => mtt.store.entries, "Address translations on the chip.";
    "mtt.ways" => mtt.store.ways, "Address translations of a set; 0: any may stand anywhere.";
    "mtt.replacement" => mtt.store.replacement, "Which of a set makes way, as `context.replacement`.";
    "mtt.page" => mtt.page, "Octets of a page.";
    "congestion.halt" => congestion.halt, "How long a queue pair sends nothing after a CNP that finds it sending.";
    "congestion.delay" => congestion.delay, "How long a CNP that arrived is on its way to the law.";
    "recovery.nak" => recovery.nak, "How long a NAK is on its way to the engine, while its queue pair goes on sending.";
    "recovery.octets" => recovery.octets, "Octets that the host's software is told of each packet out of order and each NACK of a loss; 0: the NIC decides at once.";
    "recovery.software" => recovery.software, "What that software takes for each of them, between the write that tells it and its answer.";
    "recovery.cores" => recovery.cores, "Cores of the host that run that software, at least 1; a queue pair's is that of its number modulo this.";
    "timers.interval" => timers.interval, "From one expired timer that is dealt with to the next; 0: all at once.";
    "memory.chip" => memory.chip, "Memory on the chip in all, where it is known.";
    "memory.queue_pairs" => memory.queue_pairs, "Queue pairs that it was shown to serve with all their contexts on the chip; 0: not known.";
    "memory.receive_buffer" => memory.receive_buffer, "The receiving buffer.";
    "memory.scheduler" => memory.scheduler, "The scheduler's memory, whatever the number of queue pairs.";
    "memory.schedule_entry" => memory.schedule_entry, "Octets of an entry of the schedule queue, one per queue pair.";
    "memory.context_stored" => memory.context_stored, "Octets that a context takes up on the chip, padding included; 0: its size.";
    "memory.registered" => memory.registered, "Registered memory, for the size of the translation table.";
    "memory.window" => memory.window, "Packets in flight of a queue pair that selective repeat tracks.";
    "memory.bitmaps" => memory.bitmaps, "Bitmaps of that many bits on the chip, per queue pair.";
    "memory.reorder" => memory.reorder, "Reordering buffer on the chip, per queue pair.";
    "memory.outstanding_entry" => memory.outstanding_entry, "Octets of an entry of the table of outstanding requests, of which there is one per packet in flight.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_shows_it_reads_again() {
        for preset in crate::arch::presets::all() {
            let mut copy = Architecture { name: preset.name.clone(), ..Architecture::default() };
            for key in KEYS {
                let shown = key.show(&preset);
                if shown != key.show(&copy) {
                    assert!(key.set(&mut copy, &shown), "{} = {shown}", key.path);
                }
                assert_eq!(key.show(&copy), shown, "{}", key.path);
            }
        }
    }

    #[test]
    fn what_is_shown_is_not_rounded() {
        for (path, text, shown) in [
            ("pcie.rate", "126000Mb/s", "126Gb/s"),
            ("pcie.rate", "2500Kb/s", "2500Kb/s"),
            ("clock", "1.5kHz", "1.500kHz"),
            ("clock", "1.234MHz", "1234kHz"),
        ] {
            let key = key(path).expect("it exists");
            let mut architecture = Architecture::default();
            for text in [text, shown] {
                assert!(key.set(&mut architecture, text), "{text}");
                assert_eq!(key.show(&architecture), shown);
            }
        }
    }

    #[test]
    fn a_value_of_the_wrong_kind_changes_nothing() {
        let mut architecture = Architecture::default();
        for key in KEYS {
            assert!(!key.set(&mut architecture, "-1 furlong"), "{}", key.path);
        }
        assert_eq!(architecture, Architecture::default());
    }

    #[test]
    fn a_time_may_be_given_in_cycles() {
        let mut architecture = Architecture::default();
        for (path, text) in [("clock", "100MHz"), ("send.latency", "4 cycles"), ("send.interval", "1 cycle")]
        {
            assert!(key(path).expect("it exists").set(&mut architecture, text));
        }
        assert_eq!(architecture.span(architecture.send.latency), Span::from_nanos(40));
        assert_eq!(architecture.span(architecture.send.interval), Span::from_nanos(10));
    }
}
