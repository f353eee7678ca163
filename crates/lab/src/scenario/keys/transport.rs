//! The keys of `[transport]`, of congestion control and of `[application]`.

use super::{COUNT, Section, key, section};

/// Reliability and congestion control.
pub static TRANSPORT: Section = section(
    "transport",
    &[
        key(
            "service",
            "`\"RC\"` or `\"UC\"`",
            "`\"RC\"`",
            "What queue pairs are: reliable connections, or unreliable ones, of which nobody acknowledges or repeats anything ([below](#unreliable-connections)).",
        ),
        key(
            "recovery",
            "`\"go-back-n\"`, `\"irn\"`, `\"srnic\"`, `\"reno\"`, `\"newreno\"`, `\"sack\"` or `\"ndp\"`",
            "`\"irn\"` with law `homa`, else `\"go-back-n\"`",
            "How losses are repaired. `reno`, `newreno` and `sack` are TCP's, with a congestion window in packets, one for requests and one for READ responses; a law may limit \
             what is sent besides.",
        ),
        key(
            "timeout",
            "a time; `\"0s\"`: never",
            "`\"16ms\"` where nothing is lost (`switch.pfc` on, data on priorities of `switch.classes.pause` alone, no link that loses), else `\"500us\"`; with law `homa` or `recovery = \"ndp\"` `\"10ms\"`",
            "The local ACK timeout. It is longer where PFC pauses ports, as acknowledgements wait behind those, and with `homa` and `ndp`, whose receivers say what is sent and what is missing. It restarts on each acknowledging progress. For `irn` it is RTO_high, and \
             RTO_low, where it runs out with at most three packets in flight, is 5/16 of it: `\"320us\"` gives the paper's 320 and \
             100 µs. It must exceed the round trip. `reno`, `newreno` and `sack` double it with each timeout in a row.",
        ),
        key(
            "retry",
            "a whole number, 0 to 7",
            "`7`",
            "Retransmissions without progress before a queue pair fails: after timeouts, and with `go-back-n` also after NAKs and for READ responses that are missing. To the others a NACK is news of one packet among many, and costs nothing. With `ndp` each answer restores them, as progress does.",
        ),
        key(
            "rnr_retry",
            "a whole number, 0 to 7",
            "`7`",
            "Retries without progress when the receiver is not ready (`[application]` says when it is); 7: for ever.",
        ),
        key("min_rnr_timer", "a time", "`\"10us\"`", "The wait that a receiver which is not ready asks for."),
        key(
            "ack_every",
            "a whole number, 1 to 65535",
            "`1`",
            "Packets for each acknowledgement, at most: the last of a message always gets one, and a window two or more. `timeout` runs from the first packet that asks for one.",
        ),
        key(
            "ring",
            "a whole number, 1 to 15",
            "`4`",
            "Segments that a queue pair generates ahead of sending.",
        ),
        key(
            "layout",
            "`\"standard\"`, `\"irn\"`, `\"srnic\"`, `\"ndp\"`, `\"homa\"`, `\"cc\"`, or a table (`cc`)",
            "`\"homa\"` with that law, else `\"standard\"` with `recovery = \"go-back-n\"`, `\"srnic\"` and `\"ndp\"` with those, else `\"irn\"`",
            "Which headers the packets carry; their octets are charged on the wire.",
        ),
        key(
            "max_rd_atomic",
            "a whole number, 1 to 255",
            "`16`",
            "READs and atomics that may be outstanding on a queue pair.",
        ),
        key(
            "max_in_flight",
            "a whole number, 0 to 8388608",
            "`0`: no bound of its own",
            "Packets that may be unacknowledged whatever the law says (IRN's BDP-FC). All recoveries but `go-back-n` have at \
             most 2048 in flight, for so long are their bitmaps, or, where more are asked for here, the next power of two, at most \
             8192; congestion windows of `reno`, `newreno` and `sack` end at 2048. READ responses of `go-back-n` are not acknowledged, and \
             not bounded by it.",
        ),
        key(
            "bitmaps",
            "a whole number, 0 to 16777216",
            "two for each queue pair",
            "Bitmaps that a host has for senders in a loss, and as many for receivers with a gap; a queue pair takes one of them for requests, \
             and one for READ responses, while it needs it. Who finds none keeps nothing that comes out of order and sends more again; \
             `bitmaps_refused` in `hosts[]` of `summary.json` counts that.",
        ),
        key(
            "initial_window",
            "a whole number, 1 to 2048",
            "`10`",
            "The first congestion window of `reno`, `newreno` and `sack`, in packets.",
        ),
        key(
            "paths",
            "`\"flow\"`, `\"ops\"`, `\"reps\"` or a table",
            "`\"flow\"`",
            "Who chooses among equal paths where `switch.routing` is `\"ecmp\"`, by the UDP source port that switches hash: a queue pair has one port for all its \
             packets (`\"flow\"`), each packet takes one at random (`\"ops\"`, oblivious packet spraying), or one again whose packet was \
             acknowledged without a mark (`\"reps\"`). See [below](#transportpaths).",
        ),
        key(
            "control",
            "the name of a law, or a table",
            "`{ law = \"ndp\" }` with that `recovery`, `{ law = \"dctcp\", preset = \"sigcomm10\" }` with `\"srnic\"`, else `{ law = \"dcqcn\", preset = \"sigcomm15\" }`",
            "The congestion control.",
        ),
        key(
            "on",
            "a list of tables",
            "none; `control = \"none\"` for `scale_up` of `kind = \"rails\"`",
            "Congestion control on single networks of hosts with several NICs.",
        ),
    ],
);

/// Senders that choose paths.
pub static PATHS: Section = section(
    "transport.paths",
    &[
        key("by", "`\"ops\"` or `\"reps\"`", "required", "How a packet chooses its port."),
        key(
            "entropies",
            "a whole number, 1 to 16384",
            "`16384`",
            "How many ports there are to choose from: what UEC calls the number of entropy values.",
        ),
        key(
            "explore",
            "a whole number, 0 to 65535",
            "`16`",
            "With `\"reps\"`: packets of a queue pair that take a port at random at its beginning, and again after a `freeze`.",
        ),
        key(
            "freeze",
            "a time",
            "`\"10ms\"`",
            "With `\"reps\"`: how long after a timeout a queue pair takes no ports but those that it knows; `\"0s\"`: it never does so.",
        ),
    ],
);

/// Congestion control on one network.
pub static TRANSPORT_ON: Section = section(
    "transport.on",
    &[
        key(
            "switches",
            "a list of names of switches; `*` in one stands for anything",
            "one of the two is required",
            "The network meant: the NICs that are linked to one of these.",
        ),
        key(
            "hosts",
            "a list of names of hosts or NICs; `*` in one stands for anything",
            "one of the two is required",
            "The network meant: these NICs, such as `\"h*.1\"`.",
        ),
        key(
            "control",
            "as `transport.control`",
            "what they have elsewhere",
            "The congestion control of flows between two NICs of that network, whatever `transport.control`, their table or their own `control` says.",
        ),
    ],
);

/// The CC header: at most 16 words of four octets.
pub static LAYOUT: Section = section(
    "transport.layout",
    &[
        key("time", "`true` or `false`", "`true`", "Whether it carries hardware time (2 words)."),
        key("words", "a whole number, 0 to 16", "`0`", "Words of the law's own."),
    ],
);

/// Congestion control; the law's own keys come besides.
pub static CONTROL: Section = section(
    "transport.control",
    &[
        key(
            "law",
            "the name of a law, such as `\"dcqcn\"` or `\"none\"`",
            "`\"ndp\"` with that `recovery`, `\"dctcp\"` with `\"srnic\"`, else `\"dcqcn\"`",
            "The law. A flow's own `control` has the same default, whatever `transport.control` says.",
        ),
        key(
            "preset",
            "the name of a preset of the law",
            "the law's first",
            "Where the law's other keys take their values from.",
        ),
        key(
            "elf",
            "a file, from the scenario's folder or where the command runs, or an image that comes with Rocinante, such as `\"firmware/dcqcn.elf\"`",
            "required by law `\"program\"`",
            "The program's image. `[[at]]` may write it: another program takes the place of the one that runs.",
        ),
        key(
            "context",
            "a table of the program's own names, such as `{ total_credit = \"64KiB\" }`",
            "zeros",
            "Words of a new queue pair's context in law `\"program\"`, or parameters of the program: numbers, octets, rates (kept in kb/s), times (kept in ns) or fractions (`0.95`, `1/256`, kept in 16.16).",
        ),
        key(
            "fallback",
            "`\"dcqcn\"`, `\"none\"`, `\"timely\"`, `\"dctcp\"`, `\"theta-powertcp\"`, `\"swift\"` or `\"nscc\"`, or a table like `control`",
            "`\"dcqcn\"` for a program that hears of `CE`, of data or of CNPs, else `\"dctcp\"`",
            "The law that takes over a queue pair from a program that traps, takes too many cycles, sends nothing for ever or answers nonsense. Where it is `\"dcqcn\"` and the program hears neither of `CE` nor of data, the NIC answers marks with CNPs from the start, since a receiver does not learn that the sender's program has failed; the program hears them if it traces `CNP`.",
        ),
        key(
            "check",
            "`true` or `false`",
            "`true`",
            "Whether a program must be proved to answer each event within `cycles`; `false` stops it when it does not.",
        ),
        key(
            "cycles",
            "1 to 1000000000",
            "`10000`",
            "The most clock cycles of a program's core that an event may take.",
        ),
        key(
            "csr",
            "1 to 1000",
            "what the NIC's cores take (`cores.word`, `cores.register`), else `2`",
            "Clock cycles of an instruction that reads or writes one of a program's registers.",
        ),
        key(
            "executor",
            "`\"translated\"` or `\"interpreted\"`",
            "`\"translated\"`",
            "Whether a program is translated to host code. No result depends on it.",
        ),
        key(
            "record",
            "1 to 1000000000",
            "none",
            "How many events of each host are written to `events.txt` in the output, for `roci program profile --events`.",
        ),
    ],
);

/// What takes the SENDs that arrive.
pub static APPLICATION: Section = section(
    "application",
    &[
        key(
            "rx_depth",
            COUNT,
            "one for each message that the sender may have outstanding",
            "Receive requests that are posted on each queue pair at the start, each for one SEND; perftest calls it so. A SEND that \
             finds none is answered with an RNR NAK.",
        ),
        key(
            "rx_time",
            "a time",
            "`\"0s\"`",
            "How long a message keeps the application of its queue pair busy, one after the other, before it posts the receive request \
             anew.",
        ),
    ],
);
