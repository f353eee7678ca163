//! What can be asked for.

pub(crate) mod ctl;
pub(crate) mod dash;
pub(crate) mod perf;
pub(crate) mod ping;
pub(crate) mod switch;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use ctl::CTL;
use dash::DASH;
use perf::PERF;
use ping::PING;
use roci_units::Bytes;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use switch::SWITCH;

/// RDMA (RoCEv2) transports and congestion control, in a simulated data centre and on a real network.
#[derive(Debug, Parser)]
#[command(name = "roci", version, arg_required_else_help = true, disable_help_subcommand = true, after_help = EXIT)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the command line asks for; it ends the process where that makes no sense.
pub(crate) fn parse() -> Arguments {
    let matches = known().try_get_matches().unwrap_or_else(|mut error| {
        perf::absent::amend(&mut error, &known());
        error.exit()
    });
    if let Some(("perf", asked)) = matches.subcommand()
        && let Some(why) = perf::absent::judge(asked)
    {
        let mut all = known();
        all.build();
        if let Some(perf) = all.find_subcommand_mut("perf") {
            perf.error(ErrorKind::UnknownArgument, why).exit();
        }
    }
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The command, and what is known of options that it has not.
fn known() -> clap::Command {
    with_negative_values(Arguments::command().mut_subcommand("perf", perf::absent::know))
}

/// The command with options that take `-5` for a value: each then says which values it takes, in place of advice to write
/// `-- -5`, which would be no value of it either.
fn with_negative_values(command: clap::Command) -> clap::Command {
    let option = |arg: clap::Arg| {
        let takes = !arg.is_positional() && arg.get_action().takes_values();
        arg.allow_negative_numbers(takes)
    };
    command.mut_args(option).mut_subcommands(with_negative_values)
}

const EXIT: &str = "It exits with 0 when all is done, 1 when a run failed, 2 when the request was wrong.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run scenarios: a table here, results and a report in a folder
    #[command(after_help = RUN)]
    Run(Run),
    /// Run a scenario with every combination of some values
    #[command(after_help = SWEEP)]
    Sweep(Sweep),
    /// Run scenarios side by side, or one with several congestion controls
    #[command(after_help = COMPARE)]
    Compare(Compare),
    /// Find settings of a scenario: the best of a metric within limits on others
    #[command(after_help = TUNE)]
    Tune(Tune),
    /// Make a scenario of a configuration of HPCC's simulator, or of Chakra traces
    #[command(after_help = IMPORT)]
    Import(Import),
    /// Run the figures of papers and print the paper's values beside ours
    #[command(after_help = REPRODUCE)]
    Reproduce(Reproduce),
    /// List NIC architectures, show their values, account for their memory
    #[command(after_help = NIC)]
    Nic(Nic),
    /// Write congestion control as a program in C: build it, check it, profile it
    #[command(after_help = PROGRAM)]
    Program(Program),
    /// Measure bandwidth and latency on a real network, with perftest or roci at the other end
    #[command(after_help = PERF, version, infer_long_args = true)]
    Perf(perf::Perf),
    /// Ping by RDMA, with rping or roci at the other end
    #[command(after_help = PING, infer_long_args = true)]
    Ping(ping::Ping),
    /// Read and write registers of a running endpoint, and read its counters
    #[command(after_help = CTL)]
    Ctl(ctl::Ctl),
    /// Watch what congestion control does on a real network, and change it: queue pairs of running endpoints, live
    #[command(after_help = DASH)]
    Dash(dash::Dash),
    /// Be a switch on a real network, which queues, marks and pauses as the simulated ones do
    #[command(after_help = SWITCH)]
    Switch(switch::Switch),
    /// Print this message, or the help of a command
    Help(Help),
}

const RUN: &str = "\
Examples:
  roci run scenarios/advcam-incast.toml
  roci run scenarios/advcam-incast.toml --set switch.ecn=false
  roci run scenarios/incast-32.toml --seeds 1..8 --out out/eight-seeds
  roci run scenarios/*.toml --json --quiet > summaries.json";

const SWEEP: &str = "\
Examples:
  roci sweep scenarios/incast-32.toml --set switch.ecn.kmin=50KB,100KB,400KB
  roci sweep scenarios/incast-32.toml --set traffic.0.senders=1..32 --set switch.pfc=true,false
  roci sweep scenarios/websearch-fat-tree.toml --set traffic.0.load=0.3,0.5,0.7 --seeds 1..5";

const COMPARE: &str = "\
Examples:
  roci compare scenarios/incast-32.toml scenarios/permutation-128.toml
  roci compare scenarios/incast-32.toml --control dcqcn,none
  roci compare scenarios/incast-32.toml --seeds 1..5 \\
    --control '{ law = \"dcqcn\", preset = \"hpcc\" },dcqcn,none'";

const IMPORT: &str = "\
Examples:
  roci import mix/config.txt
  roci import mix/config.txt --out hpcc.toml && roci run hpcc.toml
  roci import traces/step && roci run traces/step.toml --set traffic.0.algorithm=tree
  roci import traces --groups comm_group.json --peak-perf 312 --local-mem-bw 1560 --out step.toml

Topology and flow files stay where they are. What the scenario does not say as the configuration
does is printed, and is in its first lines. Of Chakra traces, step.0.et and so on, a schedule is
made as well, which the scenario runs on a network that is yours to replace; how collectives are
done stands there too.";

const TUNE: &str = "\
Examples:
  roci tune scenarios/incast-32.toml --vary switch.ecn.kmin=10KB..400KB --keep drops=0
  roci tune scenarios/advcam-incast.toml --vary transport.control.rai=1Mb/s..100Mb/s --aim fairness
  roci tune scenarios/uneven-16.toml --vary switch.routing=ecmp,spray,adaptive,flowlet \\
    --vary switch.wcmp=true,false --aim completion-mean

Metrics of all flows, or of those of one [[traffic]] table (incast:slowdown-p99):
  completion-mean, completion-p99, slowdown-mean, slowdown-p99, goodput, fairness, completed,
  offered, timeouts, reordered
Of collectives, of schedules and of requests:
  iteration-mean, busbw, over-ideal; goal-time; request-mean, request-p99, request-rate
Others:
  drops, lost, marks, pauses, paused, buffered, queue-mean, queue-p99, imbalance
The best are held against the scenario as it is with --seeds [default: 1..5], which the search does
not use.";

const REPRODUCE: &str = "\
Examples:
  roci reproduce --list
  roci reproduce lst-fig5
  roci reproduce lst-fig5 --ablate
  roci reproduce validation
  roci reproduce all --seeds 1..3 --out out/figures";

const NIC: &str = "\
Examples:
  roci nic list
  roci nic show srnic
  roci nic memory srnic --qps 10000
  roci nic memory my-nic.toml --qps 10000 --json";

const NIC_MEMORY: &str = "\
Examples:
  roci nic memory srnic --qps 10000               # on the chip, off it, and in a conventional NIC
  roci nic memory my-nic.toml --qps 10000 --json";

#[derive(Debug, Args)]
pub(crate) struct Nic {
    #[command(subcommand)]
    pub(crate) command: NicCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NicCommand {
    /// List the NICs that exist
    List,
    /// Show the values of a NIC, and where each comes from
    Show(NicShow),
    /// Account for the memory of a NIC, on the chip and off it
    #[command(after_help = NIC_MEMORY)]
    Memory(NicMemory),
}

#[derive(Debug, Args)]
pub(crate) struct NicShow {
    /// The name of a NIC, or a file ending in .toml
    #[arg(value_name = "NIC")]
    pub(crate) nic: String,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NicMemory {
    /// The name of a NIC, or a file ending in .toml
    #[arg(value_name = "NIC")]
    pub(crate) nic: String,
    /// How many queue pairs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    pub(crate) qps: u32,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const PROGRAM: &str = "\
Examples:
  roci program new my-law
  roci program build my-law/my-law.c
  roci program check my-law/my-law.elf
  roci program check firmware/*.elf --clock 1GHz --json
  roci program profile firmware/dcqcn.elf --clock 1GHz --pairs 8
  roci program profile firmware/credit.elf --context total_credit=64KiB
  roci program profile firmware/hpcc.elf --anything --packets 1000000
  roci program profile firmware/dcqcn.elf --events out/recorded/events.txt --nic bluefield3";

#[derive(Debug, Args)]
pub(crate) struct Program {
    #[command(subcommand)]
    pub(crate) command: ProgramCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    /// Compile a program for the cores of a NIC
    Build(ProgramBuild),
    /// Prove that each event ends, within how many cycles, and what else an image needs
    Check(ProgramCheck),
    /// Run a stream of events and tell the cycles of each kind, and the rates that cores of some clock sustain
    Profile(ProgramProfile),
    /// Begin a program: a folder with a skeleton in C and a scenario that runs it
    New(ProgramNew),
}

#[derive(Debug, Args)]
pub(crate) struct ProgramBuild {
    /// The program
    #[arg(value_name = "FILE.c")]
    pub(crate) source: PathBuf,
    /// The image [default: FILE.elf]
    #[arg(short, value_name = "FILE.elf")]
    pub(crate) output: Option<PathBuf>,
    /// For cores without multiplication: products and quotients are calls of libgcc
    #[arg(long)]
    pub(crate) rv32i: bool,
    /// Print what was built as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProgramCheck {
    /// The images: files, or such as firmware/dcqcn.elf, which come with Rocinante
    #[arg(required = true, value_name = "FILE.elf")]
    pub(crate) files: Vec<PathBuf>,
    /// The clock of the cores, for the times beside the cycles [default: that of the NIC's cores]
    #[arg(long, value_name = "FREQUENCY", value_parser = clock)]
    pub(crate) clock: Option<u64>,
    /// The NIC whose cores it is for, a name or a file ending in .toml: what instructions take is theirs (riscv-mini: no NIC's)
    #[arg(long, value_name = "NIC", default_value = "swcc", value_parser = cores)]
    pub(crate) nic: String,
    /// Refuse a program whose events may take more
    #[arg(long, value_name = "CYCLES", default_value_t = roci_lab::program::check::CYCLES_MAX)]
    pub(crate) cycles: u64,
    /// Print what was proved as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProgramProfile {
    /// The image: a file, or one such as firmware/dcqcn.elf, which comes with Rocinante
    #[arg(value_name = "FILE.elf")]
    pub(crate) file: PathBuf,
    /// A word that contexts begin with, such as total_credit=64KiB; again for more
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) context: Vec<String>,
    /// The NIC whose cores it is for, a name or a file ending in .toml: what instructions take is theirs (riscv-mini: no NIC's)
    #[arg(long, value_name = "NIC", default_value = "swcc", value_parser = cores)]
    pub(crate) nic: String,
    /// Events that a run has recorded (`transport.control.record`), instead of a stream drawn from the seed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["packets", "seed"])]
    pub(crate) events: Option<PathBuf>,
    /// How many packets the stream offers
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole(1..=1_000_000_000))]
    pub(crate) packets: u64,
    /// The seed of the stream
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Events of any kind at any time, held against what `check` proves of each, instead of a connection's
    #[arg(long, conflicts_with = "events")]
    pub(crate) anything: bool,
    /// Refuse a program whose events may take more
    #[arg(long, value_name = "CYCLES", default_value_t = roci_lab::program::check::CYCLES_MAX)]
    pub(crate) cycles: u64,
    /// The clock of the cores [default: that of the NIC's]
    #[arg(long, value_name = "FREQUENCY", value_parser = clock)]
    pub(crate) clock: Option<u64>,
    /// How many pairs of a core for what is received and one for what is sent are counted, whatever the NIC has
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) pairs: u32,
    /// Print all as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProgramNew {
    /// The program's name, which is also the folder's
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

/// A size within bounds, in octets or with a unit, as in a scenario: `9000`, `9KB`.
fn size<N: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let octets = text.parse::<Bytes>().map_err(|error| error.to_string())?.0;
        let size = N::try_from(octets).ok().filter(|_| range.contains(&octets));
        size.ok_or_else(|| format!("{octets} octets are not in {}..={}", range.start(), range.end()))
    }
}

/// A whole number of `range`: clap's own for 64 bits does not say which a negative one has missed.
fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("{text} is not in {}..={}", range.start(), range.end()))
    }
}

/// A NIC with cores.
fn cores(text: &str) -> Result<String, String> {
    let valid = || roci_lab::program::machines().collect::<Vec<_>>().join(", ");
    match roci_lab::program::machine(text) {
        Some(_) => Ok(text.to_owned()),
        None => match roci_lab::nic::load(text) {
            Err(error) if text.ends_with(".toml") => Err(error.to_string()),
            _ => Err(format!("these have cores that run programs: {}", valid())),
        },
    }
}

/// A frequency such as 250MHz or "2.4 GHz", in hertz.
fn clock(text: &str) -> Result<u64, String> {
    roci_lab::program::frequency(text).ok_or_else(|| "a frequency reads as 250MHz or 2.4GHz".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The scenario files
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<PathBuf>,
    /// Override a key, such as switch.ecn=false; again for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// The scenario file
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: PathBuf,
    /// Values of a key: a list a,b,c, a range 1..8 with both ends, or one value for all; again for more keys
    #[arg(long, required = true, value_name = "KEY=VALUES")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The scenario files; one with --control, else two or more
    #[arg(required = true, value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<PathBuf>,
    /// The congestion controls to compare: names of laws, or tables as in a scenario, separated by commas
    #[arg(long, value_name = "CONTROLS")]
    pub(crate) control: Option<String>,
    /// Override a key in all of them; again for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// The scenario file
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: PathBuf,
    /// A key, and what it may be: a range LOW..HIGH, such as 10KB..400KB, or a list a,b,c; again for more keys
    #[arg(long, required = true, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// The metric to make small, or great where more of it is better
    #[arg(long, value_name = "METRIC", default_value = "slowdown-p99")]
    pub(crate) aim: String,
    /// A limit on a metric, such as drops=0 or goodput>=90Gb/s; again for more
    #[arg(long, value_name = "METRIC<=BOUND")]
    pub(crate) keep: Vec<String>,
    /// Override a key, such as switch.ecn=false; again for more
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How many configurations are tried at first; half as many follow near the best
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) draws: u32,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A configuration of HPCC's simulator, or Chakra traces: their folder, one of them, or what their names begin with
    #[arg(value_name = "CONFIG|TRACES")]
    pub(crate) given: PathBuf,
    /// The scenario's file; by default beside what is given, with the end `.toml`. The schedule of traces has the end `.goal`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Of traces: the ranks of process groups, {"1": [0, 1], "2": [2, 3]}
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    /// Of traces: how fast nodes compute that say what they do and not how long, in 10^12 operations a second
    #[arg(long, value_name = "TFLOPS", value_parser = above_zero)]
    pub(crate) peak_perf: Option<f64>,
    /// Of traces: how fast such nodes go through memory, in 10^9 octets a second
    #[arg(long, value_name = "GB/S", value_parser = above_zero)]
    pub(crate) local_mem_bw: Option<f64>,
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "give a number above 0".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Reproduce {
    /// Names of figures, or of groups of them such as `lst` and `validation`, or `all`; without any, all are listed
    #[arg(value_name = "FIGURE")]
    pub(crate) figures: Vec<String>,
    /// List these figures, by default all, and run none
    #[arg(long)]
    pub(crate) list: bool,
    /// Switch off the mechanism behind each figure: its rows must then fail (`--list` counts the ablations of each)
    #[arg(long)]
    pub(crate) ablate: bool,
    /// The seeds to run with: a range 1..8 with both ends, or a list 1,2,5 (3 is seed 3 alone) [default: 1..5]
    #[arg(long, value_name = "SEEDS", allow_hyphen_values = true)]
    pub(crate) seeds: Option<String>,
    /// The folder for tables and plots
    #[arg(long, value_name = "FOLDER", default_value = "out/figures")]
    pub(crate) out: PathBuf,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print the rows as JSON in place of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Help {
    /// The command
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The seed, in place of the scenario's
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = whole(0..=i64::MAX.cast_unsigned()))]
    pub(crate) seed: Option<u64>,
    /// Several seeds: a range 1..8 with both ends, or a list 1,2,5 (3 is seed 3 alone); prints means with 95 % confidence intervals
    #[arg(long, value_name = "SEEDS", allow_hyphen_values = true)]
    pub(crate) seeds: Option<String>,
    /// The folder for results [default: out/NAME]; earlier results there are replaced
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print summaries as JSON in place of tables; an array where there are several runs
    #[arg(long)]
    pub(crate) json: bool,
    /// How many runs go on at once [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        known().debug_assert();
    }

    #[test]
    fn a_negative_value_is_refused_with_the_values_that_are_taken() {
        for line in [
            "run x.toml --seed -5",
            "run x.toml --jobs -1",
            "nic memory srnic --qps -1",
            "program profile x.elf --packets -1",
            "perf write-bw 10.0.0.1 -n -5",
        ] {
            let words = std::iter::once("roci").chain(line.split(' '));
            let error = known().try_get_matches_from(words).unwrap_err().to_string();
            assert!(error.contains("invalid value '-") && error.contains("is not in "), "{line}: {error}");
            assert!(!error.contains("'-- -"), "{line}: {error}");
        }
    }
    #[test]
    fn sizes_are_read_with_units_and_an_error_says_what_to_write() {
        let read = |line: &str| {
            let words = std::iter::once("roci").chain(line.split(' '));
            known().try_get_matches_from(words).map_err(|error| error.to_string())
        };
        for (size, octets) in [("9000", 9000), ("9KB", 9000), ("8KiB", 8192), ("1.5kB", 1500)] {
            let matches = read(&format!("switch tap:r0 tap:r1 --mtu {size}")).unwrap();
            let (_, switch) = matches.subcommand().unwrap();
            assert_eq!(switch.get_one::<u16>("mtu"), Some(&octets), "{size}");
        }
        assert!(read("ping -S 1MiB -c -a 10.0.0.1").is_ok());
        let switch = "switch tap:r0 tap:r1 --mtu";
        for (line, why) in [
            (&*format!("{switch} 9k"), "wrong or missing unit; use one of B, KB, MB"),
            (&*format!("{switch} jumbo"), "not a number; write a size such as \"4KB\""),
            (&*format!("{switch} 9KiB"), "9216 octets are not in 576..=9000"),
            (&*format!("{switch} 70KB"), "70000 octets are not in 576..=9000"),
            ("ping -S 16 -c -a 10.0.0.1", "16 octets are not in 17..=16777216"),
            ("ping -S 1M -c -a 10.0.0.1", "use one of B, KB, MB"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
    }
}
