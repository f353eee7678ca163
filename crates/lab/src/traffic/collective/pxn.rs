//! An all-to-all that keeps to the rails of servers, as NCCL's PXN does: what a rank has for another on another rail goes first to the
//! rank of its own server that is on that rail.
//!
//! Of place `l` of server `s`, what is for place `m` of server `t` goes to place `m` of `s`, which waits until it has that of all ranks of
//! its server, and then sends it on in one message, its own with it. Server `t` is served in the same round by all ranks of `s`, and
//! by no other server's: the server after one's own comes first, and one's own, whose ranks have theirs by the first way, last.

use super::schedule::Message;
use std::ops::Range;

/// So many servers of as many ranks each: two ranks at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pxn {
    ranks: u32,
    per_server: u32,
}

impl Pxn {
    pub(super) const fn new(ranks: u32, per_server: u32) -> Self {
        Self { ranks, per_server }
    }

    const fn servers(self) -> u32 {
        self.ranks / self.per_server
    }

    /// How many other ranks a server has.
    pub(super) const fn others(self) -> u32 {
        self.per_server - 1
    }

    /// The steps within servers, which come first: round by round one to each other rank.
    pub(super) const fn within(self) -> u32 {
        self.servers() * self.others()
    }

    /// All steps: those within servers, and one to each other server.
    pub(super) const fn steps(self) -> u32 {
        self.within() + self.waits()
    }

    /// How many messages of its own server's ranks a rank counts apart: of each other server.
    pub(super) const fn waits(self) -> u32 {
        self.servers() - 1
    }

    /// The queue pairs that each rank sends with: first those within its server, then those on its rail.
    pub(super) const fn fan(self) -> u32 {
        self.others() + self.waits()
    }

    /// Whether a queue pair, of those of its rank, stays on a rail.
    pub(super) const fn is_on_rail(self, slot: u32) -> bool {
        slot >= self.others()
    }

    /// The rank that a queue pair of `rank` leads to.
    pub(super) const fn to(self, rank: u32, slot: u32) -> u32 {
        let (server, local) = (rank / self.per_server, rank % self.per_server);
        if self.is_on_rail(slot) {
            return self.at(server + slot - self.others() + 1, local);
        }
        self.at(server, (local + slot + 1) % self.per_server)
    }

    /// The rank at place `local` of a server, which is counted on from the last one to the first.
    const fn at(self, server: u32, local: u32) -> u32 {
        server % self.servers() * self.per_server + local
    }

    pub(super) const fn message(self, rank: u32, step: u32) -> Message {
        let (slot, shard, sources) = if step < self.within() {
            let slot = step % self.others();
            let server = rank / self.per_server + step / self.others() + 1;
            (slot, self.at(server, self.to(rank, slot) % self.per_server), 1)
        } else {
            let slot = step - self.within() + self.others();
            (slot, self.to(rank, slot), self.per_server)
        };
        let (edge, to) = (rank * self.fan() + slot, self.to(rank, slot));
        Message { edge, to, shards: shard..shard + 1, sources, adds: false }
    }

    /// The step that a rank may send now that it has received that of `step`: it counts in `received` what has come for each server.
    pub(super) fn follows(self, received: &mut [u32], step: u32) -> Range<u32> {
        if step >= self.within() {
            return 0..0;
        }
        let round = step / self.others();
        // In the last round ranks send to one another what is for themselves.
        let Some(count) = received.get_mut(round as usize) else { return 0..0 };
        *count += 1;
        let next = self.within() + round;
        if *count == self.others() { next..next + 1 } else { 0..0 }
    }
}
