//! Laws made from the text of a scenario.

use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec;

const LINK: BitsPerSec = BitsPerSec::from_gbps(10);

fn refused(name: &str, settings: &[(&str, &str)]) -> SettingError {
    Law::from_settings(name, settings, LINK).expect_err("the settings are wrong")
}

#[test]
fn the_law_of_the_guide_is_made() {
    let law = Law::from_settings("dcqcn", &[("g", "1/128"), ("preset", "sigcomm15")], LINK).expect("valid");
    assert_eq!((law.name(), law.limiter()), ("dcqcn", Scope::Qp));
    let get = |name| law.get(&mut Context::None, name, Instant::ZERO).map(|value| value.to_string());
    assert_eq!(get("g"), Some("1/128".to_string()), "a preset that comes later does not undo a key");
    assert_eq!(get("increase_timer"), Some("55us".to_string()));
    assert_eq!(get("rai"), Some("40Mb/s".to_string()));
    assert_eq!(get("rc"), None, "there is no queue pair");
}

#[test]
fn increments_of_hpcc_scale_with_the_link() {
    for (gbps, rai, rmin) in [(10, "2Mb/s", "400Mb/s"), (25, "5Mb/s", "1Gb/s"), (100, "20Mb/s", "1Gb/s")] {
        let law =
            Law::from_settings("dcqcn", &[("preset", "hpcc")], BitsPerSec::from_gbps(gbps)).expect("valid");
        let get = |name| law.get(&mut Context::None, name, Instant::ZERO).expect("a parameter").to_string();
        assert_eq!((get("rai").as_str(), get("rmin").as_str()), (rai, rmin));
    }
}

#[test]
fn what_does_not_exist_is_answered_with_what_does() {
    let error = refused("timely2", &[]);
    assert_eq!(error.valid(), LAWS);
    let choices = LAWS.join(", ");
    assert_eq!(error.to_string(), format!("there is no law \"timely2\"; choose one of {choices}"));
    assert_eq!(refused("dcqcn", &[("preset", "sigcom15")]).valid(), dcqcn::PRESETS);
    assert!(refused("dcqcn", &[("gain", "1/2")]).valid().contains(&"g"));
    assert!(refused("dcqcn", &[("rc", "1Gb/s")]).valid().contains(&"preset"), "state is no key");
    assert_eq!(refused("none", &[("g", "1/2")]).to_string(), "there is no key \"g\"; it has none");
    assert!(matches!(refused("none", &[("preset", "x")]), SettingError::Key { .. }));
}

#[test]
fn a_value_out_of_range_is_answered_with_the_range() {
    let cases = vec![
        ("g", "0"),
        ("g", "2"),
        ("g", "-1/2"),
        ("rai", "0b/s"),
        ("rai", "5"),
        ("alpha_timer", "0s"),
        ("increase_timer", "fast"),
        ("byte_counter", "5GB"),
        ("threshold", "0"),
        ("threshold", "256"),
        ("hyper", "sometimes"),
        ("clamp", "maybe"),
        ("alpha_bits", "31"),
        ("first_alpha", "101%"),
    ];
    for (key, text) in cases {
        let error = refused("dcqcn", &[(key, text)]);
        assert!(matches!(error, SettingError::Value { name, .. } if name == key), "{key} = {text}: {error}");
        assert!(error.to_string().contains("it takes"), "{error}");
    }
}

#[test]
fn a_refused_write_changes_nothing() {
    let mut law = Law::from_settings("dcqcn", &[], LINK).expect("valid");
    assert!(law.set("threshold", "0").is_err());
    assert!(law.set("limiter", "port").is_err(), "fixed once traffic runs");
    assert_eq!(law.get(&mut Context::None, "threshold", Instant::ZERO), Some(Value::Count(5)));
    assert_eq!(law.set("threshold", "7"), Ok(()));
    assert_eq!(law.get(&mut Context::None, "threshold", Instant::ZERO), Some(Value::Count(7)));
}

#[test]
fn without_a_law_nothing_is_heard_or_shown() {
    let mut law = Law::None;
    let (mut context, credit, wake) = law.connect(LINK.as_kbps());
    assert_eq!((law.traces(), credit, wake), (Class::NONE, Credit::FREE, Instant::NEVER));
    assert_eq!(law.sample(&mut context, &Credit::FREE, Instant::ZERO), None);
    assert!(law.set("g", "1/2").is_err());
}

#[test]
fn every_law_prints_what_it_reads() {
    for name in ["timely", "dctcp", "hpcc", "powertcp", "theta-powertcp", "swift", "nscc"] {
        let presets = Law::from_settings(name, &[], LINK).expect("a law").presets();
        for preset in presets {
            let law = Law::from_settings(name, &[("preset", preset)], LINK).expect("a preset");
            let mut copy = Law::from_settings(name, &[], LINK).expect("a law");
            let (mut context, ..) = law.connect(LINK.as_kbps());
            for register in law.registers() {
                let value = law.get(&mut context, register.name, Instant::ZERO).expect("a value").to_string();
                if register.place == Place::Law {
                    assert_eq!(copy.set(register.name, &value), Ok(()), "{name} {} = {value}", register.name);
                    let again = copy.get(&mut Context::None, register.name, Instant::ZERO).expect("a value");
                    assert_eq!(again.to_string(), value, "{name} {}", register.name);
                }
                let mut outcome = Outcome::unchanged(Credit::FREE, Instant::NEVER);
                let written = copy.write(&mut context, register.name, &value, Instant::ZERO, &mut outcome);
                assert_eq!(written.is_ok(), register.writable, "{name} {} = {value}", register.name);
            }
        }
    }
}
