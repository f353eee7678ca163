use super::*;

/// The warnings of a program that traces `ACK | CNP`, without their file.
fn of(body: &str) -> Vec<String> {
    let text = format!(
        "# 1 \"law.c\" 1\n{body}\n# 3 \"/ours/end.h\" 1\nroci_trace((ACK | CNP));\ne.context.x = 1;\n"
    );
    warnings(&text, "/ours")
        .lines()
        .map(|line| line.replace("law.c:", "").replace(" warning: ", " "))
        .collect()
}

#[test]
fn what_is_assigned_to_a_context_and_not_written_is_named() {
    let told = of("if (e.packet.ecn)\n  e.context.rate = 5;");
    assert_eq!(
        told,
        [
            "2: `e.context.rate` is assigned without updateContext, so the queue pair does not keep it: write updateContext(e.context.rate, …)"
        ]
    );
    for lost in [
        "e->context.x += 1;",
        "(*e).context.x++;",
        "--e.context.x;",
        "if (a) e.context.x <<= 2;",
        "e.context.link[i + 1].at = 3;",
        "else e.context.x = e.context.y;",
        "QPContext *c = &e.context; c->x = 3;",
        "Link *link = &e->context.links[n]; link->rate[1] += 3; roci_update(link->at, 4);",
    ] {
        assert_eq!(of(lost).len(), 1, "{lost}: {:?}", of(lost));
    }
    let packet = of("e.packet.opcode = ACK;");
    assert!(packet.len() == 1 && packet[0].contains("updatePkt(e.packet.opcode, …)"), "{packet:?}");
}

#[test]
fn what_an_event_only_tells_is_not_set_by_assigning_it() {
    let told = of("roci_poll(&e);\ne.rate = 5000000;");
    assert_eq!(
        told,
        ["2: `e.rate` is assigned, and nothing comes of it; it only tells what is so: write setRate(…)"]
    );
    for (lost, remedy) in [
        ("roci_poll(e); e->window -= 3;", "setWindow"),
        ("roci_poll(&e); if (x) e.tokens++;", "setTokens"),
        ("roci_poll(&e); --e.now;", "a variable"),
    ] {
        assert!(matches!(&of(lost)[..], [one] if one.contains(remedy)), "{lost}: {:?}", of(lost));
    }
    for fine in [
        "roci_poll(&e); e.eventType = Done; x = e.rate; if (e.rate == 5) ;",
        "roci_poll(&e); other.rate = 5; my.e.rate = 5; rate = e.now;",
        "roci_poll(&e); e.context.rate = 5; roci_update(e.context.rate, e.context.rate);",
    ] {
        assert_eq!(of(fine), [""; 0], "{fine}");
    }
}

#[test]
fn a_place_that_is_no_word_of_the_context_is_named() {
    let told = of("roci_poll(&e); roci_update(e.rate, 5);");
    let expected = "1: `e.rate` is no field of the context or the packet, and another word would be written: write setRate(…)";
    assert_eq!(told, [expected]);
    assert!(of("roci_poll(&e); roci_update(e->now, 5);")[0].contains("keep what is computed in a variable"));
    assert!(of("roci_poll(&e); roci_update(e.eventType, Done);")[0].ends_with("write `e.eventType = …;`"));
    let context = "typedef struct { uint32_t n[4], rate; } QPContext;\n";
    let told = of(&format!("{context}roci_update(e.context.n[4], 5);"));
    let expected = "2: `n[4]` is beyond the array, whose words are n[0] to n[3]: it is another word of the context, or none";
    assert_eq!(told, [expected]);
    let through = of(&format!("{context}QPContext *c = &e.context; x = c->n[9];"));
    assert!(through.len() == 1 && through[0].contains("`n[9]`"), "{through:?}");
    for fine in [
        "roci_update(e.context.rate, 5); roci_update(e.packet.credit, 5); roci_update(rate, 5);",
        "roci_poll(&e); QPContext *c = &e.context; roci_update(c->rate, 5);",
        "roci_update(e.context.n[3], 5); x = other.n[4]; y = e.context.m[4]; z = e.context.n[i];",
    ] {
        assert_eq!(of(&format!("{context}{fine}")), [""; 0], "{fine}");
    }
}

#[test]
fn a_side_that_is_static_is_named() {
    assert_eq!(
        of("static int recv() {\n}"),
        ["1: `recv` is static, so nobody can start a core with it: write `int recv()`"]
    );
    assert_eq!(of("static inline int send(void) { }").len(), 1);
    assert_eq!(of("static int x; int recv() { receive(); } static void resend() { }"), [""; 0]);
}

#[test]
fn a_field_with_an_index_is_told_that_it_must_be_a_constant() {
    let told = of("e.context.n[i] = 5;");
    assert!(
        told.len() == 1
            && told[0].contains("updateContext(e.context.n[i], …), where the index must be a constant"),
        "{told:?}"
    );
    assert!(of("e.context.n[3] = 5;")[0].ends_with("updateContext(e.context.n[3], …)"));
}

#[test]
fn what_is_written_or_only_read_is_not() {
    for fine in [
        "roci_update(e.context.x, e.context.x + 1);",
        "uint32_t x = e.context.x, y = (e.context.x);",
        "if (e.context.x == 5 || e.context.x <= 4 || e.context.x >= 3 || e.context.x != 2) ;",
        "*(volatile uint32_t *)e.context.link[0].at = 1;",
        "*e.context.x = 1;",
        "f(\"e.context.x = 5\", '\"', e.context.x);",
        "e.context.x /= 2; roci_update(e.context.x, e.context.x);",
        "context.x = 5; other.contexts.x = 5;",
        "x = y ? e.context.x : -e.context.x;",
        "QPContext *c = &e.context; roci_update(c->x, c->y); c->z == 3;",
        "QPContext mine, *c = &e.context; c = &mine; c->x = 3;",
    ] {
        assert_eq!(of(fine), [""; 0], "{fine}");
    }
}

#[test]
fn an_event_that_is_waited_for_and_not_traced_is_named() {
    assert_eq!(
        of("if (e.packet.opcode == Loss) ;"),
        ["1: TracedPkts has no Loss, so no event is one: add it there to hear of it"]
    );
    for unheard in [
        "if (Open == e.packet.opcode) ;",
        "if (e->packet.opcode != NACK) ;",
        "if (e.eventType == ByteCounter) ;",
        "if (e.packet.opcode & (SEND_REQ | WRITE_REQ)) ;",
        "if (e.packet.opcode & RNR) ;",
        "switch (e.packet.opcode) { case ACK: break; case GRANT: break; }",
    ] {
        assert_eq!(of(unheard).len(), 1, "{unheard}: {:?}", of(unheard));
    }
    for heard in [
        "if (e.packet.opcode == CNP || e.packet.opcode == Timer || e.eventType == Transmit) ;",
        "if (e.packet.opcode & (Loss | ACK)) ;",
        "if (e.packet.opcode == kind) ;",
        "switch (e.packet.pktLength) { case 1: ; }",
        "roci_trace(Loss); if (e.packet.opcode == Loss) ;",
        "roci_trace(later); if (e.packet.opcode == Loss) ;",
        "roci_update(e.packet.opcode, PULL);",
    ] {
        assert_eq!(of(heard), [""; 0], "{heard}");
    }
}

#[test]
fn an_answer_that_is_compared_with_a_class_is_named() {
    assert_eq!(
        of("while (1) { roci_poll(&e);\n e.eventType = Done;\n if (e.eventType == ACK) ; }"),
        ["3: `e.eventType` is the answer from line 2 on, and no class: compare e.packet.opcode"]
    );
    for fine in [
        "roci_poll(&e); if (e.eventType == ACK) ; e.eventType = Done;",
        "roci_poll(&e); e.eventType = Done; if (e.eventType == GenTxEvent) ;",
        "roci_poll(&e); e.eventType = Done; if (e.packet.opcode == ACK) ;",
        "roci_poll(&e); if (x) e.eventType = Done; else if (e.eventType == ACK) ;",
        "roci_poll(&e); if (x) { e.eventType = Done; } else if (e.eventType == ACK) ;",
        "roci_poll(&e); e.eventType = Done; roci_post(&e); roci_poll(&e); if (e.eventType == ACK) ;",
    ] {
        assert_eq!(of(fine), [""; 0], "{fine}");
    }
}

#[test]
fn classes_that_are_joined_by_a_logical_or_are_named() {
    let (line, told) = joined("/* a law */\n#define TracedPkts (ACK || Open)\n").unwrap();
    assert!(line == 2 && told.contains("`||`") && told.contains("join classes by `|`"), "{told}");
    assert!(joined("#define TracedPkts (ACK && Open)\n").is_some());
    let (_, comma) = joined("#define TracedPkts ACK, Open /* both */\n").unwrap();
    assert!(comma.contains("`,`, whose value is what follows the last one"), "{comma}");
    for fine in
        ["#define TracedPkts (ACK | Open) /* one || the other */\n", "int recv() { return a || b; }\n"]
    {
        assert_eq!(joined(fine), None, "{fine}");
    }
}

#[test]
fn a_line_is_that_of_the_file_that_it_came_from() {
    let text =
        "# 7 \"a.c\"\nint x;\n# 40 \"inc/b.h\" 1\n\ne.context.x = 1;\n# 9 \"a.c\" 2\ne.context.y = 1;\n";
    let told = warnings(text, "/ours");
    let lines: Vec<_> =
        told.lines().filter_map(|line| line.split_once(": warning")).map(|(place, _)| place).collect();
    assert_eq!(lines, ["inc/b.h:41", "a.c:9"]);
}

#[test]
fn no_text_is_too_strange_to_be_looked_at() {
    for strange in [
        ".context.",
        ")",
        "e.context.x[",
        "(((",
        "\"",
        "'\\",
        "roci_trace(",
        "roci_update(",
        "&",
        "switch (e.packet.opcode",
        "# \"",
        "µ§",
    ] {
        let _ = warnings(strange, "/ours");
        let _ = of(strange);
    }
}
