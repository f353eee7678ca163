//! A folder of results that appears as a whole or not at all.

use super::OutputError;
use crate::figures;
use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The names of files that we write; captures, the plots of figures, and the events of one of several programs besides.
const OURS: [&str; 19] = [
    "summary.json",
    "flows.csv",
    "links.csv",
    "priorities.csv",
    "collectives.csv",
    "ranks.csv",
    "critical.csv",
    "joint.csv",
    "timeline.json",
    "series.parquet",
    "series.csv",
    "events.txt",
    "report.html",
    "comparison.csv",
    "comparison-traffic.csv",
    "left-out.csv",
    "tried.csv",
    "figures.html",
    "figures.md",
];

/// The drafts that exist, for [`remove_drafts`].
static DRAFTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The folders above drafts that this process has made, each after the one that it is in.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How often a folder above a draft is made again that another process has removed in between, as it was empty.
const ATTEMPTS: usize = 100;

/// Removes every draft of this process and the folders made for them: for a panic that aborts, where nothing is dropped
/// any more.
pub fn remove_drafts() {
    // Whoever panics while holding the lock changes nothing; but who waited for it here might wait for ever.
    if let Ok(drafts) = DRAFTS.try_lock() {
        drafts.iter().for_each(|draft| drop(fs::remove_dir_all(draft)));
    }
    if let Ok(made) = MADE.try_lock() {
        // One that is not empty stays.
        made.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
}

/// A folder of results in the making, beside the place where it will appear.
///
/// Results are written into [`Folder::draft`]; [`Folder::publish`] moves it into place, and what is dropped without
/// that leaves nothing behind, nor any folder above it that was made for it and is empty. An earlier folder of results is replaced; anything else is left alone and refused.
///
/// A draft is locked as long as its process lives, however that ends. One that a killed process has left is removed when
/// the next folder is prepared beside it.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    draft: PathBuf,
    /// Dropped after the draft is removed.
    _above: Above,
    /// Holds the lock; nothing is lost where there are none.
    _lock: Option<fs::File>,
}

impl Folder {
    /// Makes the draft of `target`, and the folders above it. Called before a run, it finds out in time that the
    /// results could not be written. Where `target` is a symbolic link, the results go where it points, and it is kept.
    ///
    /// # Errors
    /// [`OutputError`] where `target` is something else than a folder of results, or cannot be written.
    pub fn prepare(target: &Path) -> Result<Self, OutputError> {
        let behind = behind_links(target)?;
        let target = behind.as_path();
        let nameless = || OutputError::Nameless { path: target.into() };
        target.file_name().ok_or_else(nameless)?;
        judge(target)?;
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let draft = parent.join(Left::of(target, "partial"));
        // The messages name what was asked for: nobody knows of the draft.
        let above = Above(parent.into());
        make(target, above.make_with(&draft))?;
        clear_up(parent);
        DRAFTS.lock().unwrap_or_else(PoisonError::into_inner).push(draft.clone());
        let lock = fs::File::open(&draft).ok().filter(|folder| folder.try_lock().is_ok());
        Ok(Self { target: target.into(), draft, _above: above, _lock: lock })
    }

    /// Where to write.
    pub fn draft(&self) -> &Path {
        &self.draft
    }

    /// Where the results will appear.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The same, to appear beside that place: `ending` stands behind its name.
    #[must_use]
    pub fn beside(mut self, ending: &str) -> Self {
        self.target.set_file_name(name(&self.target).into_owned() + ending);
        self
    }

    /// `error` of a file in the draft, as one of where that was to appear: nobody knows of the draft.
    #[must_use]
    pub fn as_published(&self, error: OutputError) -> OutputError {
        match error {
            OutputError::Write { path, source } => {
                let below = path.strip_prefix(&self.draft).map(|below| self.target.join(below));
                OutputError::Write { path: below.unwrap_or(path), source }
            }
            error => error,
        }
    }

    /// Makes the results appear, in place of earlier ones.
    ///
    /// # Errors
    /// [`OutputError`] where something foreign has come in between, or the move fails; the earlier results then stay.
    pub fn publish(self) -> Result<(), OutputError> {
        self.put_in_place()
    }

    /// The same, or else makes them appear [beside](Self::beside) that place, with `ending` behind its name, or where nothing can be there either in the
    /// system's folder for temporary files, so that they are not lost. Gives where they are, and why they are not where they were to be.
    ///
    /// # Errors
    /// [`OutputError`] of the place that was meant, where they cannot be in any of these.
    pub fn publish_or_beside(self, ending: &str) -> Result<(PathBuf, Option<OutputError>), OutputError> {
        self.publish_or_in(ending, &std::env::temp_dir())
    }

    fn publish_or_in(self, ending: &str, last: &Path) -> Result<(PathBuf, Option<OutputError>), OutputError> {
        let Err(error) = self.put_in_place() else { return Ok((self.target.clone(), None)) };
        let beside = self.beside(ending);
        if beside.put_in_place().is_ok() {
            return Ok((beside.target.clone(), Some(error)));
        }
        // It is everybody's, so that the name tells whose it is; and it may be on another disk, where nothing can be moved to.
        let place = last.join(format!("{}.{}", name(&beside.target), std::process::id()));
        match copy(&beside.draft, &place) {
            Ok(()) => Ok((place, Some(error))),
            Err(_) => Err(error),
        }
    }

    fn put_in_place(&self) -> Result<(), OutputError> {
        judge(&self.target)?;
        if !self.target.exists() {
            return make(&self.target, fs::rename(&self.draft, &self.target));
        }
        // A folder cannot be replaced in one step; the earlier one waits aside until the new one is in place.
        let aside = self.draft.with_file_name(Left::of(&self.target, "replaced"));
        make(&self.target, fs::rename(&self.target, &aside))?;
        if let Err(error) = fs::rename(&self.draft, &self.target) {
            make(&self.target, fs::rename(&aside, &self.target))?;
            return make(&self.target, Err(error));
        }
        make(&aside, remove(&aside))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Gone already when it was published; and nobody is left to hear of a failure.
        let _ = fs::remove_dir_all(&self.draft);
        DRAFTS.lock().unwrap_or_else(PoisonError::into_inner).retain(|draft| *draft != self.draft);
    }
}

/// The folder that a draft is in, with those above it. When dropped, those go that this process has made and that are
/// empty: what others have put there in the meantime, and what was there before, stays.
#[derive(Debug)]
struct Above(PathBuf);

impl Above {
    /// Makes what is missing of it, and `draft` in it.
    fn make_with(&self, draft: &Path) -> io::Result<()> {
        // Held to the end, so that no other run of this process removes what is still empty.
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut attempts = 0;
        loop {
            let done = self.make(&mut made).and_then(|()| fs::create_dir(draft));
            attempts += 1;
            match done {
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts < ATTEMPTS => {}
                done => return done,
            }
        }
    }

    fn make(&self, made: &mut Vec<PathBuf>) -> io::Result<()> {
        let missing: Vec<&Path> = self.ancestors().take_while(|path| !path.exists()).collect();
        for path in missing.into_iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => {
                    made.retain(|old| old != path);
                    made.push(path.into());
                }
                // Somebody else was faster.
                Err(_) if path.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// From the folder upwards, as far as it was named.
    fn ancestors(&self) -> impl Iterator<Item = &Path> {
        self.0.ancestors().filter(|path| !path.as_os_str().is_empty())
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        for path in self.ancestors() {
            if let Some(place) = made.iter().position(|old| old == path)
                && fs::remove_dir(path).is_ok()
            {
                made.remove(place);
            }
        }
    }
}

/// Removes what processes that were killed have left in `parent`. Whatever cannot be removed stays: it is in nobody's way.
fn clear_up(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(left) = name.to_str().and_then(Left::parse) else { continue };
        let path = entry.path();
        if !left.is_orphan(&path) || !matches!(foreign(&path), Ok(None)) {
            continue;
        }
        let target = parent.join(left.target);
        // Killed between two steps: the earlier results were to make room for new ones that never came.
        let _ = if left.replaced && !target.exists() {
            fs::rename(&path, &target)
        } else {
            fs::remove_dir_all(&path)
        };
    }
}

/// What the name of a draft, or of earlier results set aside, tells.
struct Left<'a> {
    target: &'a str,
    process: u32,
    replaced: bool,
}

impl<'a> Left<'a> {
    /// The name of what this process leaves of `target`.
    fn of(target: &Path, kind: &str) -> String {
        format!(".{}.{}.{kind}", name(target), std::process::id())
    }

    /// Reads `.NAME.PROCESS.partial` and `.NAME.PROCESS.replaced`.
    fn parse(name: &'a str) -> Option<Self> {
        let (rest, kind) = name.strip_prefix('.')?.rsplit_once('.')?;
        let (target, process) = rest.rsplit_once('.')?;
        let replaced = match kind {
            "partial" => false,
            "replaced" => true,
            _ => return None,
        };
        let process = process.parse().ok().filter(|_| !target.is_empty())?;
        Some(Self { target, process, replaced })
    }

    /// Whether the process is gone: it is not listed, nor does it hold its lock, should it run where we see no list or
    /// another one, as in a container.
    fn is_orphan(&self, path: &Path) -> bool {
        let listed = Path::new("/proc").join(self.process.to_string()).exists();
        !listed && fs::File::open(path).is_ok_and(|folder| folder.try_lock().is_ok())
    }
}

/// Copies a folder with all that is in it to a place where nothing is; where that fails nothing is there afterwards.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let all = fs::read_dir(from)?.try_for_each(|entry| {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)
        } else {
            fs::copy(entry.path(), &to).map(drop)
        }
    });
    if all.is_err() {
        // Why it failed says more than why this did.
        let _ = fs::remove_dir_all(to);
    }
    all
}

/// What the folder itself is called.
fn name(target: &Path) -> Cow<'_, str> {
    target.file_name().unwrap_or_default().to_string_lossy()
}

fn make(path: &Path, result: io::Result<()>) -> Result<(), OutputError> {
    result.map_err(|source| OutputError::Write { path: path.into(), source })
}

/// Where `target` leads: itself, unless it is a symbolic link.
fn behind_links(target: &Path) -> Result<PathBuf, OutputError> {
    /// As many as Linux follows.
    const MOST: usize = 40;
    // Without a slash at its end, behind which the system would follow a link by itself.
    let mut place: PathBuf = target.components().collect();
    for _ in 0..MOST {
        match fs::read_link(&place) {
            Ok(link) => place = place.parent().unwrap_or(Path::new("")).join(link).components().collect(),
            // It is no link, or not there: what else is wrong is found where it is made.
            Err(_) => return Ok(place),
        }
    }
    let source = io::Error::other("symbolic links lead from one to another without end");
    Err(OutputError::Write { path: target.into(), source })
}

/// Refuses what is there already, unless it is a folder of results.
fn judge(target: &Path) -> Result<(), OutputError> {
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(OutputError::Write { path: target.into(), source }),
        Ok(_) => {}
    }
    match foreign(target) {
        Ok(None) => Ok(()),
        Ok(Some(foreign)) => Err(OutputError::Foreign { path: target.into(), foreign }),
        Err(source) => Err(OutputError::Write { path: target.into(), source }),
    }
}

/// What is at `path` that we did not write: a file with another name, a link, or a file where a folder should be.
fn foreign(path: &Path) -> io::Result<Option<PathBuf>> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(Some(path.into()));
    }
    let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type()?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let found = if kind.is_dir() {
            foreign(&entry.path())?
        } else {
            (!kind.is_file() || !ours(&name)).then(|| entry.path())
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Whether a file of this name is one that we write. A plot is called `<figure>.svg` or `<figure>-<n>.svg`, where a figure's name may
/// say what was switched off.
fn ours(name: &str) -> bool {
    let is_plot = |stem: &str| {
        let numbered = stem.rsplit_once('-').filter(|(_, n)| n.parse::<u32>().is_ok());
        figures::file_names()
            .iter()
            .any(|figure| stem == figure || numbered.is_some_and(|(stem, _)| stem == figure))
    };
    let is_of_program = |number: &str| number.parse::<u16>().is_ok();
    OURS.contains(&name)
        || name.ends_with(".pcapng")
        || name.strip_suffix(".svg").is_some_and(is_plot)
        || name.strip_prefix("events-").and_then(|rest| rest.strip_suffix(".txt")).is_some_and(is_of_program)
}

/// Removes a folder of results: files by name, then the folder itself, so that nothing else can be lost.
fn remove(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        } else if ours(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder for one test, removed with its content when the test is over.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("roci-folder-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn results_appear_when_published_and_not_before() {
        let scratch = Scratch::new("appear");
        let target = scratch.0.join("run");
        let folder = Folder::prepare(&target).unwrap();
        fs::write(folder.draft().join("summary.json"), "{}").unwrap();
        assert!(!target.exists());
        folder.publish().unwrap();
        assert_eq!(fs::read_to_string(target.join("summary.json")).unwrap(), "{}");
        assert_eq!(scratch.names(), ["run"]);
    }

    #[test]
    fn what_is_dropped_leaves_nothing_behind() {
        let scratch = Scratch::new("drop");
        let folder = Folder::prepare(&scratch.0.join("run")).unwrap();
        fs::write(folder.draft().join("summary.json"), "{}").unwrap();
        drop(folder);
        assert!(scratch.names().is_empty());
    }

    #[test]
    fn folders_above_that_were_made_for_it_go_with_it_and_no_other() {
        let scratch = Scratch::new("above");
        fs::create_dir(scratch.0.join("mine")).unwrap();
        let prepare = |path: &str| Folder::prepare(&scratch.0.join(path)).unwrap();
        drop(prepare("mine/n1/deep/er"));
        assert!(scratch.0.join("mine").exists(), "it was there before");
        assert!(!scratch.0.join("mine/n1").exists());
        // Two runs share what the first has made; the one that ends last removes it.
        let (first, second) = (prepare("n1/deep/a"), prepare("n1/deep/b"));
        drop(first);
        assert!(second.draft().exists());
        drop(second);
        assert_eq!(scratch.names(), ["mine"]);
        // What has come to be in it meanwhile is kept.
        let folder = prepare("n1/deep/er");
        fs::write(scratch.0.join("n1/notes.txt"), "mine").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(scratch.0.join("n1")).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(scratch.0.join("n1/notes.txt")).unwrap(), "mine");
    }

    #[test]
    fn folders_above_what_could_not_be_made_go_too() {
        let scratch = Scratch::new("half-made");
        let name = "n".repeat(300);
        assert!(Folder::prepare(&scratch.0.join("n1").join(&name).join("run")).is_err());
        assert!(Folder::prepare(&scratch.0.join("n1").join(name)).is_err());
        assert!(scratch.names().is_empty());
    }

    #[test]
    fn runs_that_come_and_go_do_not_remove_what_another_needs() {
        let scratch = Scratch::new("together");
        let shared = scratch.0.join("shared");
        std::thread::scope(|threads| {
            for name in ["a", "b", "c", "d"] {
                let target = shared.join(name);
                threads.spawn(move || {
                    for _ in 0..200 {
                        drop(Folder::prepare(&target).unwrap());
                    }
                });
            }
        });
        assert!(scratch.names().is_empty());
    }

    /// The number of a process that has ended.
    fn ended() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed_by_the_next_run_beside_it() {
        let scratch = Scratch::new("killed");
        let orphan = scratch.0.join(format!(".other.{}.partial", ended()));
        fs::create_dir_all(orphan.join("a")).unwrap();
        fs::write(orphan.join("a/flows.csv"), "half a li").unwrap();
        let folder = Folder::prepare(&scratch.0.join("run")).unwrap();
        assert!(!orphan.exists());
        assert!(folder.draft().exists());
    }

    #[test]
    fn what_a_living_process_or_somebody_else_has_there_is_kept() {
        let scratch = Scratch::new("living");
        let kept = [
            format!(".run.{}.partial", std::process::id()),
            format!(".mine.{}.partial", ended()),
            ".notes.partial".to_owned(),
            ".vimrc.12.swp".to_owned(),
        ];
        for name in &kept[1..] {
            fs::create_dir(scratch.0.join(name)).unwrap();
        }
        fs::write(scratch.0.join(&kept[1]).join("thesis.tex"), "mine").unwrap();
        // A draft of a process that is not listed here, but holds its lock.
        let far = scratch.0.join(format!(".far.{}.partial", ended()));
        fs::create_dir(&far).unwrap();
        let lock = fs::File::open(&far).unwrap();
        lock.try_lock().unwrap();
        let folder = Folder::prepare(&scratch.0.join("run")).unwrap();
        let other = Folder::prepare(&scratch.0.join("other")).unwrap();
        assert!(folder.draft().exists() && other.draft().exists() && far.exists());
        assert!(kept.iter().all(|name| scratch.0.join(name).exists()));
        drop(lock);
        drop(Folder::prepare(&scratch.0.join("third")).unwrap());
        assert!(!far.exists());
    }

    #[test]
    fn earlier_results_whose_successors_never_came_are_put_back() {
        let scratch = Scratch::new("aside");
        let aside = scratch.0.join(format!(".run.{}.replaced", ended()));
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("summary.json"), "old").unwrap();
        drop(Folder::prepare(&scratch.0.join("other")).unwrap());
        assert_eq!(fs::read_to_string(scratch.0.join("run/summary.json")).unwrap(), "old");
        assert_eq!(scratch.names(), ["run"]);
    }

    #[test]
    fn earlier_results_are_replaced() {
        let scratch = Scratch::new("replace");
        let target = scratch.0.join("run");
        fs::create_dir_all(target.join("a")).unwrap();
        for old in [
            "summary.json",
            "root.pcapng",
            "figures.md",
            "lst-fig5-2.svg",
            "lst-fig4.svg",
            "events.txt",
            "events-1.txt",
            "a/report.html",
        ] {
            fs::write(target.join(old), "old").unwrap();
        }
        let folder = Folder::prepare(&target).unwrap();
        fs::write(folder.draft().join("summary.json"), "new").unwrap();
        folder.publish().unwrap();
        assert_eq!(fs::read_to_string(target.join("summary.json")).unwrap(), "new");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
        assert_eq!(scratch.names(), ["run"]);
    }

    #[test]
    fn results_go_where_a_link_points_and_the_link_is_kept() {
        use std::os::unix::fs::symlink;
        let scratch = Scratch::new("linked");
        let at = |name: &str| scratch.0.join(name);
        fs::create_dir_all(at("disk/run")).unwrap();
        fs::write(at("disk/run/summary.json"), "old").unwrap();
        symlink("disk/run", at("latest")).unwrap();
        symlink(at("latest"), at("twice")).unwrap();
        // There is nothing yet where it points.
        symlink("disk/more/new", at("dangling")).unwrap();
        for (link, place) in [
            ("latest", "disk/run"),
            ("latest/", "disk/run"),
            ("twice", "disk/run"),
            ("dangling", "disk/more/new"),
        ] {
            let folder = Folder::prepare(&at(link)).unwrap();
            assert_eq!(folder.target(), at(place), "{link}");
            fs::write(folder.draft().join("summary.json"), link).unwrap();
            folder.publish().unwrap();
            assert_eq!(fs::read_to_string(at(place).join("summary.json")).unwrap(), link);
            assert!(fs::symlink_metadata(at(link.trim_end_matches('/'))).unwrap().is_symlink(), "{link}");
        }
        assert_eq!(scratch.names(), ["dangling", "disk", "latest", "twice"]);
        // What is not ours is kept behind a link too.
        fs::write(at("disk/run/thesis.tex"), "mine").unwrap();
        let error = Folder::prepare(&at("latest")).unwrap_err().to_string();
        assert!(error.contains("thesis.tex"), "{error}");
        symlink("round", at("about")).unwrap();
        symlink("about", at("round")).unwrap();
        let error = Folder::prepare(&at("round")).unwrap_err().to_string();
        assert!(error.contains("round: symbolic links lead from one to another without end"), "{error}");
    }

    #[test]
    fn a_foreign_file_is_named_and_kept() {
        let scratch = Scratch::new("foreign");
        let target = scratch.0.join("thesis");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("chapter1.tex"), "years of work").unwrap();
        let error = Folder::prepare(&target).unwrap_err();
        assert!(error.to_string().contains("chapter1.tex"), "{error}");
        assert_eq!(scratch.names(), ["thesis"]);
        assert_eq!(fs::read_to_string(target.join("chapter1.tex")).unwrap(), "years of work");
    }

    #[test]
    fn what_is_named_like_ours_by_somebody_else_is_foreign() {
        assert!(ours("lst-fig5.svg") && ours("validation-shares-12.svg"));
        assert!(ours("swcc-fig10-without-registers.svg") && ours("swcc-fig10-without-split-2.svg"));
        assert!(!ours("swcc-fig10-without-a-doubt.svg"));
        assert!(!ours("thesis.svg") && !ours("lst-fig5-final.svg") && !ours("lst-fig.svg"));
        assert!(!ours("events-of-may.txt"));
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_refused() {
        let scratch = Scratch::new("file");
        let target = scratch.0.join("run");
        fs::write(&target, "").unwrap();
        assert!(matches!(Folder::prepare(&target), Err(OutputError::Foreign { .. })));
        let below = target.join("below");
        match Folder::prepare(&below) {
            Err(OutputError::Write { path, .. }) => assert_eq!(path, below),
            other => panic!("{other:?}"),
        }
        assert!(matches!(Folder::prepare(Path::new("/")), Err(OutputError::Nameless { .. })));
    }

    #[test]
    fn what_becomes_foreign_during_the_run_is_kept_too() {
        let scratch = Scratch::new("meanwhile");
        let target = scratch.0.join("run");
        let folder = Folder::prepare(&target).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        assert!(matches!(folder.publish(), Err(OutputError::Foreign { .. })));
        assert_eq!(fs::read_to_string(target.join("notes.txt")).unwrap(), "mine");
        assert_eq!(scratch.names(), ["run"]);
    }

    #[test]
    fn results_whose_place_somebody_has_taken_meanwhile_appear_beside_it() {
        let scratch = Scratch::new("taken");
        let target = scratch.0.join("run");
        let prepare = || {
            let folder = Folder::prepare(&target).unwrap();
            fs::write(folder.draft().join("summary.json"), "{}").unwrap();
            folder
        };
        let (place, error) = prepare().publish_or_beside("-kept").unwrap();
        assert!(place == target && error.is_none(), "nothing is in the way");
        let folder = prepare();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        let (place, error) = folder.publish_or_beside("-kept").unwrap();
        assert_eq!(place, scratch.0.join("run-kept"));
        assert!(matches!(error, Some(OutputError::Foreign { .. })));
        assert_eq!(fs::read_to_string(place.join("summary.json")).unwrap(), "{}");
        assert_eq!(fs::read_to_string(target.join("notes.txt")).unwrap(), "mine");
        // That place may be taken too.
        fs::remove_file(target.join("notes.txt")).unwrap();
        let folder = prepare();
        for taken in [&target, &place] {
            fs::write(taken.join("notes.txt"), "mine").unwrap();
        }
        match folder.publish_or_in("-kept", &scratch.0.join("nowhere")) {
            Err(OutputError::Foreign { path, .. }) => assert_eq!(path, target, "the one that was meant"),
            other => panic!("{other:?}"),
        }
        assert_eq!(scratch.names(), ["run", "run-kept"]);
    }

    #[test]
    fn results_for_which_there_is_no_place_beside_it_either_are_copied_to_where_temporary_files_are() {
        let [scratch, temporary] = ["no-place", "temporary"].map(Scratch::new);
        let target = scratch.0.join("run");
        let prepare = || {
            let folder = Folder::prepare(&target).unwrap();
            fs::create_dir(folder.draft().join("seed-1")).unwrap();
            fs::write(folder.draft().join("seed-1/summary.json"), "{}").unwrap();
            folder
        };
        let folder = prepare();
        for taken in ["run", "run-kept"] {
            fs::create_dir(scratch.0.join(taken)).unwrap();
            fs::write(scratch.0.join(taken).join("notes.txt"), "mine").unwrap();
        }
        let (place, error) = folder.publish_or_in("-kept", &temporary.0).unwrap();
        assert_eq!(place, temporary.0.join(format!("run-kept.{}", std::process::id())));
        assert!(matches!(error, Some(OutputError::Foreign { path, .. }) if path == target));
        assert_eq!(fs::read_to_string(place.join("seed-1/summary.json")).unwrap(), "{}");
        assert_eq!(scratch.names(), ["run", "run-kept"], "the draft is gone");
        // What is there already is nobody's to replace.
        fs::write(place.join("seed-1/summary.json"), "others'").unwrap();
        fs::remove_file(target.join("notes.txt")).unwrap();
        let folder = prepare();
        fs::write(target.join("notes.txt"), "mine").unwrap();
        assert!(folder.publish_or_in("-kept", &temporary.0).is_err());
        assert_eq!(fs::read_to_string(place.join("seed-1/summary.json")).unwrap(), "others'");
    }

    #[test]
    fn errors_name_the_place_where_a_file_was_to_appear() {
        let scratch = Scratch::new("told");
        let folder = Folder::prepare(&scratch.0.join("run")).unwrap();
        let told = |path: PathBuf| {
            let source = io::ErrorKind::StorageFull.into();
            folder.as_published(OutputError::Write { path, source }).to_string()
        };
        let name = |path: &Path| format!("cannot write {}: ", path.display());
        let of_draft = told(folder.draft().join("a/flows.csv"));
        assert!(of_draft.starts_with(&name(&scratch.0.join("run/a/flows.csv"))), "{of_draft}");
        let other = scratch.0.join("other");
        assert!(told(other.clone()).starts_with(&name(&other)));
    }
}
