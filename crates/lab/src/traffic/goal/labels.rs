//! What the operations of a rank are called, one after the other in one text.

/// See above.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels {
    text: String,
    /// Where each ends.
    ends: Vec<u32>,
}

impl Labels {
    /// Those of all operations; empty ones of such as have none. What is beyond 4 GiB of them has none either.
    pub(super) fn new<'a>(labels: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for label in labels {
            if u32::try_from(all.text.len() + label.len()).is_ok() {
                all.text.push_str(label);
            }
            all.ends.push(u32::try_from(all.text.len()).unwrap_or(u32::MAX));
        }
        if all.text.is_empty() {
            return Self::default();
        }
        all.text.shrink_to_fit();
        all
    }

    /// That of an operation; empty where it has none.
    pub(super) fn get(&self, operation: u32) -> &str {
        let at = operation as usize;
        let Some(&end) = self.ends.get(at) else { return "" };
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin as usize..end as usize]
    }
}
