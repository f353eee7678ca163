//! A schedule that several scenarios name is read once, and is there once.

use super::{GoalError, Schedule};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What has been read, by the length of its file and a hash of that, for as long as somebody has it.
static READ: Mutex<Vec<(usize, u64, Weak<Schedule>)>> = Mutex::new(Vec::new());

/// [`Schedule::read`] of `octets`, or the one that a scenario has read of the same ones and still has: the configurations of a
/// sweep name one file, which takes 45 MB for a million operations. What they say goes by the file's octets and not by its name, which may have
/// others meanwhile.
pub(super) fn read(octets: &[u8]) -> Result<Arc<Schedule>, GoalError> {
    let mut hasher = DefaultHasher::new();
    octets.hash(&mut hasher);
    let of = (octets.len(), hasher.finish());
    // Held while it is read, lest another thread read the same meanwhile.
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.retain(|(.., schedule)| schedule.strong_count() > 0);
    let known = read.iter().find(|(length, hash, _)| (*length, *hash) == of);
    if let Some(schedule) = known.and_then(|(.., schedule)| schedule.upgrade()) {
        return Ok(schedule);
    }
    let schedule = Arc::new(Schedule::read(octets)?);
    read.push((of.0, of.1, Arc::downgrade(&schedule)));
    Ok(schedule)
}
