//! Events that a run has recorded, heard again.

use super::{PAIR, run, text};
use roci_lab::program::{Options, machine};

fn options() -> Options {
    Options { machine: machine("swcc").expect("it has cores"), ..Options::default() }
}

#[test]
fn recorded_events_are_heard_again() {
    use roci_lab::program::Class;
    use roci_lab::program::events::Events;
    use roci_lab::program::profile::Profile;
    let paced = include_bytes!("../../../../firmware/paced.elf");
    let recorded = r#"{ law = "program", elf = "firmware/paced.elf", record = 1000000 }"#;
    let results = run(&text(PAIR, &[("transport.control", recorded), ("nic.model", "swcc")]).unwrap());
    let program = &results.programs[0];
    let events = Events::parse(&program.events).expect("it was written so");
    let profile = Profile::of_events(paced, options(), &[], &events).unwrap();
    let of = |class: Class| -> (u64, u64) {
        let refused = (class == Class::TRANSMIT).then_some(&profile.refused).into_iter().flatten();
        let histogram = profile.kinds.get(&class.0).into_iter().flatten().chain(refused);
        histogram.fold((0, 0), |(count, sum), (cycles, many)| (count + many, sum + cycles * many))
    };
    assert_eq!(of(Class::TRANSMIT), (program.tally.events[1], program.tally.cycles[1]));
    assert_eq!(profile.offered, program.tally.events[1]);
    // Some timers run out after the last event.
    let classes = profile.kinds.keys().filter(|class| **class != Class::TRANSMIT.0);
    let received = classes.fold(0, |sum, class| sum + of(Class(*class)).0);
    assert!(received <= program.tally.events[0] && received > program.tally.events[0] * 9 / 10);
    // The rest of what dcqcn.c hears was not recorded.
    let dcqcn = include_bytes!("../../../../firmware/dcqcn.elf");
    let refused = Profile::of_events(dcqcn, options(), &[], &events).unwrap_err().to_string();
    assert!(refused.contains("it hears CE,ByteCounter, and of that nothing was recorded"), "{refused}");
    assert!(program.events.lines().nth(2).is_some_and(|line| line.contains(" link=10000000")));
}

#[test]
fn another_program_hears_what_was_recorded_if_that_is_all_it_hears() {
    use roci_lab::program::events::Events;
    use roci_lab::program::profile::Profile;
    let recorded = r#"{ law = "program", elf = "firmware/swift.elf", record = 1000000 }"#;
    let results = run(&text(PAIR, &[("transport.control", recorded), ("nic.model", "swcc")]).unwrap());
    let events = Events::parse(&results.programs[0].events).expect("it was written so");
    let of = |file: &[u8]| Profile::of_events(file, options(), &[], &events);
    let swift = of(include_bytes!("../../../../firmware/swift.elf")).unwrap();
    let timely = of(include_bytes!("../../../../firmware/timely.elf")).unwrap();
    assert_eq!((timely.offered, timely.sent), (swift.offered, swift.offered), "it lets all of them go");
    assert!(timely.kinds[&roci_lab::program::Class::ACK.0].values().sum::<u64>() > 1_000);
    let hpcc = of(include_bytes!("../../../../firmware/hpcc.elf")).unwrap_err().to_string();
    assert!(hpcc.contains("it reads telemetry"), "{hpcc}");
}
