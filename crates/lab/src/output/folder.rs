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
mod tests;
