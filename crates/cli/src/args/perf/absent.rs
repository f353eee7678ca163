//! Options of perftest that `roci perf` has not, and what to use in their place.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, Error};

/// One of them: its letter, its name, whether a value follows, and what to do.
type Absent = (Option<char>, &'static str, bool, &'static str);

const VERBOSE: &str = "--json prints all that was measured";
const NIC: &str = "it is about a NIC, and there is none beneath: leave it out";
const MEMORY: &str = "messages lie in the process's own memory: leave it out";
const PORT: &str = "a device has one port: run a second test beside this one, with another -d and -p";
const RECEIVES: &str = "each queue pair has its own receives, -r of them: leave it out";
const MULTICAST: &str = "there is no multicast";
const BURST: &str = "-l posts requests in lists, and --rate_limit keeps a rate by whole lists";

const ALL: [Absent; 46] = [
    (Some('z'), "com_rdma_cm", false, "-R connects by RDMA-CM, and talks over it as well"),
    (Some('e'), "events", false, "an idle end sleeps by itself: leave it out"),
    (Some('C'), "report-cycles", false, "-H and -U tell the times in microseconds"),
    (Some('g'), "mcg", false, MULTICAST),
    (Some('M'), "MGID", true, MULTICAST),
    (Some('L'), "hop_limit", true, "the time to live is the system's: leave it out"),
    (Some('O'), "dualport", false, PORT),
    (
        Some('W'),
        "report-counters",
        true,
        "the result ends with what was counted, and `roci ctl counters` has more",
    ),
    (Some('X'), "vector", true, NIC),
    (None, "report-per-port", false, PORT),
    (None, "report-both", false, "-b adds both directions up; run a test without it in each direction"),
    (None, "run_infinitely", false, "-D SECONDS, in a loop of the shell"),
    (None, "reversed", false, "start the server here and the client there"),
    (None, "perform_warm_up", false, "-D, with -f for what does not count"),
    (None, "cpu_util", false, "run it under the shell's `time`"),
    (None, "out_json", false, "--json prints the result: `--json > FILE`"),
    (None, "out_json_file", true, "--json prints the result: `--json > FILE`"),
    (None, "report-min-max", false, VERBOSE),
    (None, "ipv6", false, "name the IPv6 address, as HOST and with -d"),
    (None, "ipv6-addr", false, "name the IPv6 address, as HOST and with -d"),
    (None, "source_ip", true, "-d names our address"),
    (None, "bind_source_ip", true, "-d names our address"),
    (None, "dont_xchg_versions", false, "both ends tell their versions: leave it out"),
    (None, "force-link", true, "the link is Ethernet: leave it out"),
    (None, "dlid", true, NIC),
    (None, "pkey_index", true, NIC),
    (None, "flow_label", true, NIC),
    (None, "use_ooo", false, NIC),
    (None, "use_old_post_send", false, NIC),
    (None, "disable_pcie_relaxed", false, NIC),
    (None, "no_lock", false, NIC),
    (None, "inline_recv", true, NIC),
    (None, "use-null-mr", false, NIC),
    (None, "odp", false, MEMORY),
    (None, "mmap", true, MEMORY),
    (None, "mmap-offset", true, MEMORY),
    (None, "mr_per_qp", false, MEMORY),
    (None, "use_hugepages", false, MEMORY),
    (None, "use_cuda", true, MEMORY),
    (None, "use-srq", false, RECEIVES),
    (None, "recv_post_list", true, RECEIVES),
    (None, "burst_size", true, BURST),
    (None, "typical_pkt_size", true, BURST),
    (None, "latency_gap", true, "messages follow each other at once: leave it out"),
    (None, "wait_destroy", true, "an end goes when the test is over: leave it out"),
    (None, "write_with_imm", false, "send-bw and send-lat have messages that take a receive"),
];

/// The command, which knows them without showing them: else clap would take each for a misspelling of another option.
pub(crate) fn know(command: Command) -> Command {
    command.args(ALL.map(|(letter, name, has_value, _)| {
        let arg = Arg::new(name).long(name).hide(true).required(false);
        let arg = match letter {
            Some(letter) => arg.short(letter),
            None => arg,
        };
        if has_value { arg.action(ArgAction::Append) } else { arg.action(ArgAction::Count) }
    }))
}

/// An error whose tip is one of them, which would be refused, has what begins as was written in its place, if anything does.
pub(crate) fn amend(error: &mut Error, all: &Command) {
    let (kind, context) = (error.kind(), |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.strip_prefix("--").map(str::to_owned),
        _ => None,
    });
    let (Some(written), Some(tip)) = (context(ContextKind::InvalidArg), context(ContextKind::SuggestedArg))
    else {
        return;
    };
    if kind != ErrorKind::UnknownArgument || ALL.iter().all(|(_, name, ..)| *name != tip) {
        return;
    }
    error.remove(ContextKind::SuggestedArg);
    let perf = all.find_subcommand("perf").into_iter().flat_map(Command::get_arguments);
    let shown = perf.filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
    let near: Vec<String> =
        shown.filter(|long| long.starts_with(&written)).map(|long| format!("--{long}")).collect();
    if !near.is_empty() {
        error.insert(ContextKind::SuggestedArg, ContextValue::Strings(near));
    }
}

/// Why the command line is refused, where it has one of them.
pub(crate) fn judge(matches: &ArgMatches) -> Option<String> {
    let (letter, name, _, remedy) = ALL.into_iter().find(|(_, name, has_value, _)| match has_value {
        true => matches.contains_id(name),
        false => matches.get_count(name) > 0,
    })?;
    let letter = letter.map_or(String::new(), |letter| format!(" (-{letter})"));
    Some(format!("perftest's --{name}{letter} is not there: {remedy}"))
}
