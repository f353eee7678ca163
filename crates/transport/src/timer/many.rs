//! Timers in any number: a small heap for the near ones, which gives the exact order, and a hierarchical wheel
//! (Varghese and Lauck 1987) for the far ones, which come down as time comes near them.
//!
//! Ticks are 2²⁰ ps, about a microsecond. The cursor is the latest tick that is in the heap; it may run ahead of the
//! clock when nothing is due for long. Timers armed before it then crowd the heap, and when there are enough of them
//! to pay for the move, it is drawn back.

use super::{NEVER, TimerId};
use alloc::{boxed::Box, vec::Vec};

/// The timers of an engine that has more than a few.
#[derive(Clone, Debug)]
pub(super) struct Many {
    /// The kinds that each queue pair has.
    kinds: u8,
    /// The node of each (queue pair, kind), or [`NIL`].
    nodes_by_id: Vec<u32>,
    nodes: Vec<Node>,
    /// Unused nodes, linked by `next`.
    free: u32,
    /// A 4-ary heap of nodes; empty only when there are no timers at all.
    near: Vec<u32>,
    /// All timers beyond the cursor; `None` while everything is near.
    wheel: Option<Box<Wheel>>,
    serial: u32,
}

/// One outstanding timer.
#[derive(Clone, Copy, Debug)]
struct Node {
    at: u64,
    /// Counts arms modulo 2³², to order those of one instant: no two of those are half as many arms apart.
    serial: u32,
    id: u32,
    /// The neighbours in a wheel's list; in the heap `previous` is the position.
    previous: u32,
    next: u32,
}

#[derive(Clone, Debug)]
struct Wheel {
    /// The latest tick whose timers are in the heap.
    cursor: u64,
    levels: [Level; LEVELS],
    /// Timers moved since the cursor was last drawn back, and timers armed behind it since then.
    moved: u32,
    crowded: u32,
}

/// 64 lists, by the six bits of the tick that belong to this level.
#[derive(Clone, Copy, Debug)]
struct Level {
    occupied: u64,
    heads: [u32; 64],
}

const NIL: u32 = u32::MAX;
const TICK_BITS: u32 = 20;
const LEVEL_BITS: u32 = 6;
/// Enough for the 44 bits of a tick.
const LEVELS: usize = 8;
/// The heap may hold so many before a wheel is built, and so many must crowd it before the cursor is drawn back.
pub(super) const CROWD: usize = 64;

const fn tick(at: u64) -> u64 {
    at >> TICK_BITS
}

impl Many {
    /// No timers, for queue pairs with `kinds` timers each, at first for queue pairs below `count`.
    pub(super) fn new(kinds: u8, count: u32) -> Self {
        let mut many = Self {
            kinds,
            nodes_by_id: Vec::new(),
            nodes: Vec::new(),
            free: NIL,
            near: Vec::new(),
            wheel: None,
            serial: 0,
        };
        many.prepare(count);
        many
    }

    /// Makes room for queue pairs below `count`.
    pub(super) fn prepare(&mut self, count: u32) {
        let ids = count as usize * usize::from(self.kinds);
        if self.nodes_by_id.len() < ids {
            self.nodes_by_id.resize(ids, NIL);
        }
    }

    /// The instant of the earliest timer, or [`NEVER`].
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.near.first().map_or(NEVER, |&node| self.nodes[node as usize].at)
    }

    /// The instant for which a timer is armed, or [`NEVER`].
    #[inline]
    pub(super) fn armed(&self, id: TimerId) -> u64 {
        match self.nodes_by_id.get(self.flat(id) as usize) {
            None | Some(&NIL) => NEVER,
            Some(&node) => self.nodes[node as usize].at,
        }
    }

    /// Arms a timer, which replaces an earlier arming.
    pub(super) fn arm(&mut self, id: TimerId, at: u64) {
        let flat = self.flat(id);
        if flat as usize >= self.nodes_by_id.len() {
            self.prepare(id.qp + 1);
        }
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        let node = self.nodes_by_id[flat as usize];
        if node == NIL {
            let node = self.allocate(Node { at, serial, id: flat, previous: NIL, next: NIL });
            self.nodes_by_id[flat as usize] = node;
            self.file(node);
            return;
        }
        let old = self.nodes[node as usize].at;
        match (self.far_place(old), self.far_place(at)) {
            (None, None) => {
                self.restamp(node, at, serial);
                self.sift(node);
            }
            (from, to) if from == to => self.restamp(node, at, serial),
            _ => {
                self.unfile(node);
                self.restamp(node, at, serial);
                self.file(node);
                self.settle();
            }
        }
    }

    /// Cancels a timer, if it is armed.
    pub(super) fn cancel(&mut self, id: TimerId) {
        let flat = self.flat(id);
        if let Some(&node) = self.nodes_by_id.get(flat as usize)
            && node != NIL
        {
            self.unfile(node);
            self.release(node);
            self.settle();
        }
    }

    /// Takes out the earliest timer.
    pub(super) fn pop(&mut self) -> Option<TimerId> {
        let node = *self.near.first()?;
        let id = self.nodes[node as usize].id;
        self.unfile(node);
        self.release(node);
        self.settle();
        let kinds = u32::from(self.kinds);
        #[expect(clippy::cast_possible_truncation, reason = "below the number of kinds")]
        Some(TimerId { qp: id / kinds, kind: (id % kinds) as u8 })
    }

    /// How many timers stand in the heap.
    #[cfg(test)]
    pub(super) fn crowd(&self) -> usize {
        self.near.len()
    }

    #[inline]
    fn flat(&self, id: TimerId) -> u32 {
        id.qp * u32::from(self.kinds) + u32::from(id.kind)
    }

    fn allocate(&mut self, node: Node) -> u32 {
        if self.free != NIL {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            return index;
        }
        let index = u32::try_from(self.nodes.len()).expect("fewer timers than queue pairs times kinds");
        self.nodes.push(node);
        index
    }

    fn release(&mut self, node: u32) {
        let id = self.nodes[node as usize].id;
        self.nodes_by_id[id as usize] = NIL;
        self.nodes[node as usize].next = self.free;
        self.free = node;
    }

    #[inline]
    fn restamp(&mut self, node: u32, at: u64, serial: u32) {
        let node = &mut self.nodes[node as usize];
        (node.at, node.serial) = (at, serial);
    }

    /// The level and list of the wheel where a timer for `at` belongs; `None`: in the heap.
    #[inline]
    fn far_place(&self, at: u64) -> Option<(usize, usize)> {
        self.wheel.as_ref().and_then(|wheel| wheel.place(at))
    }

    /// Puts a node where its instant belongs. The caller settles afterwards if the heap may be empty.
    fn file(&mut self, node: u32) {
        let at = self.nodes[node as usize].at;
        if self.wheel.is_none() && self.near.len() >= CROWD {
            self.wheel = Some(Box::new(Wheel::new()));
            self.draw_back();
        }
        if let Some(wheel) = &mut self.wheel {
            if let Some(place) = wheel.place(at) {
                wheel.link(&mut self.nodes, place, node);
                if self.near.is_empty() {
                    self.settle();
                }
                return;
            }
            if tick(at) < wheel.cursor {
                wheel.crowded += 1;
            }
            if wheel.crowded as usize >= CROWD.max(wheel.moved as usize) && self.near.len() >= CROWD {
                self.push(node);
                return self.draw_back();
            }
        }
        self.push(node);
    }

    fn unfile(&mut self, node: u32) {
        match self.far_place(self.nodes[node as usize].at) {
            None => self.pull(node),
            Some(place) => {
                if let Some(wheel) = &mut self.wheel {
                    wheel.unlink(&mut self.nodes, place, node);
                }
            }
        }
    }

    /// Brings the next timers down when the heap is empty.
    #[inline]
    fn settle(&mut self) {
        if self.near.is_empty() && self.wheel.is_some() {
            self.descend();
        }
    }

    fn descend(&mut self) {
        while self.near.is_empty() {
            let Some(wheel) = &mut self.wheel else { return };
            let Some(mut node) = wheel.advance() else { return };
            while node != NIL {
                let Node { at, next, .. } = self.nodes[node as usize];
                wheel.moved += 1;
                match wheel.place(at) {
                    None => push(&mut self.near, &mut self.nodes, node),
                    Some(place) => wheel.link(&mut self.nodes, place, node),
                }
                node = next;
            }
        }
    }

    /// Draws the cursor back to the earliest timer's tick and hangs what is later than it into the wheel.
    fn draw_back(&mut self) {
        let Some(wheel) = &mut self.wheel else { return };
        let Some(&first) = self.near.first() else { return };
        let earliest = self.nodes[first as usize].at;
        wheel.draw_back(&mut self.nodes, tick(earliest));
        let mut crowd = core::mem::take(&mut self.near);
        // The heap is built again in the same memory: what stays is pushed over what has been read.
        let mut kept = 0;
        for read in 0..crowd.len() {
            let node = crowd[read];
            match wheel.place(self.nodes[node as usize].at) {
                Some(place) => wheel.link(&mut self.nodes, place, node),
                None => {
                    crowd[kept] = node;
                    kept += 1;
                }
            }
        }
        crowd.truncate(kept);
        for position in 0..kept {
            rise(&mut crowd, &mut self.nodes, position);
        }
        self.near = crowd;
    }

    fn push(&mut self, node: u32) {
        push(&mut self.near, &mut self.nodes, node);
    }

    /// Takes a node out of the heap.
    fn pull(&mut self, node: u32) {
        let position = self.nodes[node as usize].previous as usize;
        self.near.swap_remove(position);
        if let Some(&moved) = self.near.get(position) {
            self.nodes[moved as usize].previous = self.nodes[node as usize].previous;
            self.sift(moved);
        }
    }

    /// Moves a node of the heap whose instant changed to where it belongs.
    fn sift(&mut self, node: u32) {
        let position = self.nodes[node as usize].previous as usize;
        if rise(&mut self.near, &mut self.nodes, position) == position {
            sink(&mut self.near, &mut self.nodes, position);
        }
    }
}

impl Wheel {
    /// A wheel that leaves everything in the heap until it is drawn back.
    fn new() -> Self {
        Self {
            cursor: u64::MAX,
            levels: [Level { occupied: 0, heads: [NIL; 64] }; LEVELS],
            moved: 0,
            crowded: 0,
        }
    }

    /// Where a timer for `at` belongs: the level of the highest bits in which its tick differs from the cursor, so
    /// that the wheel's lowest level always holds the earliest.
    #[inline]
    fn place(&self, at: u64) -> Option<(usize, usize)> {
        let tick = tick(at);
        if tick <= self.cursor {
            return None;
        }
        let level = (tick ^ self.cursor).ilog2() / LEVEL_BITS;
        Some((level as usize, (tick >> (level * LEVEL_BITS) & 63) as usize))
    }

    fn link(&mut self, nodes: &mut [Node], (level, list): (usize, usize), node: u32) {
        let level = &mut self.levels[level];
        let head = level.heads[list];
        if head != NIL {
            nodes[head as usize].previous = node;
        }
        nodes[node as usize].previous = NIL;
        nodes[node as usize].next = head;
        level.heads[list] = node;
        level.occupied |= 1 << list;
    }

    fn unlink(&mut self, nodes: &mut [Node], (level, list): (usize, usize), node: u32) {
        let Node { previous, next, .. } = nodes[node as usize];
        if next != NIL {
            nodes[next as usize].previous = previous;
        }
        if previous != NIL {
            nodes[previous as usize].next = next;
            return;
        }
        let level = &mut self.levels[level];
        level.heads[list] = next;
        if next == NIL {
            level.occupied &= !(1 << list);
        }
    }

    /// Moves the cursor to the beginning of the next list that is not empty, and gives that list's first node.
    fn advance(&mut self) -> Option<u32> {
        let (depth, level) = self.levels.iter_mut().enumerate().find(|(_, level)| level.occupied != 0)?;
        let list = level.occupied.trailing_zeros();
        level.occupied &= level.occupied - 1;
        let shift = u32::try_from(depth).ok()? * LEVEL_BITS;
        let above = shift + LEVEL_BITS;
        self.cursor = self.cursor >> above << above | u64::from(list) << shift;
        Some(core::mem::replace(&mut level.heads[list as usize], NIL))
    }

    /// Moves the cursor to an earlier tick. Above the level where the two differ nothing changes its place; what
    /// hangs below it goes to the list that the old cursor names there.
    fn draw_back(&mut self, nodes: &mut [Node], to: u64) {
        (self.moved, self.crowded) = (0, 0);
        let from = core::mem::replace(&mut self.cursor, to);
        let Some(top) = (from ^ to).checked_ilog2().map(|bit| (bit / LEVEL_BITS) as usize) else { return };
        for level in 0..top.min(LEVELS) {
            while self.levels[level].occupied != 0 {
                let list = self.levels[level].occupied.trailing_zeros() as usize;
                let node = self.levels[level].heads[list];
                self.unlink(nodes, (level, list), node);
                if let Some(place) = self.place(nodes[node as usize].at) {
                    self.link(nodes, place, node);
                }
            }
        }
    }
}

#[inline]
fn before(nodes: &[Node], a: u32, b: u32) -> bool {
    let (a, b) = (&nodes[a as usize], &nodes[b as usize]);
    if a.at == b.at { a.serial.wrapping_sub(b.serial).cast_signed() < 0 } else { a.at < b.at }
}

#[expect(clippy::cast_possible_truncation, reason = "positions are below the number of nodes, a u32")]
fn put(heap: &mut [u32], nodes: &mut [Node], position: usize, node: u32) {
    heap[position] = node;
    nodes[node as usize].previous = position as u32;
}

fn push(heap: &mut Vec<u32>, nodes: &mut [Node], node: u32) {
    let position = heap.len();
    heap.push(node);
    rise(heap, nodes, position);
}

/// Moves the node at `position` towards the root as far as it belongs; gives where it came to stand.
fn rise(heap: &mut [u32], nodes: &mut [Node], mut position: usize) -> usize {
    let node = heap[position];
    while position > 0 {
        let parent = (position - 1) / 4;
        if !before(nodes, node, heap[parent]) {
            break;
        }
        put(heap, nodes, position, heap[parent]);
        position = parent;
    }
    put(heap, nodes, position, node);
    position
}

/// Moves the node at `position` away from the root as far as it belongs.
fn sink(heap: &mut [u32], nodes: &mut [Node], mut position: usize) {
    let node = heap[position];
    loop {
        let children = position * 4 + 1..heap.len().min(position * 4 + 5);
        let Some(least) = children.reduce(|a, b| if before(nodes, heap[b], heap[a]) { b } else { a }) else {
            break;
        };
        if !before(nodes, heap[least], node) {
            break;
        }
        put(heap, nodes, position, heap[least]);
        position = least;
    }
    put(heap, nodes, position, node);
}
