//! What is posted to a queue pair.

use super::QueuePair;
use crate::numbers::inner;
use crate::posting::AT_ONCE;
use crate::shard::Shard;
use crate::work::{RecvWr, Refused, SendWr};
use crate::works::Owner;
use roci_transport::Service;
use roci_units::Instant;
use std::sync::MutexGuard;

impl QueuePair {
    /// Posts a request; what can leave leaves before this returns. But short ones of a program that posts one after the other, while
    /// others of the queue pair are on their way, may wait for the next of them, for some microseconds: until the program looks for
    /// completions, waits, or asks for notifications. One that was not seen to do so soon after it has posted has nothing wait.
    ///
    /// # Errors
    /// [`Refused`] says why, and has the request. In the error state it is accepted and flushed.
    pub fn post_send(&self, mut request: SendWr) -> Result<(), Box<Refused<SendWr>>> {
        let mut shard = self.device.cells[self.shard].lock();
        let now = self.device.now();
        let octets = request.octets_sent();
        let posted = shard.core.post_send(now, self.place, self.pd, &mut request);
        self.send(shard, now, 1, octets);
        posted.map_err(|error| Box::new(Refused::alone(error, request)))
    }

    /// Posts requests one after the other, and sends afterwards: packets of several can share a system call. Gives how
    /// many. They are taken from the iterator some at a time before any of those is posted, so it must not wait for one that it gave.
    ///
    /// # Errors
    /// The first that was refused. Those before it are posted, [`Refused::posted`] of them, and those behind it that were taken come
    /// back with it: who lends the iterator (`by_ref`) has the others still, and can post all of them later.
    pub fn post_sends(
        &self,
        requests: impl IntoIterator<Item = SendWr>,
    ) -> Result<usize, Box<Refused<SendWr>>> {
        let mut requests = requests.into_iter();
        let (mut some, mut posted) = (Vec::new(), 0);
        loop {
            // Not under the lock: an iterator may ask the device for something.
            some.extend(requests.by_ref().take(AT_ONCE));
            let is_last = some.len() < AT_ONCE;
            let mut shard = self.device.cells[self.shard].lock();
            let now = self.device.now();
            let octets = some.iter().map(SendWr::octets_sent).sum();
            let refused = some.iter_mut().enumerate().find_map(|(place, request)| {
                Some((place, shard.core.post_send(now, self.place, self.pd, request).err()?))
            });
            if let Some((place, error)) = refused {
                self.send(shard, now, place, octets);
                let request = some.remove(place);
                let (posted, rest) = (posted + place, some.split_off(place));
                return Err(Box::new(Refused { error, request, posted, rest }));
            }
            posted += some.len();
            if is_last {
                self.send(shard, now, some.len(), octets);
                return Ok(posted);
            }
            some.clear();
        }
    }

    /// Posts all of `requests`, or none: for who builds several and is told once how they fared, as by `ibv_wr_complete`.
    ///
    /// # Errors
    /// The first that does not do; it and all others come back, in their order in [`Refused::rest`] but for itself.
    pub fn post_sends_together(&self, mut requests: Vec<SendWr>) -> Result<(), Box<Refused<SendWr>>> {
        let mut shard = self.device.cells[self.shard].lock();
        let now = self.device.now();
        let judged = shard.core.may_post_sends(self.place, self.pd, &mut requests);
        if let Err((place, error)) = judged {
            drop(shard);
            let request = requests.remove(place);
            return Err(Box::new(Refused { error, request, posted: 0, rest: requests }));
        }
        let octets = requests.iter().map(SendWr::octets_sent).sum();
        let posted = requests.iter_mut().enumerate().find_map(|(place, request)| {
            Some((place, shard.core.post_send(now, self.place, self.pd, request).err()?))
        });
        self.send(shard, now, requests.len(), octets);
        match posted {
            None => Ok(()),
            // Nothing has come between: they were judged under the same lock.
            Some((posted, error)) => {
                let request = requests.remove(posted);
                Err(Box::new(Refused { error, request, posted, rest: requests.split_off(posted) }))
            }
        }
    }

    /// Sends what was posted until `now`, of which so many requests with so many octets are new, unless they wait for company.
    fn send(&self, mut shard: MutexGuard<'_, Shard>, now: Instant, requests: usize, octets: usize) {
        // One that posts as requests end streams, and its peer may do the same and wait for what waits here.
        if !std::mem::take(&mut shard.core.has_ended) && !shard.core.replies.is_empty() {
            shard.core.answered_at = now;
        }
        let cell = &self.device.cells[self.shard];
        let may_wait = cell.is_driven(now) && self.has_others_than(&shard, requests);
        if shard.core.company.waits(now, requests, octets, may_wait) {
            shard.hold(now);
        } else {
            shard.push(now);
            let now = self.device.now();
            shard.core.company.posted(now);
        }
        cell.nudge(&shard, now);
    }

    /// Whether it has something on its way besides the last so many requests. Where nobody acknowledges it never has: nothing says how
    /// much the peer can take at once.
    fn has_others_than(&self, shard: &Shard, requests: usize) -> bool {
        let Some(Some(entry)) = shard.core.entries.get(self.place as usize) else { return false };
        self.service == Service::Rc && (entry.room.0 - entry.sends_left) as usize > requests
    }

    /// Posts a receive request.
    ///
    /// # Errors
    /// As [`post_send`](Self::post_send); a queue pair with a shared receive queue has no own one.
    pub fn post_recv(&self, request: RecvWr) -> Result<(), Box<Refused<RecvWr>>> {
        let mut shard = self.device.cells[self.shard].lock();
        let owner = Owner::Recv(self.place);
        shard.core.post_recv(inner(self.place).into(), owner, self.pd, request)?;
        shard.core.complete();
        // The peer may wait for a receive request, and is told.
        if shard.core.engine.has_told() {
            shard.push(self.device.now());
            shard.reply();
        }
        Ok(())
    }
}
