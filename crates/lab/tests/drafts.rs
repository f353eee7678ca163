//! What is left of results in the making when the process aborts: alone in its process, as it concerns all drafts.

use roci_lab::output::{Folder, folder};
use std::fs;

#[test]
fn a_panic_that_aborts_leaves_no_draft() {
    let parent = std::env::temp_dir().join(format!("roci-drafts-{}", std::process::id()));
    let first = Folder::prepare(&parent.join("first")).unwrap();
    let second = Folder::prepare(&parent.join("second")).unwrap();
    fs::write(second.draft().join("summary.json"), "{").unwrap();
    second.publish().unwrap();
    let third = Folder::prepare(&parent.join("n1/deep/third")).unwrap();
    // As a panic hook does: nothing will be dropped after it.
    folder::remove_drafts();
    std::mem::forget((first, third));
    let names: Vec<_> = fs::read_dir(&parent).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    fs::remove_dir_all(&parent).unwrap();
    assert_eq!(names, ["second"], "what was published stays");
}
