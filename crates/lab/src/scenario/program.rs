//! Programs as congestion control: `control = { law = "program", elf = "…" }`.

use super::file;
use super::source::{Located, Origin, ScenarioError, Source, listed, nearest};
use super::transport::Control;
use crate::program::{CLASSES, remedies};
use roci_control::program::csr::{machine, machine_with};
use roci_control::program::{ImageError, Options};
use roci_control::{Class, Image, LAWS, Law, Programmed, SettingError, ValueError};
use roci_hart::{CycleModel, LoadError, Machine};
use roci_nic::arch::spec::Cores;
use roci_units::BitsPerSec;
use roci_wire::{Cc, Layout};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The name of the law.
pub(super) const PROGRAM: &str = "program";
/// The register that stands for the program itself.
pub(super) const ELF: &str = "elf";

/// What to do about a value that a program refuses.
pub(super) const REFUSED: &str = "that line of the program says what it takes";

const CONTEXT: &str = "context.";
/// Cycles of an instruction that reads or writes a register.
const CSR: &str = "csr";
const FALLBACK: &str = "fallback";
/// How many events of each host are recorded.
const RECORD: &str = "record";
const KEYS: [&str; 8] = ["elf", "context", "fallback", "check", "cycles", "csr", "executor", "record"];

/// The images that come with Rocinante, by the path that they have in its repository.
const IMAGES: [(&str, &[u8]); 7] = [
    ("firmware/credit.elf", include_bytes!("../../../../firmware/credit.elf")),
    ("firmware/dcqcn.elf", include_bytes!("../../../../firmware/dcqcn.elf")),
    ("firmware/homa.elf", include_bytes!("../../../../firmware/homa.elf")),
    ("firmware/hpcc.elf", include_bytes!("../../../../firmware/hpcc.elf")),
    ("firmware/paced.elf", include_bytes!("../../../../firmware/paced.elf")),
    ("firmware/swift.elf", include_bytes!("../../../../firmware/swift.elf")),
    ("firmware/timely.elf", include_bytes!("../../../../firmware/timely.elf")),
];

/// The image that comes with Rocinante by this name.
pub(crate) fn shipped(name: &str) -> Option<&'static [u8]> {
    IMAGES.iter().find(|(known, _)| *known == name).map(|(_, image)| *image)
}

/// The names that [`shipped`] knows.
pub(crate) fn shipped_names() -> impl Iterator<Item = &'static str> {
    IMAGES.iter().map(|(name, _)| *name)
}

/// Those of them that are twins of laws in Rust, and the names of the laws.
static TWINS: [(&str, &str); 5] = [
    ("firmware/dcqcn.elf", "dcqcn"),
    ("firmware/timely.elf", "timely"),
    ("firmware/hpcc.elf", "hpcc"),
    ("firmware/swift.elf", "swift"),
    ("firmware/homa.elf", "homa"),
];

/// The law that `law` is or, where it is a program of ours by whatever name, that it is the twin of; `None` of other programs.
pub(super) fn law_of(law: &Law) -> Option<&'static str> {
    let Law::Program(program) = law else { return Some(law.name()) };
    let is_it = |(elf, _): &&(&str, &str)| shipped(elf) == Some(program.image().file());
    TWINS.iter().find(is_it).map(|(_, law)| *law)
}

/// A program's image, once it has been loaded. The settings say which it is, so it counts for nothing when settings are
/// compared.
#[derive(Clone, Debug, Default)]
pub struct Loaded(OnceLock<Arc<Image>>);

impl PartialEq for Loaded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Loaded {
    /// The image.
    pub fn image(&self) -> Option<&Arc<Image>> {
        self.0.get()
    }
}

impl From<Option<Arc<Image>>> for Loaded {
    fn from(image: Option<Arc<Image>>) -> Self {
        Self(image.map_or_else(OnceLock::new, OnceLock::from))
    }
}

/// What the instructions of a program take on the cores of a NIC, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Costs {
    /// Those on a word of context or header, and those on any other register; `None`: what `cycles` says.
    registers: Option<(u16, u16)>,
    /// All others.
    cycles: CycleModel,
}

impl Costs {
    /// Those of the cores of a NIC.
    pub(crate) fn of(cores: &Cores) -> Self {
        let cycles = |cycles: u32| u16::try_from(cycles).unwrap_or(u16::MAX);
        let registers = (cores.word > 0).then(|| (cycles(cores.word), cycles(cores.register).max(1)));
        Self { registers, cycles: cores.costs }
    }

    /// The same with `csr` for every register.
    fn with_csr(self, csr: u16) -> Self {
        Self { registers: None, cycles: CycleModel { csr, ..self.cycles } }
    }

    /// A core with them.
    pub(crate) fn machine(self) -> Machine {
        let mut machine = self.registers.map_or_else(machine, |(word, other)| machine_with(word, other));
        let csr = self.registers.map_or(self.cycles.csr, |(_, other)| other);
        machine.cycles = CycleModel { csr, ..self.cycles };
        machine
    }
}

/// Whether `layout` has the packets that the program sends or hears as its own, and else what is wrong, and what to do.
pub(super) fn sends(image: &Image, layout: Layout) -> Result<(), (String, String)> {
    let own = Class(image.traces().0 & Class::LAW.0);
    let classes = CLASSES.iter().filter(|(class, _)| class.meets(image.sends().with(own)));
    let lacks = |class: Class| class.opcode().is_some_and(|opcode| !layout.permits(opcode));
    let Some((class, name)) = classes.into_iter().find(|(class, _)| lacks(*class)) else { return Ok(()) };
    let message =
        format!("`{}` sends or hears packets of the class {name}, which the layout has not", image.name());
    let remedy = match *class {
        Class::PULL => "they are NDP's: leave them to `transport.recovery = \"ndp\"`".to_owned(),
        class if class.meets(Class::LAW) => format!(
            "set `transport.layout = {{ words = {}, time = false }}`, with recovery \"go-back-n\"",
            image.header_words()
        ),
        _ => "they are Homa's: such a program traces GRANT or Message".to_owned(),
    };
    Err((message, remedy))
}

impl Control {
    /// Whether it is a program.
    pub fn is_program(&self) -> bool {
        self.law.value == PROGRAM
    }

    /// The program's image, by the name that the scenario gives it; `None` of another law.
    pub(super) fn elf(&self) -> Option<&str> {
        self.setting(ELF).filter(|_| self.is_program()).map(|setting| setting.text.value.as_str())
    }

    /// Words that its program puts into the header of each packet; zero without a program.
    pub(super) fn header_words(&self) -> u8 {
        self.loaded.0.get().map_or(0, |image| image.header_words())
    }

    /// The header that its program needs of layout `cc`: room for its words, or for packets of its own; `None` where it needs
    /// none.
    pub(super) fn own_header(&self) -> Option<Cc> {
        let image = self.loaded.0.get()?;
        let words = image.header_words();
        Cc::new(false, false, words).filter(|_| words > 0 || image.has_own_packets())
    }

    /// Whether it is Homa, in Rust or as a program: its packets name their messages.
    pub(super) fn is_granted(&self) -> bool {
        self.law.value == "homa" || self.loaded.image().is_some_and(|image| image.is_granted())
    }

    /// Whether it has no effect without telemetry.
    pub(super) fn wants_telemetry(&self) -> bool {
        let law = Law::from_settings(&self.law.value, &[], BitsPerSec::from_gbps(100));
        law.is_ok_and(|law| law.wants_telemetry())
            || self.loaded.image().is_some_and(|image| image.reads_telemetry())
    }

    fn setting(&self, name: &str) -> Option<&super::Setting> {
        self.settings.iter().rfind(|setting| setting.key.value == name)
    }

    /// The program as a law, on links of `link`.
    pub(super) fn program(
        &self,
        source: &Source,
        table: Origin,
        link: BitsPerSec,
    ) -> Result<Law, ScenarioError> {
        for setting in &self.settings {
            let key = setting.key.value.as_str();
            if key == "context" {
                return Err(source.error(
                    setting.text.origin,
                    "`context` is no table".to_owned(),
                    "it gives words and parameters of the program by their names, such as { total_credit = \"64KiB\" }",
                ));
            }
            let known = KEYS.contains(&key);
            if !known && !key.starts_with(CONTEXT) && !key.starts_with("fallback.") {
                return Err(source.error(
                    setting.key.origin,
                    format!("`program` has no key `{key}`"),
                    format!("the keys of `program` are {}", listed(KEYS)),
                ));
            }
        }
        let image = self.image(source, table)?;
        let (fallback, origin) = self.fallback(source, &image, link)?;
        let Some(mut law) = Programmed::new(image, fallback) else {
            return Err(source.error(
                origin,
                "this law cannot take over from a program".to_owned(),
                format!(
                    "choose one of {}, with a limiter for each queue pair",
                    listed(Programmed::FALLBACKS)
                ),
            ));
        };
        if let Some(record) = self.setting(RECORD) {
            let most = record.text.value.parse().ok().filter(|most| (1..=1_000_000_000).contains(most));
            law.record(most.ok_or_else(|| {
                let message = format!("`{RECORD}` is out of range");
                source.error(record.text.origin, message, "it takes 1 to 1000000000")
            })?);
        }
        let initial = self.settings.iter().filter_map(|setting| {
            let name = setting.key.value.strip_prefix(CONTEXT)?;
            Some((setting, (name, setting.text.value.as_str())))
        });
        let (settings, initial): (Vec<_>, Vec<_>) = initial.unzip();
        law.set_initial_all(&initial).map_err(|(at, error)| {
            let (setting, (name, _)) = (settings[at], initial[at]);
            let is_value = error.valid().is_empty();
            let remedy = match (error.valid(), &error) {
                (_, SettingError::Refused { .. }) => REFUSED.to_owned(),
                (_, SettingError::Value { name, range, .. }) => format!("`{name}` takes {range}"),
                (valid, _) => {
                    let near = nearest(name, valid.iter().copied());
                    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
                    format!(
                        "{near}its context and its parameters are {}; a parameter is a variable outside all functions, as \
                         `uint32_t {name} = 1;`, and no `#define`",
                        listed(valid.iter().copied())
                    )
                }
            };
            let error = match error {
                SettingError::Key { name, .. } => {
                    format!("neither a word of its context nor a parameter is called `{name}`")
                }
                SettingError::Value { name, text, why: ValueError::Range, .. } => {
                    format!("{name} = \"{text}\" is out of range")
                }
                SettingError::Value { name, text, why: ValueError::Text(why), .. } => {
                    format!("{name} = \"{text}\": {why}")
                }
                error => error.to_string(),
            };
            let at = if is_value { setting.text.origin } else { setting.key.origin };
            source.error(at, format!("`{}`: {error}", law.image().name()), remedy)
        })?;
        Ok(Law::Program(Box::new(law)))
    }

    /// The law that takes over, and where it is named.
    fn fallback(
        &self,
        source: &Source,
        image: &Image,
        link: BitsPerSec,
    ) -> Result<(Law, Origin), ScenarioError> {
        let named = self.setting(FALLBACK).or_else(|| self.setting("fallback.law"));
        let (name, origin) = named.map_or((Programmed::usual_fallback(image), self.law.origin), |setting| {
            (setting.text.value.as_str(), setting.text.origin)
        });
        let fits = Programmed::FALLBACKS;
        if !fits.contains(&name) && (name == PROGRAM || LAWS.contains(&name)) {
            let message = format!("`{name}` cannot take over from a program");
            return Err(source.error(origin, message, format!("choose one of {}", listed(fits))));
        }
        let mut fallback = Self::plain(name);
        fallback.law.origin = origin;
        let own = self.settings.iter().filter_map(|setting| {
            let key = setting.key.value.strip_prefix("fallback.").filter(|key| *key != "law")?;
            let key = Located { value: key.to_owned(), origin: setting.key.origin };
            Some(super::Setting { key, text: setting.text.clone() })
        });
        fallback.settings = own.collect();
        Ok((fallback.native(source, origin, link)?, origin))
    }

    /// The same program on the cores of a NIC.
    pub(crate) fn on_core(&self, costs: Costs) -> Self {
        let mut own = self.clone();
        if self.is_program() {
            (own.loaded, own.core) = (Loaded::default(), Some(costs));
        }
        own
    }

    /// The program's image, loaded and checked the first time.
    fn image(&self, source: &Source, table: Origin) -> Result<Arc<Image>, ScenarioError> {
        if let Some(image) = self.loaded.0.get() {
            return Ok(Arc::clone(image));
        }
        let Some(elf) = self.setting(ELF) else {
            return Err(source.error(
                table,
                "`program` needs the key `elf`".to_owned(),
                format!("name a program's image, such as {}", listed(shipped_names())),
            ));
        };
        let mut options = Options::default();
        let one_of = |name: &str, words: [&str; 2]| -> Result<bool, ScenarioError> {
            let Some(setting) = self.setting(name) else { return Ok(true) };
            match words.iter().position(|word| *word == setting.text.value) {
                Some(place) => Ok(place == 0),
                None => Err(source.error(
                    setting.text.origin,
                    format!("`{name}` is none of its values"),
                    format!("it takes {}", listed(words)),
                )),
            }
        };
        options.checked = one_of("check", ["true", "false"])?;
        options.translated = one_of("executor", ["translated", "interpreted"])?;
        let mut costs = self.core.unwrap_or_else(|| Costs::of(&Cores::default()));
        if let Some(cycles) = self.setting(CSR) {
            let csr = cycles.text.value.parse().ok().filter(|cycles| (1..=1_000).contains(cycles));
            costs = costs.with_csr(csr.ok_or_else(|| {
                let message = format!("`{CSR}` is out of range");
                source.error(cycles.text.origin, message, "it takes 1 to 1000")
            })?);
        }
        options.machine = costs.machine();
        if let Some(cycles) = self.setting("cycles") {
            options.cycles_max = cycles
                .text
                .value
                .parse()
                .ok()
                .filter(|cycles| (1..=1_000_000_000).contains(cycles))
                .ok_or_else(|| {
                    let message = "`cycles` is out of range".to_owned();
                    source.error(cycles.text.origin, message, "it takes 1 to 1000000000")
                })?;
        }
        let image = load(source, &elf.text, &options)?;
        Ok(Arc::clone(self.loaded.0.get_or_init(|| image)))
    }

    /// What another program for this law is loaded with.
    pub(super) fn replacement(
        &self,
        source: &Source,
        elf: &Located<String>,
    ) -> Result<Arc<Image>, ScenarioError> {
        let mut other = self.clone();
        other.loaded = Loaded::default();
        other.settings.retain(|setting| setting.key.value != ELF);
        let key = Located { value: ELF.to_owned(), origin: elf.origin };
        other.settings.push(super::Setting { key, text: elf.clone() });
        let image = other.image(source, elf.origin)?;
        if image.header_words() != self.header_words() {
            return Err(source.error(
                elf.origin,
                format!(
                    "{} puts {} words into each packet, and the program that it replaces {}",
                    image.name(),
                    image.header_words(),
                    self.header_words()
                ),
                "programs that replace each other have headers of one length",
            ));
        }
        if image.is_granted() != self.is_granted() {
            let (one, other) = if image.is_granted() { ("grants", "none") } else { ("no grants", "some") };
            return Err(source.error(
                elf.origin,
                format!("{} waits for {one}, and the program that it replaces for {other}", image.name()),
                "packets name their messages, and receivers grant, from the beginning of a run or not at all",
            ));
        }
        Ok(image)
    }
}

/// Loads and checks the image `elf`: from beside the scenario, from where we are, or one that came with us.
fn load(source: &Source, elf: &Located<String>, options: &Options) -> Result<Arc<Image>, ScenarioError> {
    let name = elf.value.as_str();
    let places: [PathBuf; 2] = [file::path(source, name), Path::new(name).to_owned()];
    let octets = match places.iter().find(|path| path.is_file()) {
        Some(path) => file::octets_at(source, path, elf)?,
        None => match shipped(name) {
            Some(image) => image.to_vec(),
            None => {
                return Err(source.error(
                    elf.origin,
                    format!("there is no file `{name}`, neither beside the scenario nor here"),
                    format!("build it with `roci program build`, or name one of {}", listed(shipped_names())),
                ));
            }
        },
    };
    let image = Image::new(name, &octets, options).map_err(|error| {
        let remedy = match &error {
            ImageError::Load(error @ LoadError::Place { .. }) => &*remedies::of_load(error),
            ImageError::TooLarge { what, .. } => &*remedies::of_size(what),
            ImageError::Refused { .. } => {
                "`roci program check` says more; `check = false` runs it all the same, until it fails"
            }
            ImageError::Start { .. } => "`roci program check` says more",
            _ => "build it with `roci program build`",
        };
        source.error(elf.origin, format!("{name}: {error}"), remedy)
    })?;
    Ok(Arc::new(image))
}
