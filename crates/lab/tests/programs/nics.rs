//! Programs on the cores of NICs, and where there are none.

use super::{PAIR, at, control, flows, run, text};
use roci_lab::results::FlowStatus;
use roci_units::{Instant, Span};

/// NICs whose cores run programs, and one that runs them in no time.
pub(super) const NICS: [&str; 4] = ["swcc", "bluefield3", "soft-roce", "ideal"];

#[test]
fn programs_run_on_nics_with_cores() {
    for (nic, elf) in NICS.iter().flat_map(|nic| [(nic, "firmware/dcqcn.elf"), (nic, "firmware/paced.elf")]) {
        let results = run(&text(PAIR, &[("transport.control", &control(elf)), ("nic.model", nic)]).unwrap());
        let done = results.flows.iter().filter(|flow| flow.status == FlowStatus::OK).count();
        assert_eq!(done, 2, "{nic}, {elf}: {:?}", results.flows);
        let tally = &results.programs[0].tally;
        assert_eq!(tally.fallen(), 0, "{nic}, {elf}: {tally:?}");
        // Soft-RoCE is too slow for a queue to be marked; what is not on the cores hears of nothing then.
        let hears = *nic != "soft-roce" || elf.contains("paced");
        assert!(tally.events[1] > 100 && (tally.events[0] > 100 || !hears), "{nic}, {elf}: {tally:?}");
        let cores = results.hosts.iter().filter_map(|host| Some(host.nic.as_ref()?.cores));
        let (sends, receives) =
            cores.fold((0, 0), |(sends, receives), cores| (sends + cores.sends, receives + cores.receives));
        if *nic == "ideal" {
            assert_eq!((sends, receives), (0, 0));
        } else {
            // A core hears of each event that its program is told of, timers that run out with it apart.
            assert_eq!(sends, tally.events[1], "{nic}, {elf}");
            assert!(receives > 0 || !hears, "{nic}, {elf}");
        }
    }
}

#[test]
fn what_instructions_take_is_the_nics_to_say() {
    let measured = |costs: &str, own: &str| {
        let control = format!("{{ law = \"program\", elf = \"firmware/dcqcn.elf\"{own} }}");
        let with = format!("{{ cores = {{ costs = {{ {costs} }} }} }}");
        let overrides = [("nic.model", "swcc"), ("nic.with", with.as_str()), ("transport.control", &control)];
        let results = run(&text(&PAIR.replace("4MB", "400KB"), &overrides).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{:?}", results.flows);
        let tally = results.programs[0].tally.clone();
        (tally.cycles, tally.events, flows(results))
    };
    let mini = measured("alu = 1, load = 2, store = 1, branch_untaken = 1, branch_taken = 2, jump = 2", "");
    let rest = "jump_register = 2, multiply = 1, divide = 34, fence = 1";
    assert_eq!(measured(rest, ""), mini, "what is left out is riscv-mini's");
    // What an event takes in the mean: cores that are slower do not hear of the same events.
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    let mean = |costs, own| {
        let (cycles, events, _) = measured(costs, own);
        cycles[0] as f64 / events[0] as f64
    };
    let usual = mean(rest, "");
    for slower in ["alu = 5", "load = 50", "branch_untaken = 20", "branch_taken = 20"] {
        assert!(mean(slower, "") > usual + 2.0, "{slower}: {usual}");
    }
    // A cost of registers that the program's own key says leaves the others as they are.
    assert!(mean("alu = 5", ", csr = 1") > mean("alu = 1", ", csr = 1") + 2.0);
}

#[test]
fn timers_that_run_out_together_are_events_of_a_program_in_one_turn_of_its_core() {
    let dcqcn = control("firmware/dcqcn.elf");
    let results = run(&text(PAIR, &[("transport.control", &dcqcn), ("nic.model", "swcc")]).unwrap());
    let tally = &results.programs[0].tally;
    let cores = results.hosts.iter().filter_map(|host| Some(host.nic.as_ref()?.cores));
    let (turns, cycles) =
        cores.fold((0, 0), |(turns, cycles), cores| (turns + cores.receives, cycles + cores.cycles[1]));
    assert!(turns > 100 && tally.events[0] > turns + 100, "{tally:?}, {turns} turns");
    assert_eq!(cycles, tally.cycles[0], "the cycles of all of them count");
}

#[test]
fn a_packet_that_waits_for_a_timer_goes_when_it_runs_out() {
    let small = PAIR.replace("4MB", "40KB");
    for nic in NICS {
        let waits = control("../../control/tests/images/waits.elf");
        let results = run(&text(&small, &[("transport.control", &waits), ("nic.model", nic)]).unwrap());
        for flow in &results.flows {
            assert_eq!(flow.status, FlowStatus::OK, "{nic}: {flow:?}");
            // Each packet of one KiB or more waits for ten microseconds, and for not much more.
            let fct = flow.fct().unwrap();
            assert!(fct > Span::from_micros(90) && fct < Span::from_millis(2), "{nic}: {fct}");
        }
        assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}");
    }
}

#[test]
fn a_credit_that_lets_nothing_go_is_found_out() {
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "100B" } }"#;
    let small = PAIR.replace("4MB", "40KB");
    // When no data have come of which it hears, after many rounds where packets come back.
    for (nic, says) in
        [("swcc", "LoopBacks in a row, for 100.0"), ("ideal", "2 LoopBacks in a row, for 100.000 ms")]
    {
        let results = run(&text(&small, &[("transport.control", credit), ("nic.model", nic)]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        let program = &results.programs[0];
        assert_eq!((program.tally.starved, program.tally.fallen()), (2, 2), "{nic}");
        let told = program
            .failures
            .iter()
            .map(|failure| format!("{}: {}", results.place_of(failure), failure.fault));
        let told: Vec<_> = told.collect();
        assert!(told[0].starts_with("h0, flow a: send at ") && told[0].contains(says), "{nic}: {told:?}");
        assert!(told[1].starts_with("h1, flow b: send at "), "{nic}: {told:?}");
    }
}

#[test]
fn a_program_that_waits_for_what_the_scenario_writes_waits_for_that_alone() {
    // Its credit is of packets; it hears of acknowledgements, which give it back, and of nothing else.
    let spends = control("../../control/tests/images/spends.elf");
    let small = PAIR.replace("4MB", "40KB");
    let of_one = at("90ms", "credit", "4").replace("set =", "flow = \"a\"\nset =");
    for nic in NICS {
        let over = [("transport.control", spends.as_str()), ("nic.model", nic)];
        let results = run(&text(&format!("{small}{}", at("90ms", "credit", "4")), &over).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}: {:?}", results.programs[0].failures);
        assert!(results.flows.iter().all(|flow| flow.end > Instant::ZERO + Span::from_millis(90)), "{nic}");
        // Nobody will write to the other.
        let results = run(&text(&format!("{small}{of_one}"), &over).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        let [failure] = &results.programs[0].failures[..] else { panic!("{nic}: one failure") };
        assert_eq!(results.flow_of(failure).map(ToString::to_string).as_deref(), Some("b"), "{nic}");
        assert!(failure.fault.at < Instant::ZERO + Span::from_millis(60), "{nic}: {}", failure.fault);
    }
}

#[test]
fn a_run_that_ends_tells_of_programs_that_have_let_nothing_go() {
    let credit = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "100B" } }"#;
    for nic in ["swcc", "ideal"] {
        let told = |control: &str| {
            let over = [("transport.control", control), ("nic.model", nic), ("stop", "5ms")];
            run(&text(PAIR, &over).unwrap()).warnings
        };
        let expected = "2 of 2 flows under way at 5ms have nothing in flight and are not let send: for 4 ms `firmware/credit.elf` has \
                        let nothing of a go";
        let warnings = told(credit);
        assert!(warnings.iter().any(|warning| warning.starts_with(expected)), "{nic}: {warnings:?}");
        assert_eq!(told(&control("firmware/paced.elf")), Vec::<String>::new(), "{nic}");
    }
}

#[test]
fn a_program_whose_credit_is_lost_with_its_packets_falls_back_before_its_flows_fail() {
    let incast = PAIR.replace("4MB", "1MB");
    let loss = ("faults.loss", "0.002");
    let credit =
        |elf: &str, word: &str| format!("{{ law = \"program\", elf = \"{elf}\", context = {{ {word} }} }}");
    for nic in ["swcc", "ideal"] {
        // It never hears of a loss, and gets no credit for what is lost.
        let spends = credit("../../control/tests/images/spends.elf", "credit = 16");
        let results =
            run(&text(&incast, &[("transport.control", &spends), loss, ("nic.model", nic)]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        let program = &results.programs[0];
        assert_eq!((program.tally.starved, program.tally.fallen()), (2, 2), "{nic}");
        let why = program.failures[0].fault.why.to_string();
        assert!(
            why.contains("through 6 retransmission timeouts, and nothing was sent again"),
            "{nic}: {why}"
        );
        // One that does, waits for credit all the time, and goes on.
        for over in [&[loss][..], &[]] {
            let waits = credit("firmware/credit.elf", "total_credit = \"8KiB\"");
            let over = [&[("transport.control", waits.as_str()), ("nic.model", nic)], over].concat();
            let results = run(&text(&incast, &over).unwrap());
            assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}");
            assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}: {:?}", results.programs[0].failures);
        }
    }
}

#[test]
fn a_program_that_waits_for_a_long_timeout_is_left_alone() {
    let waits = r#"{ law = "program", elf = "firmware/credit.elf", context = { total_credit = "8KiB" } }"#;
    let cut = "[[faults.on]]\nlink = \"s0>h2\"\nfrom = \"100us\"\nuntil = \"70ms\"\nloss = 1\n";
    let outage = PAIR.replace("4MB", "1MB") + cut;
    for (nic, timeout) in [("swcc", "100ms"), ("swcc", "600ms"), ("ideal", "600ms")] {
        let over = [("transport.control", waits), ("transport.timeout", timeout), ("nic.model", nic)];
        let results = run(&text(&outage, &over).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        assert!(results.flows.iter().all(|flow| flow.timeouts == 1), "{nic}: {:?}", results.flows);
        assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}: {:?}", results.programs[0].failures);
    }
}

#[test]
fn read_data_have_their_credit_back_when_the_reader_asks_again() {
    let reads = PAIR.replace("4MB", "1MB").replace("write", "read");
    let credit = |octets| {
        format!(
            "{{ law = \"program\", elf = \"firmware/credit.elf\", context = {{ total_credit = {octets} }} }}"
        )
    };
    let cut =
        format!("{reads}[[faults.on]]\nlink = \"h2>s0\"\nfrom = \"100us\"\nuntil = \"3ms\"\nloss = 1\n");
    let bare = cut.replace("h2>s0", "s0>h2");
    for nic in NICS {
        // The readers' answers are lost, with the credit that they return; then the data, with what they took.
        for (name, outage) in [("answers", &cut), ("data", &bare)] {
            let control = credit("\"16KiB\"");
            let results = run(&text(outage, &[("transport.control", &control), ("nic.model", nic)]).unwrap());
            let program = &results.programs[0];
            assert_eq!(program.tally.fallen(), 0, "{nic}, {name}: {:?}", program.failures);
            assert!(
                results.flows.iter().all(|flow| flow.status == FlowStatus::OK),
                "{nic}: {:?}",
                results.flows
            );
            assert!(results.flows.iter().all(|flow| flow.end.as_secs_f64() > 3e-3), "{nic}, {name}");
        }
        // However long the timeout of who reads; 110 ms of LoopBacks are dear on the other two.
        if matches!(nic, "swcc" | "ideal") {
            let control = credit("\"16KiB\"");
            let over =
                [("transport.control", control.as_str()), ("transport.timeout", "110ms"), ("nic.model", nic)];
            let results = run(&text(&cut, &over).unwrap());
            assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}: {:?}", results.programs[0].failures);
            assert!(
                results.flows.iter().all(|flow| flow.end.as_secs_f64() > 0.11),
                "{nic}: it met the timeout"
            );
        }
        // No more is in flight than the credit: a round trip takes 120 µs and more here, and 8 KiB go in each, so that all takes
        // nine times as long as the link would.
        if nic == "ideal" {
            let far = reads.replace("delay = \"1us\"", "delay = \"30us\"");
            let results =
                run(&text(&far, &[("transport.control", &credit("\"8KiB\"")), ("nic.model", nic)]).unwrap());
            let least = 120e-6 * 1e6 / 8192.0;
            assert!(results.flows.iter().all(|flow| flow.end.as_secs_f64() > least), "{:?}", results.flows);
        }
    }
}

#[test]
fn a_program_at_the_responder_that_gives_no_credit_back_falls_back_before_the_reader_fails() {
    // It hears of acknowledgements, which READ data do not have here: its credit is spent, and nothing comes back.
    let spends =
        r#"{ law = "program", elf = "../../control/tests/images/spends.elf", context = { credit = 16 } }"#;
    let reads = PAIR.replace("4MB", "100KB").replace("write", "read");
    for nic in NICS {
        let results = run(&text(&reads, &[("transport.control", spends), ("nic.model", nic)]).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        assert_eq!(results.programs[0].tally.fallen(), 2, "{nic}: {:?}", results.programs[0].failures);
    }
}

#[test]
fn timers_one_after_the_other_are_waited_for_and_no_tokens_are_not() {
    let times = |words: &str| {
        format!(
            "{{ law = \"program\", elf = \"../../control/tests/images/times.elf\", context = {{ {words} }} }}"
        )
    };
    let small = PAIR.replace("4MB", "40KB");
    for nic in ["swcc", "ideal"] {
        for (words, stopped) in [
            ("period = \"1ms\"", "LoopBacks in a row, for 100"),
            ("period = \"1us\", tokenless = 1", "no tokens were left (setTokens) for 100"),
            ("period = \"30ms\", tokenless = 1", "no tokens were left (setTokens) for 240"),
        ] {
            let control = times(words);
            let results = run(&text(&small, &[("transport.control", &control), ("nic.model", nic)]).unwrap());
            assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}, {words}");
            let why = results.programs[0].failures[0].fault.why.to_string();
            assert!(why.contains(stopped), "{nic}, {words}: {why}");
        }
    }
}

#[test]
fn a_path_that_is_dead_is_not_the_programs_fault() {
    let spends =
        r#"{ law = "program", elf = "../../control/tests/images/spends.elf", context = { credit = 16 } }"#;
    let dead = format!("{PAIR}[[faults.on]]\nlink = \"s0>h2\"\nfrom = \"100us\"\nloss = 1\n");
    let results = run(&text(&dead, &[("transport.control", spends)]).unwrap());
    assert_eq!(results.programs[0].tally.starved, 2);
    let failure = results.failure().expect("no flow can be done");
    let told = "Transport Retry Counter Exceeded: its program ../../control/tests/images/spends.elf let nothing be sent again, and of what the \
                fallback law then sent in all its retries nothing was answered either, so look at the path first";
    assert!(failure.ends_with(told), "{failure}");
    // Those of the program, and those of the fallback with all its retries.
    assert!(results.flows.iter().all(|flow| (8..=16).contains(&flow.timeouts)), "{:?}", results.flows);
}

#[test]
fn a_program_that_waits_for_its_receiver_waits_as_long_as_that_likes() {
    let paced =
        r#"{ law = "program", elf = "tests/programs/receiver_paced.elf", context = { gap = "70us" } }"#;
    let small = PAIR.replace("4MB", "40KB");
    for nic in ["swcc", "ideal"] {
        let over = [("transport.control", paced), ("transport.layout", "{ words = 1 }"), ("nic.model", nic)];
        let results = run(&text(&small, &over).unwrap());
        assert!(results.flows.iter().all(|flow| flow.status == FlowStatus::OK), "{nic}: {:?}", results.flows);
        let program = &results.programs[0];
        assert_eq!(program.tally.fallen(), 0, "{nic}: {:?}", program.failures);
        // Forty packets, four each 70 us.
        assert!(results.flows.iter().all(|flow| flow.end.as_secs_f64() > 9.0 * 70e-6), "{nic}");
        // Eight, and the receiver takes longer than a million LoopBacks do.
        let few = text(&PAIR.replace("4MB", "8KB"), &over).unwrap();
        let slow = text(
            &PAIR.replace("4MB", "8KB"),
            &[&over[..], &[("transport.control.context.gap", "70ms")]].concat(),
        );
        let results = run(&slow.unwrap());
        assert!(run(&few).flows.iter().all(|flow| flow.end.as_secs_f64() < 1e-3), "{nic}");
        assert_eq!(results.programs[0].tally.fallen(), 0, "{nic}: {:?}", results.programs[0].failures);
        assert!(results.flows.iter().all(|flow| flow.end.as_secs_f64() > 70e-3), "{nic}");
    }
}

#[test]
fn packets_are_stamped_as_they_leave_and_answers_echo_that() {
    let stamps = r#"{ law = "program", elf = "../../control/tests/images/stamps.elf" }"#;
    let layout = ("transport.layout", "{ words = 1, time = true }");
    for nic in ["ideal", "swcc"] {
        let over = [("transport.control", stamps), layout, ("nic.model", nic), ("switch.ecn", "false")];
        let results = run(&text(PAIR, &over).unwrap());
        let mut last = std::collections::BTreeMap::new();
        let mut least = i64::MAX;
        results.series.words(|_, flow, name, value| {
            last.insert((flow, name.to_owned()), value);
            if name == "delay" && value > 0 {
                least = least.min(value);
            }
        });
        let word = |flow: u32, name: &str| last[&(flow, name.to_owned())];
        for flow in 0..2 {
            assert!(word(flow, "heard") > 2000, "{nic}: {last:?}");
            assert_eq!(word(flow, "differ"), 0, "{nic}: {last:?}");
        }
        // Two links of 1 µs, and two frames of 4 KB at 10 Gb/s; queues come on top.
        assert!((2_000 + 2 * 800..100_000_000).contains(&least), "{nic}: {least} ns");
    }
}

#[test]
fn what_a_program_keeps_in_a_core_is_seen_by_the_queue_pairs_of_its_pair_alone() {
    let counts = control("../../control/tests/images/counts.elf");
    // Both flows are of one host, and each packet is acknowledged.
    let two = PAIR.replace("src = \"h1\"", "src = \"h0\"").replace("4MB", "400KB");
    let most = |pairs: u32| {
        let with = format!("{{ cores = {{ pairs = {pairs} }} }}");
        let overrides = [("transport.control", counts.as_str()), ("nic.model", "swcc"), ("nic.with", &with)];
        let results = run(&text(&two, &overrides).unwrap());
        let mut most = [0; 2];
        results.series.words(|_, flow, _, heard| most[flow as usize] = heard.max(most[flow as usize]));
        (most.map(i64::cast_unsigned), results.flows.iter().map(|flow| flow.packets).collect::<Vec<_>>())
    };
    let (one, packets) = most(1);
    assert!(one.iter().max() > packets.iter().max(), "one pair counts for both: {one:?}, {packets:?}");
    let (two, packets) = most(2);
    assert!(two.iter().zip(&packets).all(|(heard, packets)| heard <= packets), "{two:?}, {packets:?}");
    assert!(two.iter().zip(&packets).all(|(heard, packets)| heard > &(packets / 2)), "{two:?}, {packets:?}");
}
