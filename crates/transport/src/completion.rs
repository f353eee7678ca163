//! The completion queue: what ended, in the order in which it ended.

use crate::work::Completion;
use alloc::collections::VecDeque;

/// One queue for all queue pairs of an engine; the caller deals its entries out.
#[derive(Debug, Default)]
pub(crate) struct CompletionQueue {
    entries: VecDeque<Completion>,
}

impl CompletionQueue {
    #[inline]
    pub(crate) fn push(&mut self, completion: Completion) {
        self.entries.push_back(completion);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.entries.pop_front()
    }
}
