//! Congestion control by name, as a command line says it.

use roci_control::program::{ImageError, Options};
use roci_control::{Image, Law, Programmed, SettingError};
use roci_units::BitsPerSec;
use roci_wire::{Cc, Layout};
use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Why a device cannot run what was asked for.
#[derive(thiserror::Error)]
pub enum LawError {
    /// There is no such law.
    #[error("there is no law {0:?}; choose one of {list}, or a program's file, which ends with .elf", list = on_the_wire())]
    Unknown(String),
    /// It has no such setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// What follows the name is no `KEY=VALUE`.
    #[error("`{0}` is no KEY=VALUE")]
    Pair(String),
    /// The program's file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, io::Error),
    /// It is no program, or not one that is let in.
    #[error("{0}: {1}")]
    Image(String, ImageError),
    /// It needs what packets on a real network do not bring.
    #[error("{0} needs {1}, which RoCEv2 does not carry; what runs on the wire are {list} and programs like them", list = on_the_wire())]
    Simulated(String, &'static str),
}

speaks!(LawError);

/// The laws that run on the wire; the last two where switches write telemetry.
fn on_the_wire() -> String {
    Programmed::FALLBACKS.into_iter().chain(["hpcc", "powertcp"]).collect::<Vec<_>>().join(", ")
}

/// The law that `text` names, on links of `link`, which may want a [layout] of its own: `dcqcn`, `firmware/dcqcn.elf`, or with settings behind it
/// `dcqcn,preset=hpcc,rai=80Mb/s`. The settings of a program are words of its context; where it fails
/// [`Programmed::usual_fallback`] takes over.
/// `read` brings a program's file.
///
/// # Errors
/// [`LawError`].
pub fn law(
    text: &str,
    link: BitsPerSec,
    read: impl FnOnce(&Path) -> io::Result<Vec<u8>>,
) -> Result<Law, LawError> {
    let mut words = text.split(',');
    let name = words.next().unwrap_or_default().trim();
    let settings = words
        .map(|pair| pair.split_once('=').ok_or_else(|| LawError::Pair(pair.to_owned())))
        .map(|pair| pair.map(|(key, value)| (key.trim(), value.trim())))
        .collect::<Result<Vec<_>, _>>()?;
    let law = if Path::new(name).extension().is_none_or(|extension| extension != "elf") {
        Law::from_settings(name, &settings, link).map_err(|error| match error {
            // Its list has laws that run in a simulation alone.
            SettingError::Law { name, .. } => LawError::Unknown(name),
            error => error.into(),
        })?
    } else {
        program(name, &settings, link, read)?
    };
    match need(&law) {
        Some(Need::Grants | Need::Pulls) => Err(LawError::Simulated(name.to_owned(), "a header of its own")),
        Some(_) if layout(&law) == Layout::Standard => {
            Err(LawError::Simulated(name.to_owned(), "more than 16 words in each packet"))
        }
        _ => Ok(law),
    }
}

/// The layout in which queue pairs of a law that [`law`] gives are to be made, with go-back-N where it is not the standard one
/// ([`QueuePairBuilder::recovery`](crate::QueuePairBuilder::recovery)); both ends must have the same.
pub fn layout(law: &Law) -> Layout {
    match need(law) {
        Some(Need::Telemetry(words) | Need::Words(words) | Need::Packets(words)) => {
            let words = u8::try_from(words).unwrap_or(u8::MAX);
            Cc::new(false, law.wants_telemetry(), words).map_or(Layout::Standard, Layout::Cc)
        }
        Some(Need::Grants) => Layout::Homa,
        Some(Need::Pulls) => Layout::Ndp,
        None => Layout::Standard,
    }
}

/// What `law` is called: a program by the name of its image's file, in which nothing parts words.
pub fn title(law: &Law) -> Cow<'_, str> {
    let Law::Program(program) = law else { return law.name().into() };
    match Path::new(program.image().name()).file_name() {
        None => law.name().into(),
        Some(file) => {
            let parts = |c: char| c.is_whitespace() || c.is_control();
            file.to_string_lossy().replace(parts, "_").into()
        }
    }
}

/// The law that is the program in the file `name`.
fn program(
    name: &str,
    settings: &[(&str, &str)],
    link: BitsPerSec,
    read: impl FnOnce(&Path) -> io::Result<Vec<u8>>,
) -> Result<Law, LawError> {
    let octets = read(Path::new(name)).map_err(|error| LawError::File(name.to_owned(), error))?;
    let image = Image::new(name, &octets, &Options::default());
    let image = image.map_err(|error| LawError::Image(name.to_owned(), error))?;
    let fallback = Law::from_settings(Programmed::usual_fallback(&image), &[], link)?;
    let Some(mut law) = Programmed::new(Arc::new(image), fallback) else {
        return Err(LawError::Simulated(name.to_owned(), "another law to fall back to"));
    };
    law.set_initial_all(settings).map_err(|(_, error)| error)?;
    Ok(Law::Program(Box::new(law)))
}

/// What a law needs of packets that those of the standard layout do not bring.
#[derive(Clone, Copy)]
enum Need {
    /// What switches write, and so many words of its own.
    Telemetry(usize),
    Grants,
    Pulls,
    /// So many words of its own on each packet.
    Words(usize),
    /// Packets of its own, and so many words.
    Packets(usize),
}

fn need(law: &Law) -> Option<Need> {
    match law {
        Law::Program(program) if law.wants_telemetry() => {
            Some(Need::Telemetry(program.image().header_words().into()))
        }
        law if law.wants_telemetry() => Some(Need::Telemetry(0)),
        Law::Homa(_) => Some(Need::Grants),
        Law::Ndp(_) => Some(Need::Pulls),
        Law::Program(law) => {
            let (image, words) = (law.image(), usize::from(law.image().header_words()));
            match (image.is_granted(), image.has_own_packets(), words) {
                (true, ..) => Some(Need::Grants),
                (false, true, words) => Some(Need::Packets(words)),
                (false, false, 0) => None,
                (false, false, words) => Some(Need::Words(words)),
            }
        }
        _ => None,
    }
}

/// What `law` needs that packets of `layout` do not bring.
pub(crate) fn lacks(law: &Law, layout: Layout) -> Option<&'static str> {
    let has = |words, int: bool| matches!(layout, Layout::Cc(cc) if cc.words() - cc.own_at() >= words && (!int || layout.int_at().is_some()));
    let (is_brought, what) = match need(law)? {
        Need::Telemetry(words) => (has(words, true), "telemetry, which layout `cc` has room for"),
        Need::Grants => (layout == Layout::Homa, "grants, which layout `homa` brings"),
        Need::Pulls => (layout == Layout::Ndp, "pulls, which layout `ndp` brings"),
        Need::Words(words) | Need::Packets(words) => {
            (has(words, false), "words or packets of its own, which layout `cc` brings")
        }
    };
    (!is_brought).then_some(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: BitsPerSec = BitsPerSec::from_gbps(100);

    fn shipped(path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path))
    }

    #[test]
    fn laws_are_named_with_their_settings_and_programs_by_their_files() {
        let named = |text| law(text, LINK, shipped).unwrap().name();
        assert_eq!(named("none"), "none");
        assert_eq!(named("timely"), "timely");
        assert_eq!(named("dcqcn, preset = hpcc, rai = 80Mb/s"), "dcqcn");
        assert_eq!(named("firmware/dcqcn.elf"), "program");
        assert_eq!(named("firmware/timely.elf"), "program");
    }

    #[test]
    fn a_program_is_called_by_its_file_in_one_word() {
        let octets = include_bytes!("../../control/tests/images/refuses.elf");
        let called = |name: &str| {
            let image = Image::new(name, octets, &Options::default()).unwrap();
            let law = Law::Program(Box::new(Programmed::new(Arc::new(image), Law::None).unwrap()));
            title(&law).into_owned()
        };
        assert_eq!(called("/home/me/my laws/near and far.elf"), "near_and_far.elf");
        assert_eq!([called("near.elf"), called("..")], ["near.elf", "program"]);
        assert_eq!(title(&Law::None), "none");
    }

    #[test]
    fn who_names_no_law_is_told_of_those_that_run_here() {
        let why = law("nosuch", LINK, shipped).unwrap_err().to_string();
        let list = why.split_once("choose one of ").unwrap().1.split_once(", or").unwrap().0;
        for name in list.split(", ") {
            assert!(law(name, LINK, shipped).is_ok(), "{name} of {why}");
        }
        let why = law("dcqcn,rai=5", LINK, shipped).unwrap_err().to_string();
        assert!(why.ends_with("it takes 1Kb/s to 4.29Tb/s"), "{why}");
    }

    #[test]
    fn a_law_s_layout_brings_what_it_needs() {
        let cc = |int, words| Layout::Cc(Cc::new(false, int, words).unwrap());
        for (text, own) in [
            ("dcqcn", Layout::Standard),
            ("firmware/dcqcn.elf", Layout::Standard),
            ("hpcc", cc(true, 0)),
            ("powertcp", cc(true, 0)),
            ("firmware/hpcc.elf", cc(true, 0)),
            ("firmware/credit.elf", cc(false, 1)),
            ("crates/control/tests/images/talks.elf", cc(false, 1)),
        ] {
            let law = law(text, LINK, shipped).unwrap();
            assert_eq!(layout(&law), own, "{text}");
            assert_eq!(lacks(&law, own), None, "{text}");
            assert_eq!(lacks(&law, Layout::Irn).is_some(), own != Layout::Standard, "{text}");
        }
        let hpcc = law("hpcc", LINK, shipped).unwrap();
        assert!(lacks(&hpcc, cc(false, 11)).is_some());
        let with_time = Layout::Cc(Cc::new(true, true, 0).unwrap());
        assert_eq!(lacks(&hpcc, with_time), None);
    }

    #[test]
    fn what_cannot_run_is_refused_with_a_reason() {
        for (text, why) in [
            ("dcqcm", "there is no law \"dcqcm\""),
            ("dcqcn,rai", "`rai` is no KEY=VALUE"),
            ("dcqcn,rai=fast", "it takes"),
            ("homa", "a header of its own"),
            ("firmware/homa.elf", "needs"),
            ("firmware/nosuch.elf", "cannot read firmware/nosuch.elf"),
            ("firmware/dcqcn.elf,nosuch=1", "nosuch"),
        ] {
            let error = law(text, LINK, shipped).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let error = law("Cargo.elf", LINK, |_| Ok(b"no program".to_vec())).unwrap_err();
        assert!(matches!(error, LawError::Image(..)), "{error}");
    }
}
