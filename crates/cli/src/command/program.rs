//! `roci program`: congestion control as programs in C.

use crate::Failure;
use crate::args::{Program, ProgramBuild, ProgramCheck, ProgramCommand, ProgramNew, ProgramProfile};
use crate::execute::print;
use crate::table;
use roci_lab::program::build::{Build, BuildError, Target};
use roci_lab::program::check::{Check, CheckError, Held};
use roci_lab::program::events::Events;
use roci_lab::program::profile::{LINKS_GBPS, Profile, ProfileError, Rate, spread};
use roci_lab::program::stream::Kind;
use roci_lab::program::{Class, Machine, Options, Side, class_name, skeleton};
use roci_lab::scenario::overrides;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn program(arguments: &Program) -> Result<(), Failure> {
    match &arguments.command {
        ProgramCommand::Build(arguments) => build(arguments),
        ProgramCommand::Check(arguments) => check(arguments),
        ProgramCommand::Profile(arguments) => profile(arguments),
        ProgramCommand::New(arguments) => begin(arguments),
    }
}

fn build(arguments: &ProgramBuild) -> Result<(), Failure> {
    let target = if arguments.rv32i { Target::Rv32i } else { Target::Rv32im };
    let order = Build { source: arguments.source.clone(), output: arguments.output.clone(), target };
    let built = order.run().map_err(|error| {
        let (compiler, errors, failure) = match &error {
            BuildError::Compiler { compiler, message } => {
                (Some(compiler), message.clone(), Failure::Run(error.to_string()))
            }
            BuildError::File { .. } | BuildError::Refused { .. } | BuildError::NoCompiler => {
                (None, error.to_string(), Failure::Request(error.to_string()))
            }
        };
        if arguments.json {
            let report = json!({ "image": null, "compiler": compiler, "errors": errors });
            print(&format!("{report:#}\n"));
        }
        failure
    })?;
    if arguments.json {
        let image = built.output.display().to_string();
        let report = json!({ "image": image, "compiler": built.compiler, "warnings": built.warnings });
        print(&format!("{report:#}\n"));
    } else {
        print(&format!("{}{}\n", built.warnings, built.output.display()));
    }
    Ok(())
}

fn check(arguments: &ProgramCheck) -> Result<(), Failure> {
    let (mut refused, mut unread) = (Vec::new(), 0);
    let mut reports = Vec::new();
    let cores = cores(&arguments.nic, arguments.clock, 1)?;
    for path in &arguments.files {
        let name = path.display().to_string();
        match Check::of_file(path, machine(&arguments.nic)?, arguments.cycles) {
            Ok(check) if arguments.json => reports.push(check_json(&name, &check, cores)),
            Ok(check) => print(&table::check(&name, &check, cores)),
            Err(error) => {
                unread += usize::from(matches!(error, CheckError::File(_)));
                if arguments.json {
                    let (refused, remedy) = (error.reason(), error.remedy());
                    reports.push(json!({ "file": name, "refused": refused, "what_to_do": remedy }));
                }
                refused.push(format!("{name}: {error}"));
            }
        }
    }
    if arguments.json {
        print(&format!("{:#}\n", Value::from(reports)));
    }
    match refused.len() {
        0 => Ok(()),
        // There was nothing to check.
        all if all == unread && all == arguments.files.len() => Err(Failure::Request(refused.join("\n"))),
        _ => Err(Failure::Run(refused.join("\n"))),
    }
}

fn profile(arguments: &ProgramProfile) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    let file = roci_lab::program::image(&arguments.file)
        .map_err(|error| Failure::Request(format!("{name}: {error}")))?;
    let initial: Vec<_> = arguments.context.iter().map(|text| word(text)).collect::<Result<_, _>>()?;
    let machine = machine(&arguments.nic)?;
    let kind = if arguments.anything { Kind::Wild } else { Kind::Typical };
    let proved =
        arguments.anything.then(|| Check::of_image(&file, machine.clone(), arguments.cycles)).transpose();
    let proved = proved.map_err(|error| Failure::Run(format!("{name}: {error}")))?;
    let options = Options { machine, cycles_max: arguments.cycles, ..Options::default() };
    let profile = match &arguments.events {
        None => Profile::of_image(&file, options, &initial, kind, arguments.packets, arguments.seed),
        Some(path) => Profile::of_events(&file, options, &initial, &events(path)?),
    };
    let profile = profile.map_err(|error| match error {
        ProfileError::Context(_) | ProfileError::Other(_) => Failure::Request(format!("{name}: {error}")),
        ProfileError::Image(_) => Failure::Run(format!(
            "{name}: {error}\n  what to do: `roci program check {name}` says it, and how many `--cycles` would do where \
             they would"
        )),
        ProfileError::Failed(_) => Failure::Run(format!("{name}: {error}")),
    })?;
    let cores = cores(&arguments.nic, arguments.clock, arguments.pairs)?;
    if let Some(proved) = proved {
        let held = proved.hold(&profile);
        print(&if arguments.json {
            format!("{:#}\n", held_json(&name, &profile, &held, arguments))
        } else {
            table::held(&name, &profile, &held, cores)
        });
        let longer = held.iter().filter(|held| held.measured > held.proved).map(|held| held.what);
        let longer: Vec<_> = longer.collect();
        let over = format!("{name}: longer than was proved: {}", longer.join(", "));
        return if longer.is_empty() { Ok(()) } else { Err(Failure::Run(over)) };
    }
    // Of what never went there are no rates.
    let rates =
        if profile.sent > 0 { profile.rates(cores.pairs, cores.clock, cores.load) } else { Vec::new() };
    print(&if arguments.json {
        format!("{:#}\n", profile_json(&name, &profile, &rates, cores))
    } else {
        table::profile(&name, &profile, &rates, cores)
    });
    Ok(())
}

/// A word of context and what it begins with.
fn word(argument: &str) -> Result<(String, String), overrides::ArgumentError> {
    let remedy = "write word=value, such as total_credit=64KiB".to_owned();
    overrides::assignment(argument).map_err(|error| overrides::ArgumentError { remedy, ..error })
}

fn held_json(name: &str, profile: &Profile, held: &[Held], arguments: &ProgramProfile) -> Value {
    let held = held.iter().map(|held| {
        json!({
            "function": held.side.function(), "event": held.what, "cycles_max": held.measured,
            "cycles_proved": held.proved,
        })
    });
    json!({
        "file": name, "nic": arguments.nic, "packets_offered": profile.offered, "packets_sent": profile.sent,
        "bounds": held.collect::<Vec<_>>(),
    })
}

/// The cores of a NIC, which the arguments were read to have.
fn machine(nic: &str) -> Result<Machine, Failure> {
    roci_lab::program::machine(nic).ok_or_else(|| Failure::Request(format!("{nic} has no cores")))
}

/// Cores of a NIC, with the clock that was asked for, or their own.
fn cores(nic: &str, clock: Option<u64>, pairs: u32) -> Result<table::Cores<'_>, Failure> {
    let clock = clock.or_else(|| roci_lab::program::clock(nic));
    let clock = clock.ok_or_else(|| Failure::Request(format!("{nic} has no cores")))?;
    let (load, all) = (roci_lab::program::load(nic, clock), roci_lab::program::pairs(nic));
    Ok(table::Cores { nic, clock, pairs, all, load })
}

/// The events in the file at `path`.
fn events(path: &Path) -> Result<Events, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Request(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    Events::parse(&text).map_err(|error| wrong(&error))
}

fn profile_json(name: &str, profile: &Profile, rates: &[Rate], cores: table::Cores<'_>) -> Value {
    let refused = Some(("LoopBack", &profile.refused)).filter(|(_, histogram)| !histogram.is_empty());
    let kinds = profile.kinds.iter().map(|(class, histogram)| (class_name(Class(*class)), histogram));
    let kinds = kinds.chain(refused).map(|(name, histogram)| {
        let spread = spread(histogram);
        let cycles = histogram.iter().map(|(cycles, count)| json!({ "cycles": cycles, "events": count }));
        json!({
            "event": name, "events": spread.count, "per_packet": profile.per_packet(spread.count), "cycles_min": spread.least,
            "cycles_p50": spread.median, "cycles_mean": spread.mean, "cycles_p99": spread.p99,
            "cycles_max": spread.most, "histogram": cycles.collect::<Vec<_>>(),
        })
    });
    json!({
        "file": name, "packets_offered": profile.offered, "packets_sent": profile.sent,
        "cycles_per_packet": {
            "recv": profile.cycles_per_packet(Side::Rx, cores.load), "send": profile.cycles_per_packet(Side::Tx, cores.load),
        },
        "nic": cores.nic, "clock_hz": cores.clock, "core_pairs": cores.pairs, "core_pairs_of_nic": cores.all, "load_cycles": cores.load,
        "events": kinds.collect::<Vec<_>>(), "rates": rates_json(rates),
    })
}

fn rates_json(rates: &[Rate]) -> Value {
    let rates = rates.iter().map(|rate| {
        let clocks = LINKS_GBPS.iter().zip(rate.clocks_hz).map(|(gbps, hz)| (gbps.to_string(), json!(hz)));
        json!({
            "payload_bytes": rate.payload, "wire_bytes": rate.wire, "packets_per_s": rate.packets_per_s,
            "link_bps": rate.link_bps, "goodput_bps": rate.goodput_bps,
            "clock_hz_for_gbps": clocks.collect::<serde_json::Map<_, _>>(),
        })
    });
    rates.collect()
}

fn begin(arguments: &ProgramNew) -> Result<(), Failure> {
    let begun = skeleton::write(Path::new("."), &arguments.name)
        .map_err(|error| Failure::Request(error.to_string()))?;
    let source = begun.source.display();
    let (image, scenario) = (begun.image.display(), begun.scenario.display());
    print(&format!(
        "{source}\n{scenario}\n\nNow:\n  roci program build {source}\n  roci program check {image}\n  roci run {scenario}\n"
    ));
    Ok(())
}

fn check_json(name: &str, check: &Check, cores: table::Cores<'_>) -> Value {
    let sides = check.sides.iter().map(|side| {
        let events = side.kinds.iter().map(|(class, cycles)| (class_name(*class).to_owned(), json!(cycles)));
        let keeps = side.kept.variables.iter().map(|(name, octets)| (name.clone(), json!(octets)));
        json!({
            "function": side.side.function(), "cycles_max": side.cycles, "start_cycles": side.start_cycles,
            "event_cycles_max": events.collect::<serde_json::Map<_, _>>(), "stack_octets": side.stack,
            "keeps": keeps.collect::<serde_json::Map<_, _>>(), "keeps_perhaps": side.kept.strays || side.kept.locals,
        })
    });
    let warnings: Vec<_> = check.warnings().chain(check.hasty(cores.clock)).collect();
    json!({
        "file": name, "warnings": warnings, "nic": cores.nic, "clock_hz": cores.clock, "code_octets": check.code, "context_octets": check.context,
        "header_octets": check.header, "sides": sides.collect::<Vec<_>>(), "load_cycles": cores.load,
        "rates_at_worst": rates_json(&check.rates(cores.clock, cores.load)),
    })
}
