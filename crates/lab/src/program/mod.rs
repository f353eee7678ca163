//! Congestion control as programs in C: built, checked, profiled, begun.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`build`] | from C to an image, by a cross compiler |
//! | [`check`] | what an image needs at most, proved |
//! | [`floats`] | where it computes with floating point |
//! | [`futile`] | what it does that cannot work |
//! | [`kept`] | what it keeps in the memory of a core |
//! | `said`, `missing` | what compilers say in the program's own words, and what it means that one misses something |
//! | [`profile`] | what it takes over a stream of events, and the rates that follow |
//! | `remedies` | what to do about what the check refuses |
//! | `slips` | what compiles and is not meant |
//! | [`skeleton`] | a new program and a scenario for it |
//! | [`stream`], [`events`] | such streams, and those that a run has recorded |
//! | [`warned`] | what the check warns of in the programs of scenarios |
//!
//! `docs/guide/programs.md` is the user's guide; `roci_control::program` runs programs as laws.

pub mod build;
pub mod check;
pub mod events;
pub mod floats;
pub mod futile;
pub mod kept;
mod missing;
pub mod profile;
pub(crate) mod remedies;
mod said;
pub mod skeleton;
mod slips;
pub mod stream;
pub mod warned;

pub use build::{Build, BuildError, Built};
pub use check::{Check, CheckError, SideCheck};
pub use warned::Warned;

use crate::scenario::program::Costs;
use crate::scenario::source::listed;
pub use roci_control::Class;
use roci_control::program::csr;
pub use roci_control::program::csr::{CLASSES, Side, class_name};
pub use roci_control::program::{Fault, Options};
pub use roci_hart::Machine;
use roci_nic::arch::spec::{Cores, Time};
use std::io::Read;
use std::path::Path;
use std::{fs, io};

/// The image that comes with Rocinante by the path that it has in its repository, such as `firmware/dcqcn.elf`.
pub fn shipped(name: &str) -> Option<&'static [u8]> {
    crate::scenario::program::shipped(name)
}

/// The image at `path`: the file's octets, or where there is none those of the one that comes with Rocinante by that name, as
/// scenarios find it.
///
/// # Errors
/// Why there is none, and where it is no file, what to do.
pub fn image(path: &Path) -> Result<Vec<u8>, String> {
    let absent = |error: io::Error| match path.to_str().and_then(shipped) {
        Some(image) => Ok(image.to_vec()),
        None if error.kind() == io::ErrorKind::NotFound => Err(format!(
            "there is no such file here; build it with `roci program build`, or name one of {}",
            listed(crate::scenario::program::shipped_names())
        )),
        None => Err(error.to_string()),
    };
    octets(path).or_else(absent)
}

/// Octets of the longest file that is taken for a program or its text: more than any has.
const LONGEST: u64 = 64 << 20;

/// The octets of the file at `path`, where it is no longer than a program or its text may be, 64 MiB: what stands under its
/// name may be anything, and some devices never end.
///
/// # Errors
/// As of any file; [`io::ErrorKind::FileTooLarge`] where it is longer.
pub fn octets(path: &Path) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    fs::File::open(path)?.take(LONGEST + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is longer than 64 MiB, as no program is",
        ));
    }
    Ok(octets)
}

/// What cores are called that are no NIC's: riscv-mini's, where an instruction on a register takes two cycles.
pub const BARE: &str = "riscv-mini";

/// The cores of the NIC `nic`, a preset, a NIC's file or [`BARE`], as a run on that NIC charges them; `None` where there is no
/// such NIC, or it has no cores.
pub fn machine(nic: &str) -> Option<Machine> {
    if nic == BARE {
        return Some(csr::machine());
    }
    machine_of(&crate::nic::load(nic).ok()?.cores)
}

/// The clock of the cores that [`machine`] is about, in hertz: of [`BARE`] that of SwCC's prototype.
pub fn clock(nic: &str) -> Option<u64> {
    /// riscv-mini's in SwCC's prototype (SwCC §5.1).
    const PROTOTYPE: u64 = 250_000_000;
    if nic == BARE {
        return Some(PROTOTYPE);
    }
    let nic = crate::nic::load(nic).ok().filter(|nic| nic.cores.pairs > 0)?;
    nic.core_clock().map(|clock| clock.hz())
}

/// How many pairs of cores a NIC has that [`machine`] is about; `None` of [`BARE`], which is no NIC.
pub fn pairs(nic: &str) -> Option<u32> {
    crate::nic::load(nic).ok().map(|nic| nic.cores.pairs).filter(|pairs| *pairs > 0)
}

/// Cycles of `clock` hertz until the context and header of an event are in the registers of the cores that [`machine`] is about;
/// [`BARE`] has nothing that loads them.
#[expect(clippy::cast_precision_loss, reason = "a clock is below 2^53 Hz")]
pub fn load(nic: &str, clock: u64) -> f64 {
    match crate::nic::load(nic).map(|nic| nic.cores.load) {
        Ok(Time::Cycles(cycles)) => f64::from(cycles),
        Ok(Time::Span(span)) => span.as_secs_f64() * clock as f64,
        Err(_) => 0.0,
    }
}

/// These cores, likewise; `None` where there are none.
pub(crate) fn machine_of(cores: &Cores) -> Option<Machine> {
    (cores.pairs > 0).then(|| Costs::of(cores).machine())
}

/// The names that [`machine`] takes.
pub fn machines() -> impl Iterator<Item = &'static str> {
    roci_nic::arch::presets::names().filter(|name| machine(name).is_some()).chain([BARE])
}

/// A clock's frequency in hertz from a text such as `250MHz` or `2.4 GHz`: 1 kHz to 1 THz.
pub fn frequency(text: &str) -> Option<u64> {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "Hz" => 1,
        "kHz" => 1_000,
        "MHz" => 1_000_000,
        "GHz" => 1_000_000_000,
        _ => return None,
    };
    let (whole, part) = number.trim_end().split_once('.').unwrap_or((number.trim_end(), ""));
    let digits = u32::try_from(part.len()).ok().filter(|&digits| digits <= 9)?;
    let part = if part.is_empty() { 0 } else { part.parse::<u64>().ok()? };
    let hertz = whole.parse::<u64>().ok()?.checked_mul(unit)? + part.checked_mul(unit)? / 10u64.pow(digits);
    (1_000..=1_000_000_000_000).contains(&hertz).then_some(hertz)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_is_read_as_written() {
        let read = ["250MHz", "2.4 GHz", "1kHz", "1.000000001GHz"].map(frequency);
        assert_eq!(read, [Some(250_000_000), Some(2_400_000_000), Some(1_000), Some(1_000_000_001)]);
        for wrong in ["", "MHz", "250", "2.4.1GHz", "-1MHz", "999Hz", "99999999999999999999GHz", "2GHZ"] {
            assert_eq!(frequency(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_preset_with_cores_is_a_machine() {
        let csr = |name| {
            machine(name).map(|machine| machine.csrs.cost(csr::number(0)).unwrap_or(machine.cycles.csr))
        };
        assert_eq!(
            ["swcc", "swcc-naive", "bluefield3", BARE].map(csr),
            [Some(1), Some(4), Some(18), Some(2)]
        );
        assert_eq!(["cx6", "tonic", "nowhere"].map(csr), [None; 3]);
        assert!(machines().all(|name| machine(name).is_some()));
    }

    #[test]
    fn the_clock_of_cores_is_their_own_or_that_of_their_nic() {
        let clocks = ["swcc", "bluefield3", "soft-roce", BARE, "cx6", "nowhere"].map(clock);
        let expected =
            [Some(250_000_000), Some(1_800_000_000), Some(2_200_000_000), Some(250_000_000), None, None];
        assert_eq!(clocks, expected);
    }

    #[test]
    fn an_image_is_found_where_a_scenario_finds_it() {
        assert_eq!(
            image(Path::new("firmware/swift.elf")).as_deref(),
            Ok(shipped("firmware/swift.elf").expect("ours"))
        );
        let refused = image(Path::new("firmware/swyft.elf")).unwrap_err();
        assert!(
            refused.contains("`roci program build`") && refused.contains("`firmware/swift.elf`"),
            "{refused}"
        );
        assert!(image(Path::new(".")).is_err());
    }

    #[test]
    fn a_file_that_is_too_long_for_a_program_is_not_read_to_its_end() {
        let path = std::env::temp_dir().join(format!("roci-too-long-{}.elf", std::process::id()));
        let file = fs::File::create(&path).unwrap();
        let refused = |length| {
            file.set_len(length).unwrap();
            image(&path).err()
        };
        let (fits, longer, endless) = (refused(LONGEST), refused(LONGEST + 1), refused(1 << 40));
        fs::remove_file(&path).unwrap();
        assert_eq!(fits, None);
        assert!(longer.is_some_and(|why| why.contains("longer than 64 MiB")));
        assert!(endless.is_some_and(|why| why.contains("longer than 64 MiB")));
    }
}
