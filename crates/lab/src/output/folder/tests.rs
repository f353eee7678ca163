//! What a folder of results keeps, and when.

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
