//! Texts that compile or do not, and what is said of them.

/// The image that `roci program build` makes of `text`, and what it warns of; `None` where there is no compiler.
pub(crate) fn made(name: &str, text: &str) -> Option<Result<(Vec<u8>, String), String>> {
    use roci_lab::program::build::{Build, BuildError, Target};
    let folder = std::env::temp_dir().join(format!("roci-built-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, image) = (folder.join("law.c"), folder.join("law.elf"));
    std::fs::write(&source, text).expect("a file");
    // What an earlier text gave.
    std::fs::write(&image, super::RIGHT).expect("a file");
    let built = (Build { source, output: None, target: Target::default() }).run();
    let result = match built {
        Ok(built) => Some(Ok((std::fs::read(&image).expect("the image"), built.warnings))),
        Err(BuildError::NoCompiler) => None,
        Err(error) => {
            assert!(!image.exists(), "no image of another text is left: {error}");
            Some(Err(error.to_string()))
        }
    };
    std::fs::remove_dir_all(&folder).expect("it is there");
    result
}

#[test]
fn a_packet_that_does_not_begin_with_its_four_words_does_not_compile() {
    let text = |packet: &str| {
        format!(
            "#define TracedPkts (ACK | Open)\ntypedef struct {{\n    {packet}\n}} PktHeader;\ntypedef struct {{ int x; }} QPContext;\n\
             int recv() {{\n    Event e;\n    while (true) {{\n        pollEventSync(&e);\n        e.eventType = Done;\n        \
             postEvent(&e);\n    }}\n}}\n"
        )
    };
    for right in ["int qpn, opcode, pktLength, ecn;", "unsigned qpn, opcode, pktLength, ecn; short own[4];"] {
        let Some(made) = made("packet", &text(right)) else { return };
        assert_eq!(made.map(|(_, warnings)| warnings).as_deref(), Ok(""), "{right}");
    }
    for wrong in [
        // Its own words would be where `ecn` is.
        "int credit, qpn, opcode, pktLength, ecn;",
        "int opcode, qpn, pktLength, ecn;",
        // Classes have 32 bits.
        "uint16_t qpn, opcode, pktLength, ecn; int own[2];",
    ] {
        let why = "law.c:4: error: PktHeader begins with `int qpn, opcode, pktLength, ecn`, and words of its own follow\n";
        let Some(Err(error)) = made("packet", &text(wrong)) else { panic!("{wrong} compiles") };
        assert!(error.contains(why) && !error.contains("expected"), "{wrong}: {error}");
    }
    let Some(Err(error)) = made("packet", "int recv() {}\n") else { panic!("nothing compiles") };
    assert!(
        error.contains("it has no `PktHeader`; `roci program new`") && !error.contains("expected"),
        "{error}"
    );
}

#[test]
fn what_compiles_and_traps_or_only_looks_right_is_warned_of_with_what_to_do() {
    let text = |before: &str, event: &str| {
        format!(
            "#define TracedPkts (ACK | Open)\ntypedef struct {{ int qpn, opcode, pktLength, ecn; }} PktHeader;\n\
             typedef struct {{ uint32_t x; }} QPContext;\n{before}\nint recv() {{\n    Event e;\n    while (true) {{\n        \
             pollEventSync(&e);\n        {event}\n        e.eventType = Done;\n        postEvent(&e);\n    }}\n}}\n"
        )
    };
    for (before, event, expected) in [
        (
            "static uint8_t octets[8];",
            "setRate(*(uint32_t *)(octets + 1));",
            ["law.c:9:", "words lie at multiples of 4"],
        ),
        (
            "static void hear(Event *e) { setRate(e->rate); }",
            "hear(&e);",
            ["law.c:4:", "`typedef Event Heard;`"],
        ),
    ] {
        let Some(made) = made("traps", &text(before, event)) else { return };
        let (_, warnings) = made.expect("it compiles");
        assert!(expected.iter().all(|part| warnings.contains(part)), "{warnings}");
    }
    let sound =
        "typedef Event Heard;\nstatic void hear(Heard *e) { updateContext(e->context.x, e->rate); }\n";
    let text = text(sound, "hear(&e);").replace("    Event e;", "    Heard e;");
    let Some(made) = made("traps", &text) else { return };
    assert_eq!(made.map(|(_, warnings)| warnings).as_deref(), Ok(""));
    let text = text.replace("(ACK | Open)", "ACK, Open");
    let Some(made) = super::text::made("traps", &text) else { return };
    let (_, warnings) = made.expect("it compiles");
    assert!(warnings.starts_with("law.c:1: warning: TracedPkts has `,`"), "{warnings}");
    assert_eq!(warnings.lines().count(), 1, "{warnings}");
}
