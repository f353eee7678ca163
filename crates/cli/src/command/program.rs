//! `roci program`: congestion control as programs in C.

use crate::Failure;
use crate::args::{Program, ProgramBuild, ProgramCheck, ProgramCommand};
use crate::execute::print;
use crate::table;
use roci_lab::program::build::{Build, BuildError, Target};
use roci_lab::program::check::{Check, CheckError};
use roci_lab::program::class_name;
use serde_json::{Value, json};

pub(crate) fn program(arguments: &Program) -> Result<(), Failure> {
    match &arguments.command {
        ProgramCommand::Build(arguments) => build(arguments),
        ProgramCommand::Check(arguments) => check(arguments),
    }
}

fn build(arguments: &ProgramBuild) -> Result<(), Failure> {
    let target = if arguments.rv32i { Target::Rv32i } else { Target::Rv32im };
    let order = Build { source: arguments.source.clone(), output: arguments.output.clone(), target };
    let built = order.run().map_err(|error| match error {
        BuildError::Compiler { .. } => Failure::Run(error.to_string()),
        BuildError::File { .. } | BuildError::NoCompiler => Failure::Request(error.to_string()),
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
    let mut refused = Vec::new();
    let mut reports = Vec::new();
    for path in &arguments.files {
        let name = path.display().to_string();
        match Check::of_file(path, arguments.cycles) {
            Ok(check) if arguments.json => reports.push(check_json(&name, &check)),
            Ok(check) => print(&table::check(&name, &check, arguments.clock)),
            Err(CheckError::File(error)) => return Err(Failure::Request(format!("{name}: {error}"))),
            Err(error) => {
                if arguments.json {
                    reports.push(json!({ "file": name, "refused": error.to_string() }));
                }
                refused.push(format!("{name}: {error}"));
            }
        }
    }
    if arguments.json {
        print(&format!("{:#}\n", Value::from(reports)));
    }
    if refused.is_empty() { Ok(()) } else { Err(Failure::Run(refused.join("\n"))) }
}

fn check_json(name: &str, check: &Check) -> Value {
    let sides = check.sides.iter().map(|side| {
        let events = side.kinds.iter().map(|(class, cycles)| (class_name(*class).to_owned(), json!(cycles)));
        json!({
            "function": side.side.function(), "cycles_max": side.cycles, "start_cycles": side.start_cycles,
            "event_cycles_max": events.collect::<serde_json::Map<_, _>>(), "stack_octets": side.stack,
        })
    });
    json!({
        "file": name, "code_octets": check.code, "context_octets": check.context,
        "header_octets": check.header, "sides": sides.collect::<Vec<_>>(),
    })
}
