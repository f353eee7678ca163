//! The tables of `docs/guide/scenario.md` are made from the parser's own list of keys, and compared with it here.
//!
//! After a change of keys, `ROCI_UPDATE_GUIDE=1 cargo test -p roci-lab guide` rewrites them.

use super::keys::{Key, SECTIONS, Section};
use roci_control::{Context, LAWS, Law, Place};
use roci_units::{BitsPerSec, Instant};
use std::path::PathBuf;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/scenario.md")
}

fn row(key: &Key) -> String {
    let bar = |text: &str| text.replace('|', "\\|");
    format!("| `{}` | {} | {} | {} |\n", key.name, bar(key.takes), bar(key.default), bar(key.means))
}

fn table(section: &Section) -> String {
    let mut text = "| key | takes | default | meaning |\n| --- | --- | --- | --- |\n".to_owned();
    // What a section shares with its `on` is its own all the same; what it shares with others is told apart.
    let own = section.also.filter(|also| also.path == section.path);
    text.extend(section.keys.iter().chain(own.into_iter().flat_map(|also| also.keys)).map(row));
    if let Some(also) = section.also.filter(|also| also.path != section.path) {
        let names: Vec<String> = also.names().iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("\nand {} as in `{}`.\n", names.join(", "), also.path));
    }
    text
}

fn law(name: &str) -> String {
    let link = BitsPerSec::from_gbps(100);
    let make = |settings: &[(&str, &str)]| Law::from_settings(name, settings, link).expect("a law");
    let law = make(&[]);
    if law.registers().is_empty() {
        return "It has no keys.\n".to_owned();
    }
    let mut presets: Vec<Law> = law.presets().iter().map(|preset| make(&[("preset", preset)])).collect();
    let mut text = "| key | takes | meaning |\n| --- | --- | --- |\n".to_owned();
    for register in law.registers() {
        let place = match (register.place, register.writable) {
            (Place::Law, true) => "",
            (Place::Law, false) => " Cannot be written during a run.",
            (Place::Context, true) => " A register of each flow, for `[[at]]` only.",
            (Place::Context, false) => " A register of each flow, to be read.",
        };
        // Flags take no other values than their unit says.
        let range =
            if register.range == register.unit { String::new() } else { format!(": {}", register.range) };
        text.push_str(&format!(
            "| `{}` | {}{range} | {}{place} |\n",
            register.name, register.unit, register.doc
        ));
    }
    if presets.is_empty() {
        text.push_str("\nBy default, at 100 Gb/s:\n\n| key | value |");
        presets.push(law.clone());
    } else {
        text.push_str("\nWhat the presets set, at 100 Gb/s:\n\n| key |");
        law.presets().iter().for_each(|preset| text.push_str(&format!(" `{preset}` |")));
    }
    text.push_str(&format!("\n| --- |{}\n", " --- |".repeat(presets.len())));
    for register in law.registers().iter().filter(|register| register.place == Place::Law) {
        text.push_str(&format!("| `{}` |", register.name));
        for preset in &presets {
            let value = preset.get(&mut Context::None, register.name, Instant::ZERO);
            text.push_str(&format!(" {} |", value.map(|value| value.to_string()).unwrap_or_default()));
        }
        text.push('\n');
    }
    text
}

/// The text between `<!-- keys NAME -->` or `<!-- law NAME -->` and `<!-- end -->`, made anew.
fn renewed(text: &str) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut found = Vec::new();
    let mut skipping = false;
    for line in text.lines() {
        if line == "<!-- end -->" {
            skipping = false;
        }
        if !skipping {
            out.push_str(line);
            out.push('\n');
        }
        let Some(name) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else {
            continue;
        };
        let made = match name.split_once(' ') {
            Some(("keys", path)) => {
                let path = if path == "top" { "" } else { path };
                SECTIONS.iter().find(|section| section.path == path).map(|section| table(section))
            }
            Some(("law", law)) => Some(self::law(law)),
            _ => None,
        };
        if let Some(made) = made {
            found.push(name.to_owned());
            out.push_str(&made);
            skipping = true;
        }
    }
    (out, found)
}

#[test]
fn the_guide_tells_every_key_and_no_other() {
    let text = std::fs::read_to_string(path()).expect("docs/guide/scenario.md");
    let (renewed, found) = renewed(&text);
    if std::env::var_os("ROCI_UPDATE_GUIDE").is_some() {
        std::fs::write(path(), &renewed).expect("docs/guide/scenario.md can be written");
    }
    let told = if std::env::var_os("ROCI_UPDATE_GUIDE").is_some() { &renewed } else { &text };
    for (old, new) in told.lines().zip(renewed.lines()) {
        assert_eq!(old, new, "run ROCI_UPDATE_GUIDE=1 cargo test -p roci-lab guide");
    }
    assert_eq!(told.lines().count(), renewed.lines().count());
    let mut due: Vec<String> = SECTIONS
        .iter()
        .map(|section| format!("keys {}", if section.path.is_empty() { "top" } else { section.path }))
        .collect();
    due.extend(LAWS.iter().map(|law| format!("law {law}")));
    let mut found = found;
    due.sort();
    found.sort();
    assert_eq!(found, due, "sections of the parser and of the guide");
}
