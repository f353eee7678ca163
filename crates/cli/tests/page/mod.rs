//! Pages of the guide, as tests read them.

use std::path::Path;

/// A page's fenced blocks: what stands behind the fence, and the text.
pub(crate) fn blocks(page: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced
        .map(|block| block.split_once('\n').expect("a line behind the fence"))
        .map(|(kind, text)| (kind.to_owned(), format!("{text}\n")))
        .collect()
}
