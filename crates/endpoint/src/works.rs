//! Work requests in flight: what they lent, found again by number.

use crate::memory::region::Handle;
use crate::memory::{Buffer, Slice};
use crate::work::Payload;
use std::collections::HashSet;

/// Where payload lies, in the terms that the engine carries around: the request's place in the upper half, an offset in
/// the lower. The key beside it is zero.
pub(crate) fn address_of(place: u32) -> u64 {
    u64::from(place) << 32
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are meant")]
fn split(address: u64) -> (usize, usize) {
    ((address >> 32) as usize, (address as u32) as usize)
}

/// Whose request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Send(u32),
    Recv(u32),
    Shared(u32),
}

#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) id: u64,
    pub(crate) owner: Owner,
    pub(crate) signaled: bool,
    pub(crate) payload: Payload,
    /// Some of the memory that it was to fill was taken away.
    pub(crate) is_void: bool,
}

/// All of them of one shard.
#[derive(Debug, Default)]
pub(crate) struct Works {
    places: Vec<Option<Work>>,
    free: Vec<u32>,
}

impl Works {
    pub(crate) fn insert(&mut self, work: Work) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(work);
            return place;
        }
        self.places.push(Some(work));
        u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Work> {
        let place = u32::try_from(id).ok()?;
        let work = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(work)
    }

    /// What a request that goes on has lent, or is to do.
    pub(crate) fn take_payload(&mut self, id: u64) -> Option<Payload> {
        let work = self.places.get_mut(usize::try_from(id).ok()?)?.as_mut()?;
        Some(std::mem::replace(&mut work.payload, Payload::None))
    }

    /// Whether no packet carries the request of this number.
    pub(crate) fn is_local(&self, id: u64) -> bool {
        let work = usize::try_from(id).ok().and_then(|place| self.places.get(place)?.as_ref());
        work.is_some_and(|work| matches!(work.payload, Payload::Local(_)))
    }

    /// Drops all requests of an owner, and gives back what they lent.
    pub(crate) fn remove_of(&mut self, owns: impl Fn(Owner) -> bool) {
        for (place, work) in (0..).zip(&mut self.places) {
            if work.as_ref().is_some_and(|work| owns(work.owner)) {
                *work = None;
                self.free.push(place);
            }
        }
    }

    /// Memory is about to be taken away: what was to be sent of it is copied, as it is now, and requests that were to fill it are void; gives
    /// the receive requests among those.
    pub(crate) fn part_with(&mut self, handle: &Handle) -> HashSet<u64> {
        let mut recvs = HashSet::new();
        for (id, work) in (0..).zip(&mut self.places) {
            let Some(work) = work.as_mut().filter(|work| work.payload.refers_to(handle)) else { continue };
            match &work.payload {
                Payload::None | Payload::Inline(_) | Payload::Local(_) => {}
                Payload::Slice(slice) => work.payload = Payload::Inline(slice.to_vec().into()),
                Payload::Slices(slices) => {
                    work.payload = Payload::Inline(slices.iter().flat_map(Slice::to_vec).collect());
                }
                Payload::Buffer(_) | Payload::Buffers(_) => {
                    work.is_void = true;
                    recvs.extend((!matches!(work.owner, Owner::Send(_))).then_some(id));
                }
            }
        }
        recvs
    }

    fn at(&self, address: u64) -> Option<(&Payload, usize)> {
        let (place, offset) = split(address);
        Some((&self.places.get(place)?.as_ref()?.payload, offset))
    }

    /// Places what arrived for the request at `address`.
    #[inline]
    pub(crate) fn place(&self, address: u64, octets: &[u8]) {
        match self.at(address) {
            Some((Payload::Buffer(buffer), offset)) => buffer.place(offset, octets),
            Some((Payload::Buffers(buffers), offset)) => scatter(buffers, offset, octets),
            _ => {}
        }
    }

    /// The `length` octets at `address` where they lie in one piece that may be read in place.
    #[inline]
    pub(crate) fn in_place(&self, address: u64, length: usize) -> Option<&[u8]> {
        let (payload, offset) = self.at(address)?;
        let octets = match payload {
            Payload::Slice(slice) => slice.as_slice()?,
            Payload::Inline(octets) => octets,
            _ => return None,
        };
        octets.get(offset..offset.checked_add(length)?)
    }

    /// Copies the octets at `address`.
    pub(crate) fn gather(&self, address: u64, to: &mut [u8]) {
        match self.at(address) {
            Some((Payload::Slice(slice), offset)) => slice.gather(offset, to),
            Some((Payload::Slices(slices), offset)) => gather(slices, offset, to),
            _ => to.fill(0),
        }
    }
}

fn scatter(buffers: &[Buffer], mut offset: usize, mut octets: &[u8]) {
    for buffer in buffers {
        if offset >= buffer.len() {
            offset -= buffer.len();
            continue;
        }
        let (now, rest) = octets.split_at(octets.len().min(buffer.len() - offset));
        buffer.place(offset, now);
        (octets, offset) = (rest, 0);
        if octets.is_empty() {
            return;
        }
    }
}

/// Copies octets that lie in several slices; zeros where there are none.
fn gather(slices: &[Slice], mut offset: usize, mut to: &mut [u8]) {
    for slice in slices {
        if offset >= slice.len() {
            offset -= slice.len();
            continue;
        }
        let (now, rest) = to.split_at_mut(to.len().min(slice.len() - offset));
        slice.gather(offset, now);
        (to, offset) = (rest, 0);
        if to.is_empty() {
            return;
        }
    }
    to.fill(0);
}
