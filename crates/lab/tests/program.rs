//! Images of programs: what is refused, and with which words.

mod text;

use roci_lab::program::check::{CYCLES_MAX, Check, CheckError};
use roci_lab::program::{BARE, Class, Side};
use text::made;

const RIGHT: &[u8] = include_bytes!("../../../firmware/credit.elf");

/// A bad program: its name, image and source.
macro_rules! bad {
    ($($name:literal),*) => {
        [$(($name, &include_bytes!(concat!("programs/", $name, ".elf"))[..], include_str!(concat!("programs/", $name, ".c")))),*]
    };
}

fn of_image(image: &[u8], cycles_max: u64) -> Result<Check, CheckError> {
    Check::of_image(image, roci_lab::program::machine(BARE).expect("it is one"), cycles_max)
}

fn refusal(image: &[u8]) -> String {
    match of_image(image, CYCLES_MAX) {
        Ok(check) => panic!("it was admitted: {check:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_bad_program_is_refused_at_the_line_that_is_wrong() {
    let bad = bad![
        "unbounded",
        "store_outside",
        "unknown_csr",
        "context_overrun",
        "recursion",
        "misaligned_jump",
        "self_modification",
        "unanswered",
        "answered_twice",
        "late_write",
        "late_read",
        "ends",
        "variable"
    ];
    let reasons = [
        "the loop that starts here is not proved to end within 10000 cycles",
        "stores to 0x10000000, outside the memory",
        "there is no CSR 0xc00",
        "CSR 0x802 may not be written: word 2 of the context, but QPContext has 2 words",
        "recursion: calls halvings(), which has not returned yet; its depth cannot be bounded, so write a loop with a bound in \
         its place",
        "jumps to the misaligned address 0x80000036",
        "in ROM",
        "waits for the next event, and may not have answered this one",
        "answers an event that may have been answered before",
        "uses CSR 0x83d after the event may have been answered, when it is the next event's: post the event last",
        "uses CSR 0x800 after the event may have been answered, when it is the next event's: post the event last",
        "returns from recv(), and the program ends there: wait for the next event in an endless loop instead, `while (true) { … }`",
        "uses a stack pointer that is not proved to point into the stack",
    ];
    let remedies = [
        "its counter must come to its end from wherever it may begin: `for (uint32_t i = 0; i < 8; i++)`",
        "no device behind an address: context, packet and event are registers",
        "there are 0x800 to 0x81f for the context, 0x820 to 0x82f for the packet's header and 0x830 to 0x83f for the event",
        "words of context are written by updateContext",
        "what it has yet to do can stand in variables",
        "no compiler does so by itself: look at inline assembly",
        "leave `const` away from a variable that changes",
        "pollEvent waits by itself until there is an event, so call it once",
        "let all of them come to one postEvent at the end",
        "move what stands behind postEvent before it",
        "move what stands behind postEvent before it",
        "let no `return` or `break` leave it",
        "no alloca and no arrays of variable length",
    ];
    for (((name, image, source), reason), remedy) in bad.into_iter().zip(reasons).zip(remedies) {
        let whole = refusal(image);
        let (refusal, todo) =
            whole.split_once("\n  what to do: ").unwrap_or_else(|| panic!("{name}: {whole}"));
        assert!(todo.contains(remedy) && !todo.contains('\n'), "{name}: {todo}");
        let line = 1 + source.lines().position(|line| line.contains("/* wrong: ")).expect("a wrong line");
        assert!(refusal.contains(&format!(", {name}.c:{line}): ")), "{name}: {refusal}");
        let called = if name == "recursion" { "; called by recv() at recursion.c:14" } else { "" };
        assert!(refusal.ends_with(&format!("{reason}{called}")), "{name}: {refusal}");
    }
}

#[test]
fn a_quotient_by_zero_is_named_where_a_loop_has_no_bound_but_for_it() {
    let (image, source) = (include_bytes!("programs/quotient.elf"), include_str!("programs/quotient.c"));
    let line = |what: &str| 1 + source.lines().position(|line| line.contains(what)).expect("it has it");
    let told = refusal(image);
    assert!(
        told.contains(&format!(", quotient.c:{}): the loop that starts here", line("wrong: "))),
        "{told}"
    );
    let cause = format!(", quotient.c:{}) is 2³² − 1 where the divisor is zero", line("the cause: "));
    assert!(told.contains("what to do: the quotient at 0x") && told.contains(&cause), "{told}");
    // Others have no such cause.
    let [(_, unbounded, _)] = bad!["unbounded"];
    assert!(!refusal(unbounded).contains("divisor"), "{}", refusal(unbounded));
}

#[test]
fn a_loop_that_a_compiler_made_of_recursion_is_told_as_what_it_is() {
    let (image, source) = (include_bytes!("programs/tree.elf"), include_str!("programs/tree.c"));
    let line = 1 + source.lines().position(|line| line.contains("wrong: ")).expect("a wrong line");
    let told = refusal(image);
    let (refusal, todo) = told.split_once("\n  what to do: ").expect("it says what to do");
    // However many copies of it stand in each other.
    assert_eq!(refusal.matches(&format!("leaves() at tree.c:{line}")).count(), 1, "{told}");
    assert!(todo.starts_with("leaves() calls itself, and how deep has no bound"), "{told}");
    // A quotient that has nothing to do with it is not blamed.
    assert!(!todo.contains("divisor"), "{told}");
}

#[test]
fn names_in_an_image_do_nothing_in_a_terminal() {
    let with = |image: &[u8], from: &[u8], to: &[u8]| {
        let mut image = image.to_vec();
        let mut found = 0;
        for at in 0..image.len() - from.len() {
            if image[at..].starts_with(from) {
                image[at..at + to.len()].copy_from_slice(to);
                found += 1;
            }
        }
        assert!(found > 0);
        image
    };
    let [(_, recursion, _)] = bad!["recursion"];
    for (from, to, escaped) in [
        (&b"recursion.c\0"[..], &b"\x1b[31mion.c\0"[..], "\\u{1b}[31mion.c"),
        (b"halvings\0", b"\rlving\x07\0", "\\rlving\\u{7}"),
    ] {
        let told = refusal(&with(recursion, from, to));
        assert!(told.contains(escaped), "{told}");
        assert!(!told.contains(|c: char| c.is_control() && c != '\n'), "{told:?}");
    }
}

#[test]
fn a_timer_that_the_core_cannot_keep_up_with_is_warned_of() {
    let check = of_image(include_bytes!("programs/hasty.elf"), CYCLES_MAX).expect("it is sound");
    let told = |clock| check.hasty(clock).collect::<Vec<_>>();
    let slow = told(250_000_000);
    assert!(
        slow.len() == 1
            && slow[0].contains("hasty.c:15): arms a timer of 100 ns when one has run out, and a core"),
        "{slow:?}"
    );
    assert_eq!(told(100_000_000_000), Vec::<String>::new());
    let other = of_image(include_bytes!("../../../firmware/timely.elf"), CYCLES_MAX).expect("it is sound");
    assert_eq!(other.hasty(1_000_000).count(), 0);
    // One that send() arms each 10 MB.
    let paced = of_image(include_bytes!("../../../firmware/paced.elf"), CYCLES_MAX).expect("it is sound");
    assert_eq!(paced.hasty(250_000_000).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_rest_is_a_bound_where_the_dividend_is_one() {
    let event =
        "uint32_t turns = (e.now & 15) % e.acked; int32_t more = (int32_t)(e.sent & 7) % (int32_t)e.rate;
        for (uint32_t i = 0; i < turns; i++) __asm__ volatile(\"\");
        for (int32_t i = 0; i < more; i++) __asm__ volatile(\"\");";
    let Some(image) = built("rest", "uint32_t left;", "", event) else { return };
    of_image(&image.expect("it builds"), CYCLES_MAX).expect("a rest is no more than the dividend");
}

#[test]
fn the_division_that_a_loop_has_no_bound_of_is_found_among_many() {
    let fields = "uint32_t w[24];";
    let many: String =
        (0..24).map(|at| format!("updateContext(e.context.w[{at}], e.now / (e.acked + {at}));\n")).collect();
    let event = format!(
        "{many}uint32_t turns = 1000 / (e.sent & 15); // the cause\n\
         for (uint32_t i = 0; i < turns; i++) __asm__ volatile(\"\");"
    );
    let Some(image) = built("many", fields, "", &event) else { return };
    let told = refusal(&image.expect("it builds"));
    // Events begin at the eleventh line of the text, and each division has its own.
    assert!(told.contains(&format!("law.c:{}) is 2³² − 1 where the divisor is zero", 11 + 24)), "{told}");
}

#[test]
fn the_lines_are_named_that_call_what_takes_too_long_wherever_the_compiler_put_it() {
    let line = |source: &str, text: &str| {
        1 + source.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}"))
    };
    let refusal = |image: &[u8]| of_image(image, 250).expect_err("it takes longer").to_string();
    // A function that is called; more than all that `require` takes.
    let swift = include_str!("../../../firmware/swift.c");
    let told = refusal(include_bytes!("../../../firmware/swift.elf"));
    let loop_at = line(swift, "if (rest >= result + bit)");
    let call_at = line(swift, "uint32_t low = most(root(");
    assert!(told.contains(&format!("(root+0x10, swift.c:{loop_at}): the loop that starts here")), "{told}");
    assert!(told.contains(&format!("within 250 cycles; called by recv() at swift.c:{call_at}\n")), "{told}");
    // One of libgcc's, called by one that stands in another, which stands in recv().
    let (timely, header) =
        (include_str!("../../../firmware/timely.c"), include_str!("../../../firmware/include/program.h"));
    let told = refusal(include_bytes!("../../../firmware/timely.elf"));
    let fraction = line(header, "static inline uint32_t fraction(");
    let recv = line(timely, "ALPHA = fraction(");
    let callers =
        told.lines().next().and_then(|told| told.split_once("; called by ")).expect("it is called").1;
    let callers: Vec<_> = callers.split(", by ").collect();
    let [.., constant_by, fraction_by, recv_by] = callers[..] else { panic!("{told}") };
    assert!(constant_by.starts_with("constant() at program.h:"), "{told}");
    assert_eq!(fraction_by, format!("fraction() at program.h:{}", fraction + 1), "{told}");
    assert_eq!(recv_by, format!("recv() at timely.c:{recv}"), "{told}");
}

#[test]
fn answers_that_are_no_answers_are_warned_of_at_their_lines() {
    let source = include_str!("programs/unset.c");
    let check = of_image(include_bytes!("programs/unset.elf"), CYCLES_MAX).expect("it is sound");
    let warnings: Vec<_> = check.warnings().collect();
    let lines =
        source.lines().enumerate().filter(|(_, line)| line.contains("/* warned of: ")).map(|(at, _)| at + 1);
    let lines: Vec<_> = lines.collect();
    let expected = [
        "eventType is not set before postEvent, for ACK: it takes Done or GenTxEvent",
        "answers Timer with 0x7, and eventType takes Done or GenTxEvent",
    ];
    assert_eq!((warnings.len(), lines.len()), (2, 2), "{warnings:?}");
    for (text, line) in expected.into_iter().zip(lines) {
        let wanted = format!(", unset.c:{line}): {text}");
        let named = |warning: &&String| warning.starts_with("in recv(): 0x") && warning.ends_with(&wanted);
        assert_eq!(warnings.iter().filter(named).count(), 1, "{wanted}: {warnings:?}");
    }
}

#[test]
fn an_answer_that_is_not_set_on_some_way_is_warned_of() {
    let warnings = |name: &str, event: &str| {
        let text = "#define TracedPkts (ACK | Open)\ntypedef struct { int qpn, opcode, pktLength, ecn; } PktHeader;\n\
            typedef struct { uint32_t rate; } QPContext;\nint recv() {\n    Event e;\n    while (true) {\n        pollEventSync(&e);\n        \
            EVENT\n        postEvent(&e);\n    }\n}\n";
        let (image, _) = made(name, &text.replace("EVENT", event))?.expect("it builds");
        Some(of_image(&image, CYCLES_MAX).expect("it is sound").warnings().collect::<Vec<_>>())
    };
    let Some(told) = warnings("unset-somewhere", "if (e.context.rate > e.now) e.eventType = Done;") else {
        return;
    };
    let [warning] = &told[..] else { panic!("{told:?}") };
    let expected = "law.c:9): eventType is not set before postEvent on some way, for ACK, Timer, Open: it takes Done or GenTxEvent, such as \
                    right behind the poll";
    assert!(warning.ends_with(expected), "{warning}");
    for event in [
        "e.eventType = e.context.rate > e.now ? Done : GenTxEvent; updatePkt(e.packet.opcode, CNP);",
        "if (e.packet.opcode == ACK) e.eventType = Done; else e.eventType = Done;",
    ] {
        assert_eq!(warnings("set-everywhere", event), Some(Vec::new()), "{event}");
    }
}

#[test]
fn divisions_of_64_bits_are_named_where_an_event_takes_too_long() {
    let event = "uint64_t sum = e.now; for (uint32_t i = 1; i < 40; i++) sum += ((uint64_t)e.acked << 32 | i) / (sum | 1);
        updateContext(e.context.n[0], sum);";
    let Some(image) = built("long-division", "uint32_t n[8];", "", event) else { return };
    let told = refusal(&image.expect("it builds"));
    assert!(
        told.contains("; it divides by 64 bits at law.c:11, a call of libgcc that takes hundreds of cycles"),
        "{told}"
    );
}

#[test]
fn octets_of_an_unknown_number_are_told_to_be_bounded_where_they_are_copied() {
    let event = "uint32_t words[8]; memcpy(words, e.context.n, e.packet.pktLength); updateContext(e.context.n[0], words[e.now & 7]);";
    let Some(image) = built("copy-unbounded", "uint32_t n[8];", "", event) else { return };
    let told = refusal(&image.expect("it builds"));
    assert!(told.contains("called by recv() at law.c:11"), "{told}");
    assert!(
        told.contains("memcpy goes through as many octets as it is told, so bound that where it is called"),
        "{told}"
    );
}

#[test]
fn stores_that_may_go_anywhere_are_warned_of_at_their_lines() {
    let source = include_str!("programs/stray.c");
    let line =
        1 + source.lines().position(|line| line.contains("(volatile uint32_t *)")).expect("a line of it");
    let check = of_image(include_bytes!("programs/stray.elf"), CYCLES_MAX).expect("it is sound");
    let warnings: Vec<_> = check.warnings().collect();
    // The other store is into a table, as far as the mask of its index lets it.
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    let wanted =
        format!(", stray.c:{line}): stores to an address from 0x00000000 to 0xffffffff, which is not proved");
    assert!(warning.starts_with("in recv(): 0x") && warning.contains(&wanted), "{warning}");
    assert!(warning.ends_with(": bound the index, `table[i % 8]` or `least(i, 7)`"), "{warning}");
}

#[test]
fn what_cannot_work_is_warned_of_at_its_line() {
    let source = include_str!("programs/futile.c");
    let line = |mark: &str| {
        let wanted = format!("/* warned of: {mark} */");
        1 + source.lines().position(|line| line.contains(&wanted)).unwrap_or_else(|| panic!("{mark}"))
    };
    let check = of_image(include_bytes!("programs/futile.elf"), CYCLES_MAX).expect("it is sound");
    let warnings: Vec<_> = check.warnings().collect();
    let expected = [
        ("recv", "no command", "gives the command 0xd0000001, and there is none such"),
        ("recv", "too late", "refuses parameters by `require` when events have begun"),
        ("recv", "no packet", "names Timer in e.packet.opcode, and GenTxEvent sends no such packet"),
        ("recv", "which packet", "answers Timer with GenTxEvent, and e.packet.opcode still has that class"),
        ("recv", "may miss", "loads from an address from 0x00000000 to 0xffffffff"),
        ("send", "no packet goes", "answers every packet with LoopBack, so none is ever sent"),
    ];
    for (function, mark, text) in expected {
        let wanted = format!(", futile.c:{}): {text}", line(mark));
        let named = |warning: &&String| {
            warning.starts_with(&format!("in {function}(): 0x")) && warning.contains(&wanted)
        };
        assert_eq!(warnings.iter().filter(named).count(), 1, "{wanted}: {warnings:#?}");
    }
    let traces = |warning: &&String| warning.contains("traces bit 13, and there is no such class");
    assert_eq!(warnings.iter().filter(traces).count(), 1, "{warnings:#?}");
    assert_eq!(warnings.len(), expected.len() + 1, "{warnings:#?}");
    let deaf = of_image(include_bytes!("programs/deaf.elf"), CYCLES_MAX).expect("it is sound");
    let warnings: Vec<_> = deaf.warnings().collect();
    assert!(warnings.len() == 1 && warnings[0].contains("TracedPkts has no class"), "{warnings:#?}");
}

#[test]
fn what_queue_pairs_of_a_core_share_is_told_by_its_names() {
    let kept = |image: &[u8]| {
        let check = of_image(image, CYCLES_MAX).expect("it is sound");
        check.side(Side::Rx).expect("recv").kept.to_string()
    };
    let shared = "all queue pairs of a core share seen (16 B), total (4 B): what is one queue pair's belongs in QPContext";
    assert_eq!(kept(include_bytes!("programs/futile.elf")), shared);
    assert!(kept(include_bytes!("programs/stray.elf")).contains("whatever stores reach that are not proved"));
    assert!(
        kept(include_bytes!("../../control/tests/images/counts.elf")).contains("perhaps local variables")
    );
    let nothing = "keeps nothing but contexts from one event to the next";
    assert_eq!(kept(include_bytes!("../../../firmware/dcqcn.elf")), nothing);
    // Look-ups in libgcc's table of constants are none of the program's memory.
    assert_eq!(kept(include_bytes!("../../../firmware/hpcc.elf")), nothing);
    // Nor is an address of a parameter that was put aside on the stack before the first event.
    assert_eq!(kept(include_bytes!("../../../firmware/swift.elf")), nothing);
}

#[test]
fn our_programs_are_not_warned_of() {
    for image in [
        &include_bytes!("../../../firmware/dcqcn.elf")[..],
        include_bytes!("../../../firmware/homa.elf"),
        include_bytes!("../../../firmware/hpcc.elf"),
        include_bytes!("../../../firmware/paced.elf"),
        include_bytes!("../../../firmware/swift.elf"),
        include_bytes!("../../../firmware/timely.elf"),
        RIGHT,
    ] {
        assert_eq!(of_image(image, CYCLES_MAX).expect("ours").warnings().count(), 0);
    }
}

#[test]
fn floating_point_is_named_by_the_line_and_refused_where_it_has_no_bound() {
    let line = |source: &str, mark: &str| {
        1 + source.lines().position(|line| line.contains(mark)).expect("a line of it")
    };
    // What is bounded is warned of.
    let check =
        of_image(include_bytes!("programs/floating.elf"), CYCLES_MAX).expect("its cycles are bounded");
    let warnings: Vec<_> = check.warnings().collect();
    let at = line(include_str!("programs/floating.c"), "/* warned of: ");
    let expected = format!("floating.c:{at} computes with floating point, which the cores do in software (");
    assert!(warnings.len() == 1 && warnings[0].starts_with(&expected), "{warnings:?}");
    assert!(
        warnings[0].contains("__mulsf3") && warnings[0].contains("use integers: Fraction"),
        "{warnings:?}"
    );
    let refused = refusal(include_bytes!("programs/dividing.elf"));
    let at = line(include_str!("programs/dividing.c"), "/* wrong: ");
    assert!(refused.starts_with("it computes with floating point, "), "{refused}");
    let named = format!("cannot be bounded: dividing.c:{at} (");
    assert!(
        refused.contains(&named) && refused.contains("__divsf3") && refused.contains("use integers"),
        "{refused}"
    );
}

#[test]
fn a_division_by_zero_says_what_to_do() {
    let refused = refusal(include_bytes!("programs/zero.elf"));
    assert!(
        refused.contains(", zero.c:") && refused.contains("such as dividing by a constant zero"),
        "{refused}"
    );
}

#[test]
fn texts_of_programs_that_mean_what_they_say_are_not_warned_of() {
    use roci_lab::program::build::{Build, BuildError, Target};
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = std::env::temp_dir().join(format!("roci-slips-{}.elf", std::process::id()));
    let mut looked_at = 0;
    for folder in
        ["firmware", "crates/control/tests/images", "crates/lab/tests/programs", "crates/lab/src/program"]
    {
        for entry in std::fs::read_dir(top.join(folder)).expect("a folder of ours") {
            let source = entry.expect("a file of it").path();
            if source.extension().is_none_or(|ending| ending != "c") {
                continue;
            }
            match (Build { source: source.clone(), output: Some(output.clone()), target: Target::default() })
                .run()
            {
                Ok(built) => {
                    let slips = [
                        "is assigned without",
                        "is no field of",
                        "is beyond the array",
                        "is static",
                        "TracedPkts has no",
                        "-Wcast-align",
                        "Event Heard",
                    ];
                    let slipped = slips.iter().any(|slip| built.warnings.contains(slip));
                    assert!(!slipped, "{}: {}", source.display(), built.warnings);
                    looked_at += 1;
                }
                Err(BuildError::NoCompiler) => return,
                Err(error) => panic!("{}: {error}", source.display()),
            }
        }
    }
    std::fs::remove_file(&output).expect("it was written");
    assert!(looked_at > 20, "{looked_at}");
}

/// What `roci program build` makes of a program that traces ACKs, with these lines before its `recv`, whose context has these fields,
/// and which does this at each event; `None` where there is no compiler.
fn built(name: &str, fields: &str, before: &str, event: &str) -> Option<Result<Vec<u8>, String>> {
    let text = format!(
        "#define TracedPkts ACK\ntypedef struct {{ int qpn, opcode, pktLength, ecn; }} PktHeader;\ntypedef struct {{\n{fields}\n}} \
         QPContext;\n{before}\nint recv() {{\n    Event e;\n    while (true) {{\n        pollEventSync(&e);\n        {event}\n        \
         e.eventType = Done;\n        postEvent(&e);\n    }}\n}}\n"
    );
    made(name, &text).map(|made| made.map(|(image, _)| image))
}

#[test]
fn a_header_word_or_a_field_of_a_hop_that_is_not_there_does_not_compile() {
    for (word, refused) in [
        ("headerWord(15)", None),
        ("headerWord(16)", Some("packets have header words 0 to 15")),
        ("headerWord(-1)", Some("packets have header words 0 to 15")),
        ("hopWord(5, 3)", None),
        ("hopWord(1, 4)", Some("hops count from 0 and have fields 0 to 3")),
        ("hopWord(-1, 0)", Some("hops count from 0 and have fields 0 to 3")),
        // What is known only when it runs, be it in bounds or not.
        ("headerWord(e.packet.ecn)", Some("headerWord takes a constant")),
        ("headerWord(e.acked)", Some("headerWord takes a constant")),
        ("hopWord(e.packet.ecn, 0)", Some("the numbers that hopWord and headerWord take must be constants")),
        ("hopWord(0, e.acked & 3)", Some("hopWord takes constants")),
    ] {
        let event = format!("updateContext(e.context.word, {word});");
        let Some(built) = built("word", "uint32_t word;", "", &event) else { return };
        match (built, refused) {
            (Ok(_), None) => {}
            (Err(error), Some(why)) => assert!(error.contains(why), "{word}: {error}"),
            (other, _) => panic!("{word}: {:?}", other.map(|_| ())),
        }
    }
}

#[test]
fn what_compilers_call_to_fill_copy_and_compare_is_supplied_and_bounded() {
    use roci_control::program::csr;
    use roci_hart::{CSR_WORDS, Core, Program, Stop};
    let before =
        "struct words { uint32_t of[100]; };\nstatic struct words one, two;\nstatic uint8_t octets[40];";
    let event = "uint32_t zeros[16] = {0}; zeros[e.acked & 15] = e.now;
        for (uint32_t i = 0; i < 100; i++) one.of[i] = i * e.now;
        struct words *from = e.now & 1 ? &one : &two, *to = e.now & 1 ? &two : &one; memcpy(to, from, 4 * (24 + (e.acked & 1)));
        for (uint32_t i = 0; i < 40; i++) octets[i] = i + e.now;
        __builtin_memmove(octets + 1, octets + (e.sent & 3), 30);
        uint32_t sum = 0; for (uint32_t i = 0; i < 40; i++) sum = sum * 31 + octets[i];
        updateContext(e.context.filled, zeros[e.acked & 15] + zeros[e.rate & 15]);
        updateContext(e.context.copied, two.of[e.rate % 24]);
        updateContext(e.context.moved, sum);
        updateContext(e.context.order, __builtin_memcmp(octets, octets + (e.rate & 15), e.acked & 31));";
    let Some(image) = built("memory", "uint32_t filled, copied, moved, order;", before, event) else {
        return;
    };
    let image = image.expect("it builds");
    of_image(&image, CYCLES_MAX).expect("its loops are bounded");
    let program = Program::load(&image, csr::machine()).expect("a program");
    for name in ["memset", "memcpy", "memmove", "memcmp"] {
        let names =
            program.symbols().iter().filter(|symbol| symbol.is_function && symbol.name == name).count();
        assert_eq!(names, 1, "{name} is there, and once");
    }
    let mut core = Core::new(std::sync::Arc::new(program));
    let mut block = [0; CSR_WORDS];
    let waits = |stop| matches!(stop, Stop::Waiting { .. });
    while !waits(core.run(&mut block, 10_000)) {}
    for (now, acked, rate, sent) in
        [(77u32, 5u32, 9u32, 0u32), (1_001, 31, 3, 3), (5, 0, 16, 1), (3, 17, 2, 2)]
    {
        block[csr::EVENT] = Class::ACK.0;
        for (word, value) in [
            (csr::OPCODE, Class::ACK.0),
            (csr::NOW, now),
            (csr::ACKED, acked),
            (csr::RATE, rate),
            (csr::SENT, sent),
        ] {
            block[word] = value;
        }
        assert!(matches!(core.run(&mut block, 10_000), Stop::Written { .. }));
        block[csr::EVENT] = 0;
        assert!(waits(core.run(&mut block, 10_000)));
        let filled = now + if rate & 15 == acked & 15 { now } else { 0 };
        #[expect(clippy::cast_possible_truncation, reason = "octets")]
        let mut octets: Vec<u8> = (0..40).map(|i: u32| (i + now) as u8).collect();
        let from = (sent & 3) as usize;
        octets.copy_within(from..from + 30, 1);
        let sum = octets.iter().fold(0u32, |sum, octet| sum.wrapping_mul(31).wrapping_add((*octet).into()));
        let (length, at) = ((acked & 31) as usize, (rate & 15) as usize);
        let unlike = (0..length).find(|&i| octets[i] != octets[at + i]);
        let order = unlike.map_or(0, |i| i32::from(octets[i]) - i32::from(octets[at + i]));
        let expected = [filled, (rate % 24).wrapping_mul(now), sum, order.cast_unsigned()];
        assert_eq!(block[..4], expected, "{now} {acked} {rate} {sent}");
    }
    // A program that needs none has none.
    let plain = Program::load(RIGHT, csr::machine()).expect("a program");
    assert!(plain.symbols().iter().all(|symbol| !symbol.name.starts_with("mem")));
}

#[test]
fn what_registers_would_cut_is_refused_when_it_is_built_and_leaves_no_old_image() {
    let refused =
        |name: &str, fields: &str, before: &str, event: &str| match built(name, fields, before, event) {
            Some(Ok(_)) => panic!("{event}: it was built"),
            Some(Err(error)) => Some(error),
            None => None,
        };
    let parameter = "float share = 0.8f;";
    for (at, event) in [
        "setRate(share);",
        "armTimer(0, share * 3);",
        "updateContext(e.context.rate, share);",
        "setWindow(2.5);",
    ]
    .into_iter()
    .enumerate()
    {
        let Some(told) = refused(&format!("float-{at}"), "uint32_t rate;", parameter, event) else { return };
        assert!(
            told.contains("law.c:11:") && told.contains("a float would lose its fraction"),
            "{event}: {told}"
        );
        assert!(told.contains("law.elf was of an earlier text and is removed"), "{told}");
    }
    let Some(told) = refused("index", "uint32_t n[8];", "", "updateContext(e.context.n[e.now & 7], 1);")
    else {
        return;
    };
    assert!(
        told.contains("law.c:11:") && told.contains("the index of a word of the context must be a constant"),
        "{told}"
    );
    let Some(told) = refused("wide", "uint32_t at;\nuint64_t sum;", "", "") else { return };
    assert!(told.contains("law.c:5: error: fields of QPContext are at most 32 bits wide"), "{told}");
    // A whole number may be written so.
    let built = built("whole", "uint32_t rate;", "", "setRate(5e6);").expect("there was a compiler");
    assert!(built.is_ok(), "{built:?}");
}

#[test]
fn what_is_warned_of_in_a_helper_names_the_line_that_calls_it() {
    let before =
        "static inline uint32_t at(uint32_t place) {\n    return *(volatile uint32_t *)(uintptr_t)place;\n}";
    let Some(image) = built("helper", "uint32_t word;", before, "updateContext(e.context.word, at(e.now));")
    else {
        return;
    };
    let warnings: Vec<_> =
        of_image(&image.expect("it builds"), CYCLES_MAX).expect("it is sound").warnings().collect();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.contains(", law.c:7), called at law.c:13: loads from"), "{warning}");
}

#[test]
fn a_program_that_is_too_large_is_told_by_how_much() {
    let before = "static uint32_t many[2000];";
    let event = "many[e.now % 2000]++; updateContext(e.context.at, many[e.acked % 2000]);";
    let Some(image) = built("large", "uint32_t at;", before, event) else { return };
    let told = refusal(&image.expect("it builds"));
    assert!(
        told.contains("variables take 8000 octets, and there are 4096: leave out 3904 of them"),
        "{told}"
    );
}

#[test]
fn what_takes_too_long_is_told_with_the_cycles_that_would_do() {
    let swift = include_bytes!("../../../firmware/swift.elf");
    let most = |check: Check| check.sides.iter().map(|side| side.cycles).max().expect("a side");
    let needed = most(of_image(swift, CYCLES_MAX).expect("ours"));
    let told = of_image(swift, 500).expect_err("it takes longer").to_string();
    let wanted = format!("`--cycles {needed}` would do");
    assert!(told.contains(&wanted), "{wanted}: {told}");
    assert_eq!(most(of_image(swift, needed).expect("that does")), needed);
    let told = refusal(include_bytes!("programs/unbounded.elf"));
    assert!(told.contains("no bound is known, up to 1000000 cycles"), "{told}");
}

#[test]
fn an_image_of_64_bits_is_refused_as_such() {
    let refusal = refusal(include_bytes!("programs/sixty_four_bits.elf"));
    let (refusal, todo) = refusal.split_once("\n  what to do: ").expect("it says what to do");
    assert_eq!(refusal, "ELF class 2 (octet 4); a 32-bit program has class 1");
    assert!(todo.contains("`roci program build FILE.c`"), "{todo}");
}

#[test]
fn an_image_that_is_cut_off_anywhere_is_refused() {
    for length in 0..RIGHT.len() {
        let refused = of_image(&RIGHT[..length], CYCLES_MAX);
        assert!(matches!(refused, Err(CheckError::Load(_))), "{length}: {refused:?}");
    }
    assert!(of_image(RIGHT, CYCLES_MAX).is_ok());
    assert_eq!(
        of_image(&RIGHT[..1000], CYCLES_MAX).expect_err("it is cut off").reason(),
        format!("it is cut off at octet 1000: its table of sections goes to octet {}", RIGHT.len())
    );
}

#[test]
fn an_event_that_takes_longer_than_it_may_is_refused() {
    let check = of_image(RIGHT, CYCLES_MAX).expect("it is right");
    let most = check.sides.iter().map(|side| side.cycles).max().unwrap_or(0);
    assert!(of_image(RIGHT, most).is_ok());
    let refused = of_image(RIGHT, most / 2);
    assert!(matches!(refused, Err(CheckError::Refused { .. })), "{refused:?}");
}

#[test]
fn classes_that_are_traced_later_are_bounded_too() {
    let check =
        of_image(include_bytes!("../../control/tests/images/opening.elf"), CYCLES_MAX).expect("right");
    let kinds: Vec<_> = check.side(Side::Rx).expect("recv").kinds.iter().map(|(class, _)| *class).collect();
    assert!(kinds.contains(&Class::CNP), "its first event asks for CNPs: {kinds:?}");
    assert!(kinds.contains(&Class::ACK) && kinds.contains(&Class::TIMER));
    assert!(!kinds.contains(&Class::PULL));
}

#[test]
fn what_a_program_never_traces_is_not_bounded() {
    // Its timers, its byte counter and its priorities are set to what only its parameters and packets say.
    for (image, traced) in [
        (
            &include_bytes!("../../../firmware/dcqcn.elf")[..],
            Class::CNP.with(Class::CE).with(Class::BYTE_COUNTER),
        ),
        (
            include_bytes!("../../../firmware/homa.elf"),
            Class::MESSAGE.with(Class::GRANT).with(Class::RESEND).with(Class::TURN),
        ),
    ] {
        let check = of_image(image, CYCLES_MAX).expect("ours");
        let kinds = &check.side(Side::Rx).expect("recv").kinds;
        let all = kinds.iter().fold(Class::NONE, |all, (class, _)| all.with(*class));
        assert_eq!(all, traced.with(Class::TIMER).with(roci_control::program::csr::OPEN));
    }
}

#[test]
fn the_bound_of_a_check_is_the_limit_that_a_run_takes() {
    use roci_control::program::{Image, Options};
    for nic in ["swcc", "bluefield3", BARE] {
        let machine = roci_lab::program::machine(nic).expect("it has cores");
        let check = Check::of_image(RIGHT, machine.clone(), CYCLES_MAX).expect("it is right");
        let most = check.sides.iter().map(|side| side.cycles).max().unwrap_or(0);
        let image = |cycles_max| {
            Image::new(
                "credit",
                RIGHT,
                &Options { machine: machine.clone(), cycles_max, ..Options::default() },
            )
        };
        assert!(image(most).is_ok() && image(most - 1).is_err(), "{nic}: {most}");
    }
}
