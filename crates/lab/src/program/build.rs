//! From C to an image: the program's text between `program.h` and `program_end.h`, through a cross compiler.
//!
//! Header and linker script are part of this program, so that it works from any folder. The flags are those of
//! `firmware/build.sh`, and so are the images.

use super::{missing, said, slips};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fmt, fs, io, process};

/// What a program is written against.
pub const HEADER: &str = include_str!("../../../../firmware/include/program.h");
const HEADER_END: &str = include_str!("../../../../firmware/include/program_end.h");
const MEMORY: &str = include_str!("../../../../firmware/include/memory.h");
const LINKER_SCRIPT: &str = include_str!("../../../../firmware/link.ld");

/// The compilers that will do, in the order in which they are tried.
pub const COMPILERS: [&str; 3] = ["riscv64-unknown-elf-gcc", "riscv32-unknown-elf-gcc", "riscv-none-elf-gcc"];

/// Where what is not wanted goes.
const NOWHERE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// The instructions that a program is compiled for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// RV32IM: products and quotients are instructions.
    #[default]
    Rv32im,
    /// RV32I: they are calls of libgcc.
    Rv32i,
}

impl Target {
    const fn march(self) -> &'static str {
        match self {
            Self::Rv32im => "rv32im",
            Self::Rv32i => "rv32i",
        }
    }
}

/// What is to be built.
#[derive(Clone, Debug)]
pub struct Build {
    /// The program's text.
    pub source: PathBuf,
    /// Where the image goes; the source's name with the ending `.elf` unless it is given.
    pub output: Option<PathBuf>,
    /// The instructions.
    pub target: Target,
}

/// What was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// The image.
    pub output: PathBuf,
    /// The compiler.
    pub compiler: String,
    /// What the compiler warned of, and what the text itself gives reason to.
    pub warnings: String,
}

/// Why nothing was built.
#[derive(Debug)]
pub enum BuildError {
    /// A file could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file is none that can be built from, or into.
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not, and what to do.
        why: &'static str,
    },
    /// There is no cross compiler.
    NoCompiler,
    /// The compiler has something against the program.
    Compiler {
        /// Which one.
        compiler: String,
        /// What it says.
        message: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } if error.kind() == io::ErrorKind::NotFound && is_source(path) => {
                write!(
                    f,
                    "{}: there is no such file here; `roci program new NAME` begins a program",
                    path.display()
                )
            }
            Self::File { path, error } if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{}: there is no such file here; name a program's text, ", path.display())?;
                write!(f, "such as {}", path.with_extension("c").display())
            }
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Refused { path, why } => write!(f, "{}: {why}", path.display()),
            Self::NoCompiler => write!(
                f,
                "no cross compiler for RISC-V was found: none of {} can be run.\n\
                 Debian, Ubuntu: apt install gcc-riscv64-unknown-elf\n\
                 Fedora: dnf install gcc-riscv64-linux-gnu does not do, it has no 32-bit libgcc; use the xPack release\n\
                 macOS, Windows: the xPack release of riscv-none-elf-gcc",
                COMPILERS.join(", ")
            ),
            // It names the file and the line, or itself, in each of its own.
            Self::Compiler { message, .. } => f.write_str(message.trim_matches('\n')),
        }
    }
}

/// Whether `path` has the name of a file of C, not of an image.
fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "c")
}

impl std::error::Error for BuildError {}

impl Build {
    /// Builds it.
    ///
    /// # Errors
    /// [`BuildError`]: no such file, none of C, one that would be overwritten, no compiler, or what the compiler says.
    pub fn run(&self) -> Result<Built, BuildError> {
        let source = fs::canonicalize(&self.source).map_err(|error| blamed(&self.source, error))?;
        let text = self.text(&source)?;
        let (Some(folder), Some(name)) = (source.parent(), source.file_name()) else {
            return Err(blamed(&source, io::ErrorKind::IsADirectory.into()));
        };
        let given = self.output.clone().unwrap_or_else(|| self.source.with_extension("elf"));
        let output = self.place(&source, &given)?;
        let interface = Interface::unpack().map_err(|error| blamed(&env::temp_dir(), error))?;
        let march = self.target.march();
        let (compiler, libgcc) = find_compiler(march)?;
        let failed = |message: String| {
            Err(BuildError::Compiler {
                message: format!("{message}{}{}", missing::remedies(&message), forget(&output, &given)),
                compiler: compiler.clone(),
            })
        };
        let compilation = Compilation {
            command: command(&compiler, march, folder, &interface),
            interface: &interface,
            name: name.to_string_lossy().into_owned(),
            text: String::from_utf8_lossy(&text).into_owned(),
        };
        let (sound, mut warnings) = compilation.warnings()?;
        if !sound {
            return failed(warnings);
        }
        warnings += &missing::ranges(&warnings);
        warnings += &missing::types(&warnings);
        warnings += &compilation.slips()?;
        let made = interface.folder.join("image.elf");
        let (sound, message) = compilation.link(&libgcc, &made)?;
        if !sound {
            return failed(unlinked(message, &warnings, &compilation.name));
        }
        fs::copy(&made, &output).map_err(|error| blamed(&given, error))?;
        Ok(Built { output: given, compiler, warnings })
    }

    /// What stands in `source`, where that may be C.
    fn text(&self, source: &Path) -> Result<Vec<u8>, BuildError> {
        let refused = |why| Err(BuildError::Refused { path: self.source.clone(), why });
        if source.is_dir() {
            return refused("it is a folder; name a file of C");
        }
        let text = super::octets(source).map_err(|error| blamed(source, error))?;
        if text.starts_with(b"\x7fELF") {
            return refused("it is an image already; `roci program check` takes it");
        }
        Ok(text)
    }

    /// Where an image that goes to `given` is to stand, from the root.
    fn place(&self, source: &Path, given: &Path) -> Result<PathBuf, BuildError> {
        let refused = |path: &Path, why| Err(BuildError::Refused { path: path.to_owned(), why });
        let output = std::path::absolute(given).map_err(|error| blamed(given, error))?;
        if fs::canonicalize(&output).is_ok_and(|output| output == source) {
            return refused(
                &self.source,
                "the image would overwrite its source; name another file with `-o`",
            );
        }
        if output.is_dir() {
            return refused(given, "it is a folder; name the image's own file with `-o`");
        }
        // What ends with a slash is meant for a folder.
        let is_folder = given.to_string_lossy().ends_with(std::path::is_separator);
        let folder = if is_folder { Some(given) } else { given.parent() };
        if let Some(missing) = folder.filter(|path| !path.as_os_str().is_empty() && !path.exists()) {
            return refused(
                missing,
                "there is no such folder to put the image into; make it, or name another with `-o`",
            );
        }
        if let Some(file) = folder.filter(|path| path.is_file()) {
            return refused(
                file,
                "it is a file, and no folder to put the image into; name another with `-o`",
            );
        }
        Ok(output)
    }
}

fn blamed(path: &Path, error: io::Error) -> BuildError {
    BuildError::File { path: path.to_owned(), error }
}

/// The compiler with what all its runs have in common.
fn command(compiler: &str, march: &str, folder: &Path, interface: &Interface) -> Command {
    let mut command = Command::new(compiler);
    command.current_dir(folder).arg(format!("-march={march}_zicsr"));
    command.args(["-mabi=ilp32", "-ffreestanding", "-nostdlib", "-O2", "-g", "-Wall", "-Wextra"]);
    command.args(["-fno-jump-tables", "-mno-relax", "-fno-strict-aliasing", "-fno-var-tracking"]);
    command.arg("--param=min-pagesize=0");
    // The image tells nothing of the folders that it was built in.
    command.arg(format!("-fdebug-prefix-map={}=.", folder.display()));
    command.arg(format!("-fdebug-prefix-map={}/=", interface.folder.display()));
    command.arg("-I").arg(interface.folder.join("include")).arg("-I.");
    command.args(["-Wl,-melf32lriscv", "-Wl,--build-id=none", "-Wl,-z,max-page-size=16"]);
    command
}

/// A program's text on its way through the compiler.
struct Compilation<'a> {
    command: Command,
    interface: &'a Interface,
    /// The name of its file, without the folder.
    name: String,
    text: String,
}

impl Compilation<'_> {
    /// The text as the compiler is given it.
    fn wrapped(&self) -> String {
        format!("#include \"program.h\"\n#include \"{}\"\n#include \"program_end.h\"\n", self.name)
    }

    /// Runs `command` with `input`: whether it was content, and what it says in the program's own words.
    fn run(&self, command: &mut Command, input: &str) -> Result<(bool, String), BuildError> {
        let outcome = self.pipe(command, input, Stdio::null())?;
        let said = String::from_utf8_lossy(&outcome.stderr);
        let said = said.replace(&format!("{}/include/", self.interface.folder.display()), "");
        Ok((outcome.status.success(), said::own_words(&said, &self.name, &self.text)))
    }

    fn pipe(&self, command: &mut Command, input: &str, stdout: Stdio) -> Result<Output, BuildError> {
        pipe(command, input, stdout).map_err(|error| blamed(Path::new(self.command.get_program()), error))
    }

    /// First to be warned: of constants that registers do not hold, and by the lines where macros are used instead of those
    /// where they are defined. Either would change what the image tells of its source.
    fn warnings(&self) -> Result<(bool, String), BuildError> {
        let mut warn = again(&self.command);
        warn.args([
            "-DROCI_WARN",
            "-Werror=float-conversion",
            "-Wcast-align=strict",
            "-ftrack-macro-expansion=0",
            "-S",
            "-o",
            NOWHERE,
            "-x",
            "c",
            "-",
        ]);
        self.run(&mut warn, &self.wrapped())
    }

    /// What the text itself gives reason to warn of.
    fn slips(&self) -> Result<String, BuildError> {
        let looked_at = self.wrapped().replacen('\n', &format!("\n{}", slips::AS_CALLS), 1);
        let mut preprocess = again(&self.command);
        preprocess.args(["-E", "-x", "c", "-"]);
        let left = self.pipe(&mut preprocess, &looked_at, Stdio::piped())?;
        let joined = slips::joined(&self.text)
            .map(|(line, told)| format!("{}:{line}: warning: {told}\n", self.name))
            .unwrap_or_default();
        let ours = self.interface.folder.display().to_string();
        Ok(joined + &slips::warnings(&String::from_utf8_lossy(&left.stdout), &ours))
    }

    /// Makes the image `made`; with functions that compilers take for granted, where the program lacks some.
    fn link(&self, libgcc: &str, made: &Path) -> Result<(bool, String), BuildError> {
        let mut command = again(&self.command);
        command.arg("-T").arg(self.interface.folder.join("link.ld")).arg("-o").arg(made);
        command.args(["-x", "c", "-", "-x", "none"]).arg(libgcc);
        let (sound, message) = self.run(&mut command, &self.wrapped())?;
        let lacks = lacking(&message);
        if sound || lacks.is_empty() {
            return Ok((sound, message));
        }
        let defined: Vec<_> =
            lacks.iter().map(|name| format!("#define ROCI_{}\n", name.to_uppercase())).collect();
        let supplied = format!("{}{}#include \"memory.h\"\n", self.wrapped(), defined.concat());
        self.run(&mut command, &supplied)
    }
}

/// What is to be said where linking failed with `message`. A linker names what is missing, and the compiler has warned of most of it
/// where that is used.
fn unlinked(message: String, warnings: &str, name: &str) -> String {
    if said::linked(&message, "", name).is_empty() {
        return message;
    }
    let told = said::unknown(warnings, &message);
    let linked = said::linked(&message, &told, name);
    told + &linked
}

/// Removes the image that stands under the name of one that could not be built, so that nobody takes it for that; says so.
fn forget(output: &Path, given: &Path) -> String {
    let is_image = fs::read(output).is_ok_and(|file| file.starts_with(b"\x7fELF"));
    if is_image && fs::remove_file(output).is_ok() {
        format!("{} was of an earlier text and is removed\n", given.display())
    } else {
        String::new()
    }
}

/// The functions that compilers take for granted and that the program lacks, by what the linker says.
fn lacking(said: &str) -> Vec<&'static str> {
    const SUPPLIED: [&str; 4] = ["memset", "memcpy", "memmove", "memcmp"];
    let lacks = |name: &&str| said.contains(&format!("undefined reference to `{name}'"));
    SUPPLIED.into_iter().filter(lacks).collect()
}

/// The same command, so far as its program, arguments and folder go.
fn again(command: &Command) -> Command {
    let mut again = Command::new(command.get_program());
    again.args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        again.current_dir(folder);
    }
    again
}

/// The first compiler that runs, and its libgcc for `march` without `_zicsr`, which would name the 64-bit one.
fn find_compiler(march: &str) -> Result<(String, String), BuildError> {
    for compiler in COMPILERS {
        let mut command = Command::new(compiler);
        command.arg(format!("-march={march}")).args(["-mabi=ilp32", "-print-libgcc-file-name"]);
        if let Ok(Output { status, stdout, .. }) = command.output()
            && status.success()
        {
            let libgcc = String::from_utf8_lossy(&stdout).trim().to_owned();
            return Ok((compiler.to_owned(), libgcc));
        }
    }
    Err(BuildError::NoCompiler)
}

/// Runs `command` with `text` as its input.
fn pipe(command: &mut Command, text: &str, stdout: Stdio) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that ends early says why on its own.
        let _ = io::Write::write_all(&mut input, text.as_bytes());
    }
    child.wait_with_output()
}

/// The interface's files in a folder of their own, which goes when this does.
struct Interface {
    folder: PathBuf,
}

impl Interface {
    fn unpack() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("roci-program-{}-{number}", process::id()));
        let this = Self { folder };
        fs::create_dir_all(this.folder.join("include"))?;
        fs::write(this.folder.join("include/program.h"), HEADER)?;
        fs::write(this.folder.join("include/program_end.h"), HEADER_END)?;
        fs::write(this.folder.join("include/memory.h"), MEMORY)?;
        fs::write(this.folder.join("link.ld"), LINKER_SCRIPT)?;
        Ok(this)
    }
}

impl Drop for Interface {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_that_is_not_there_is_told_of_without_the_systems_words() {
        let told = |path: &str| {
            BuildError::File { path: path.into(), error: io::ErrorKind::NotFound.into() }.to_string()
        };
        assert_eq!(
            told("nope.c"),
            "nope.c: there is no such file here; `roci program new NAME` begins a program"
        );
        assert!(
            told("nowhere/nope.elf")
                == "nowhere/nope.elf: there is no such file here; name a program's text, such as nowhere/nope.c",
            "the folder of an image is another matter"
        );
    }

    #[test]
    fn no_source_is_overwritten_and_no_image_or_folder_is_compiled() {
        let folder = env::temp_dir().join(format!("roci-build-refused-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (source, image) = (folder.join("law.c"), folder.join("law.elf"));
        fs::write(&source, "int recv() {}").unwrap();
        fs::write(&image, b"\x7fELF and more").unwrap();
        let refusal = |source: &Path, output: Option<&Path>| {
            let (source, output) = (source.to_owned(), output.map(Path::to_owned));
            match (Build { source, output, target: Target::Rv32im }).run() {
                Err(error @ BuildError::Refused { .. }) => error.to_string(),
                other => panic!("{other:?}"),
            }
        };
        let itself = folder.join("../").join(folder.file_name().unwrap()).join("law.c");
        assert!(refusal(&source, Some(&itself)).ends_with("name another file with `-o`"));
        assert!(refusal(&image, None).contains("it is an image already"));
        assert!(refusal(&folder, None).contains("it is a folder"));
        assert!(refusal(&source, Some(&folder)).ends_with("name the image's own file with `-o`"));
        let nowhere = folder.join("nodir");
        let missing = format!("{}: there is no such folder", nowhere.display());
        assert!(refusal(&source, Some(&nowhere.join("law.elf"))).starts_with(&missing));
        assert!(refusal(&source, Some(&nowhere.join(""))).contains("nodir/: there is no such folder"));
        assert!(
            refusal(&source, Some(&image.join("law.elf"))).contains("law.elf: it is a file, and no folder")
        );
        assert_eq!(fs::read(&source).unwrap(), b"int recv() {}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
