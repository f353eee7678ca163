//! Random sequences of what can be done with memory windows, beside a model that has the rules alone (IBTA Vol 1 §10.6.7): what it lets
//! through is in its place, and what it does not ends with an error and leaves all memory as it was.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{End, Pair, in_memory};
use proptest::prelude::*;
use roci_endpoint::{
    Access, Change, Layout, MemoryRegion, MemoryWindow, ProtectionDomain, QueuePair, Recovery, RecvWr,
    RemoteMemory, SendWr, Status, Tail, Transition, WindowKind, WindowTarget,
};
use std::collections::BTreeMap;

type Way = (Recovery, Layout);

/// How what is lost is sent again, by which the responder looks at keys in places of its own.
const WAYS: [Way; 3] =
    [(Recovery::GoBackN, Layout::Standard), (Recovery::Irn, Layout::Irn), (Recovery::Srnic, Layout::Srnic)];
/// Octets of a region: so few that a WRITE of some more goes inline.
const SIZE: usize = 240;
/// The domain of each queue pair, and domain and rights of each region.
const QPS: [usize; 3] = [0, 0, 1];
const REGIONS: [(usize, Access); 5] = [
    (0, Access::LOCAL_WRITE.union(Access::BIND)),
    (0, Access::ALL.union(Access::BIND)),
    (0, Access::BIND),
    (0, Access::ALL),
    (1, Access::LOCAL_WRITE.union(Access::BIND)),
];
const WINDOWS_MAX: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Allocate {
        pd: usize,
        is_second: bool,
    },
    Bind {
        qp: usize,
        window: usize,
        octet: u8,
        region: usize,
        start: usize,
        length: usize,
        rights: u8,
        zero: bool,
    },
    InvalidateHere {
        qp: usize,
        key: usize,
    },
    InvalidateThere {
        qp: usize,
        key: usize,
    },
    Deallocate {
        window: usize,
    },
    Deregister {
        region: usize,
    },
    Replace {
        qp: usize,
    },
    Access {
        qp: usize,
        verb: Verb,
        key: usize,
        at: i64,
        length: usize,
    },
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Write,
    Read,
    Add,
}

fn step() -> impl Strategy<Value = Step> {
    let (qp, key) = (0..QPS.len(), 0usize..64);
    let at = prop_oneof![20 => -9i64..SIZE as i64 + 9, 1 => any::<i64>()];
    let length = prop_oneof![4 => 0usize..24, 1 => 0..SIZE + 9];
    let verb = prop_oneof![Just(Verb::Write), Just(Verb::Read), Just(Verb::Add)];
    let rights = prop_oneof![2 => Just(14u8), 1 => 0u8..8];
    let bind = (qp.clone(), 0..WINDOWS_MAX, 0u8..3, 0..REGIONS.len(), 0..SIZE + 2, 0..SIZE + 9, rights, 0..4);
    prop_oneof![
        2 => (0usize..8, any::<bool>()).prop_map(|(pd, is_second)| Step::Allocate { pd: pd / 7, is_second }),
        8 => bind.prop_map(|(qp, window, octet, region, start, length, rights, zero)| Step::Bind {
            qp, window, octet, region, start: start / 2, length: length / 2, rights, zero: zero == 0,
        }),
        3 => (qp.clone(), key.clone()).prop_map(|(qp, key)| Step::InvalidateHere { qp, key }),
        3 => (qp.clone(), key.clone()).prop_map(|(qp, key)| Step::InvalidateThere { qp, key }),
        1 => (0..WINDOWS_MAX).prop_map(|window| Step::Deallocate { window }),
        1 => (0..REGIONS.len()).prop_map(|region| Step::Deregister { region }),
        1 => qp.clone().prop_map(|qp| Step::Replace { qp }),
        14 => (qp, verb, key, at, length)
            .prop_map(|(qp, verb, key, at, length)| Step::Access { qp, verb, key, at, length }),
    ]
}

/// A region as the model has it.
struct Region {
    pd: usize,
    rights: Access,
    address: u64,
    is_valid: bool,
    octets: Vec<u8>,
}

/// A window as the model has it, by the upper 24 bits of its keys.
struct Window {
    pd: usize,
    is_second: bool,
    bound: Option<Bound>,
}

#[derive(Clone, Copy)]
struct Bound {
    key: u32,
    region: u32,
    /// Where peers say that it begins, and where it does in the region.
    named: u64,
    offset: usize,
    length: usize,
    rights: Access,
    qp: usize,
}

/// The rules, and the octets as they have to be.
#[derive(Default)]
struct Model {
    regions: BTreeMap<u32, Region>,
    windows: BTreeMap<u32, Window>,
}

/// What is to be bound.
struct Wish {
    qp: usize,
    key: u32,
    region: u32,
    start: usize,
    length: usize,
    rights: Access,
    zero: bool,
}

impl Model {
    /// Whether the window is bound.
    fn bind(&mut self, wish: &Wish) -> bool {
        let Some(window) = self.windows.get_mut(&(wish.key >> 8)) else { return false };
        let one = !window.is_second;
        if window.pd != QPS[wish.qp] || window.is_second && window.bound.is_some() || one && wish.zero {
            return false;
        }
        if wish.length == 0 {
            window.bound = None;
            return one;
        }
        let Some(region) = self.regions.get(&wish.region) else { return false };
        let changes = wish.rights.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0) != 0;
        if region.pd != window.pd
            || !region.is_valid
            || !region.rights.has(Access::BIND)
            || changes && !region.rights.has(Access::LOCAL_WRITE)
            || wish.start + wish.length > SIZE
        {
            return false;
        }
        let named = if wish.zero { 0 } else { region.address + wish.start as u64 };
        let Wish { qp, key, region, start: offset, length, rights, .. } = *wish;
        window.bound = Some(Bound { key, region, named, offset, length, rights, qp });
        true
    }

    /// The window of type 2 that has this key and was bound by this queue pair.
    fn second(&mut self, qp: usize, key: u32) -> Option<&mut Window> {
        let window = self.windows.get_mut(&(key >> 8)).filter(|window| window.is_second)?;
        window.bound.is_some_and(|bound| bound.key == key && bound.qp == qp).then_some(window)
    }

    fn invalidate_here(&mut self, qp: usize, key: u32) -> bool {
        self.second(qp, key).map(|window| window.bound = None).is_some()
    }

    fn invalidate_there(&mut self, qp: usize, key: u32) -> bool {
        if let Some(region) = self.regions.get_mut(&key) {
            let goes = region.is_valid && region.pd == QPS[qp] && region.rights.0 & 14 != 0;
            region.is_valid &= !goes;
            return goes;
        }
        self.invalidate_here(qp, key)
    }

    /// The region and the place in it of so many octets from an address on, if a peer of `qp` has this right there.
    fn find(&self, qp: usize, key: u32, address: u64, length: usize, right: Access) -> Option<(u32, usize)> {
        let (region, named, offset, size, rights) = if let Some(region) = self.regions.get(&key) {
            (key, region.address, 0, SIZE, region.rights)
        } else {
            let window = self.windows.get(&(key >> 8)).filter(|window| window.pd == QPS[qp])?;
            let bound = window.bound.filter(|bound| bound.key == key)?;
            if window.is_second && bound.qp != qp {
                return None;
            }
            (bound.region, bound.named, bound.offset, bound.length, bound.rights)
        };
        let it = &self.regions[&region];
        let (from, first) = (u128::from(address), u128::from(named));
        let is_inside = from >= first && from + length as u128 <= first + size as u128;
        let is_let_in = it.is_valid && it.pd == QPS[qp] && rights.has(right) && is_inside;
        is_let_in.then(|| (region, offset + usize::try_from(address - named).unwrap()))
    }
}

/// The ends themselves beside the model: `b` has the memory.
struct World {
    a: End,
    b: End,
    way: Way,
    pds: [ProtectionDomain; 2],
    qps: Vec<[QueuePair; 2]>,
    regions: Vec<MemoryRegion>,
    windows: Vec<MemoryWindow>,
    model: Model,
    /// All keys that ever were.
    keys: Vec<u32>,
    octet: u8,
}

fn connected(a: &End, b: &End, pd: &ProtectionDomain, way: Way) -> [QueuePair; 2] {
    let made =
        |(end, pd): (&End, &ProtectionDomain)| pd.create_qp(&end.cq, &end.cq).recovery(way.0, way.1).build();
    let qps = [(a, &a.pd), (b, pd)].map(|ends| made(ends).unwrap());
    meet(&qps);
    qps
}

fn meet([near, far]: &[QueuePair; 2]) {
    near.connect(far.info()).unwrap();
    far.connect(near.info()).unwrap();
}

impl World {
    fn new(way: Way) -> Self {
        let Pair { a, b, .. } = in_memory(1, |qp| qp);
        let pds = [b.pd.clone(), b.device.alloc_pd()];
        let qps = QPS.iter().map(|pd| connected(&a, &b, &pds[*pd], way)).collect();
        let (regions, windows, model, keys) = (Vec::new(), Vec::new(), Model::default(), Vec::new());
        let mut world = Self { a, b, way, pds, qps, regions, windows, model, keys, octet: 0 };
        for at in 0..REGIONS.len() {
            let region = world.registered(at);
            world.regions.push(region);
        }
        world
    }

    fn registered(&mut self, at: usize) -> MemoryRegion {
        let ((pd, rights), octets) = (REGIONS[at], vec![u8::try_from(at).unwrap(); SIZE]);
        let region = self.pds[pd].reg_mr(octets.clone(), rights).unwrap();
        let address = region.addr();
        self.model.regions.insert(region.rkey(), Region { pd, rights, address, is_valid: true, octets });
        self.keys.push(region.rkey());
        region
    }

    /// A key that there is or was, a late one rather than an early one, or a region's; now and then one that nearly is.
    fn key(&self, draw: usize) -> u32 {
        let key = self.keys[self.keys.len() - 1 - draw % 7 % self.keys.len()];
        match draw {
            56.. => key ^ 1 << (draw % 8 * 4),
            44.. => self.regions[draw % REGIONS.len()].rkey(),
            _ => key,
        }
    }

    /// A queue pair whose request was refused is led back, and so is its peer.
    fn lead_back(&self, qp: usize) {
        let change = |transition| Change { transition: Some(transition), ..Change::default() };
        for end in &self.qps[qp] {
            end.modify(&change(Transition::Reset)).unwrap();
            end.modify(&change(Transition::Initialize)).unwrap();
        }
        meet(&self.qps[qp]);
    }

    /// Posts what needs no peer, of the end that has the memory.
    fn here(&self, qp: usize, request: SendWr, is_well: bool) -> Result<(), TestCaseError> {
        self.qps[qp][1].post_send(request).unwrap();
        let wanted = if is_well { Status::Success } else { Status::MemoryWindowBindError };
        prop_assert_eq!(self.b.wait().status, wanted);
        if !is_well {
            self.lead_back(qp);
        }
        Ok(())
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Allocate { pd, is_second } if self.windows.len() < WINDOWS_MAX => {
                let kind = if is_second { WindowKind::Type2 } else { WindowKind::Type1 };
                let window = self.pds[pd].alloc_mw(kind).unwrap();
                self.keys.push(window.rkey());
                let fresh =
                    self.model.windows.insert(window.rkey() >> 8, Window { pd, is_second, bound: None });
                prop_assert!(fresh.is_none(), "no two windows share keys");
                self.windows.push(window);
            }
            Step::Bind { qp, window, octet, region, start, length, rights, zero } => {
                let Some(window) = self.windows.get(window) else { return Ok(()) };
                let (key, region, rights) =
                    (window.rkey() & !0xff | u32::from(octet), &self.regions[region], Access(rights));
                let target = WindowTarget::new(region, start..start + length, rights);
                let target = if zero { target.zero_based() } else { target };
                let request = SendWr::bind(window, u32::from(octet), target);
                let wish = Wish { qp, key, region: region.rkey(), start, length, rights, zero };
                let is_well = self.model.bind(&wish);
                self.here(qp, request, is_well)?;
                self.keys.push(key);
            }
            Step::InvalidateHere { qp, key } => {
                let key = self.key(key);
                let is_well = self.model.invalidate_here(qp, key);
                self.here(qp, SendWr::invalidate_local(key), is_well)?;
            }
            Step::InvalidateThere { qp, key } => {
                let key = self.key(key);
                self.qps[qp][1].post_recv(RecvWr::empty()).unwrap();
                self.qps[qp][0].post_send(SendWr::send_inline(&[]).invalidate(key)).unwrap();
                let (sent, received) = (self.a.wait().status, self.b.wait());
                if self.model.invalidate_there(qp, key) {
                    prop_assert_eq!((sent, received.status), (Status::Success, Status::Success));
                    prop_assert_eq!(received.tail, Tail::Invalidate(key));
                } else {
                    let wanted = (Status::RemoteAccessError, Status::WorkRequestFlushed);
                    prop_assert_eq!((sent, received.status), wanted);
                    self.lead_back(qp);
                }
            }
            Step::Deallocate { window } if window < self.windows.len() => {
                let gone = self.windows.remove(window);
                self.model.windows.remove(&(gone.rkey() >> 8));
            }
            Step::Deregister { region: at } => {
                let region = self.regions.remove(at);
                let key = region.rkey();
                let holds = |window: &Window| window.bound.is_some_and(|bound| bound.region == key);
                let is_held = self.model.windows.values().any(holds);
                let region = match region.deregister() {
                    Ok(octets) => {
                        prop_assert!(!is_held, "no window was bound to it");
                        prop_assert_eq!(Some(octets), self.model.regions.remove(&key).map(|it| it.octets));
                        self.registered(at)
                    }
                    Err(region) => {
                        prop_assert!(is_held, "a window is bound to it");
                        region
                    }
                };
                self.regions.insert(at, region);
            }
            Step::Replace { qp } => {
                self.qps[qp] = connected(&self.a, &self.b, &self.pds[QPS[qp]], self.way);
                for window in self.model.windows.values_mut().filter(|window| window.is_second) {
                    window.bound = window.bound.filter(|bound| bound.qp != qp);
                }
            }
            Step::Access { qp, verb, key, at, length } => self.access(qp, verb, self.key(key), at, length)?,
            Step::Allocate { .. } | Step::Deallocate { .. } => {}
        }
        self.compare()
    }

    fn access(
        &mut self,
        qp: usize,
        verb: Verb,
        rkey: u32,
        at: i64,
        length: usize,
    ) -> Result<(), TestCaseError> {
        let bound = self.model.windows.get(&(rkey >> 8)).and_then(|window| window.bound);
        let region = self.model.regions.get(&rkey).map(|region| region.address);
        let begin = bound.map(|bound| bound.named).or(region).unwrap_or_default();
        let mut address = begin.wrapping_add_signed(at);
        let (right, length) = match verb {
            Verb::Write => (Access::REMOTE_WRITE, length),
            Verb::Read => (Access::REMOTE_READ, length.max(1)),
            Verb::Add => (Access::REMOTE_ATOMIC, 8),
        };
        let there = |address| RemoteMemory { address, rkey };
        self.octet = self.octet.wrapping_add(1).max(0x10);
        let octets = vec![self.octet; length];
        let request = match verb {
            Verb::Write => SendWr::write_inline(&octets, there(address)),
            Verb::Read => SendWr::read(self.a.own.buffer(0..length).unwrap(), there(address)),
            Verb::Add => {
                address &= !7;
                SendWr::fetch_add(there(address), self.octet.into())
            }
        };
        self.qps[qp][0].post_send(request).unwrap();
        let done = self.a.wait();
        if length == 0 {
            prop_assert_eq!(done.status, Status::Success, "what touches nothing needs no key");
            return Ok(());
        }
        let Some((region, place)) = self.model.find(qp, rkey, address, length, right) else {
            prop_assert_eq!(done.status, Status::RemoteAccessError);
            self.lead_back(qp);
            return Ok(());
        };
        prop_assert_eq!(done.status, Status::Success);
        let memory = &mut self.model.regions.get_mut(&region).unwrap().octets[place..place + length];
        match verb {
            Verb::Write => memory.copy_from_slice(&octets),
            Verb::Read => prop_assert_eq!(done.octets(), memory.to_vec()),
            Verb::Add => {
                let original = u64::from_ne_bytes(memory.try_into().unwrap());
                prop_assert_eq!(done.original, original);
                memory.copy_from_slice(&original.wrapping_add(self.octet.into()).to_ne_bytes());
            }
        }
        Ok(())
    }

    /// All octets are as the model has them.
    fn compare(&self) -> Result<(), TestCaseError> {
        for region in &self.regions {
            let mut octets = vec![0; SIZE];
            region.read(0, &mut octets).unwrap();
            prop_assert_eq!(&octets, &self.model.regions[&region.rkey()].octets);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn windows_let_through_what_the_rules_do_and_nothing_else(
        way in prop::sample::select(&WAYS[..]),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut world = World::new(way);
        for step in &steps {
            world.take(step)?;
        }
    }
}
