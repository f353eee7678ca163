use super::*;
use crate::memory::Regions;

const PD: Pd = Pd(7);
const QP: (Pd, Qpn) = (PD, Qpn::new(5));
const OTHER: (Pd, Qpn) = (PD, Qpn::new(6));
const READ: Access = Access::REMOTE_READ;
const WRITE: Access = Access::REMOTE_WRITE;

/// A region of 0x100 octets from 0x1000 on to which windows may be bound, and nothing else may be done from afar.
fn region(regions: &mut Regions) -> u32 {
    regions.register(PD, 0x1000, 0x100, Access::LOCAL_WRITE | Access::BIND).unwrap()
}

fn binding(key: u32, region: u32) -> Binding {
    Binding { key, region, address: 0x1010, length: 0x20, access: READ, is_zero_based: false }
}

fn check(regions: &Regions, asks: (Pd, Qpn), key: u32, at: u64, length: u64) -> Result<(), AccessError> {
    regions.check_for(asks, key, at, length, READ)
}

#[test]
fn a_window_opens_its_octets_of_a_region_that_is_shut_with_its_rights_and_no_more() {
    let mut regions = Regions::new(1);
    let region = region(&mut regions);
    let key = regions.allocate_window(PD, WindowKind::Type1).unwrap();
    assert_eq!(check(&regions, QP, key, 0x1010, 1), Err(AccessError::UnknownKey), "bound to nothing");
    regions.bind(PD, QP.1, &binding(key, region)).unwrap();
    assert_eq!(check(&regions, QP, key, 0x1010, 0x20), Ok(()));
    assert_eq!(check(&regions, OTHER, key, 0x102f, 1), Ok(()), "all queue pairs of the domain");
    for (at, length) in [(0x100f, 1), (0x100f, 2), (0x1030, 1), (0x1010, 0x21), (0x1011, u64::MAX), (0, 1)] {
        assert_eq!(check(&regions, QP, key, at, length), Err(AccessError::Bounds), "{at:#x}");
    }
    for needs in [WRITE, Access::REMOTE_ATOMIC] {
        assert_eq!(regions.check_for(QP, key, 0x1010, 1, needs), Err(AccessError::Rights));
    }
    assert_eq!(check(&regions, (Pd(8), QP.1), key, 0x1010, 1), Err(AccessError::ProtectionDomain));
    assert_eq!(
        check(&regions, QP, region, 0x1010, 1),
        Err(AccessError::Rights),
        "the region is shut as before"
    );
    assert_eq!(regions.check(PD, key, 0x1010, 1, Access::NONE), Err(AccessError::UnknownKey), "no local key");
}

#[test]
fn a_window_of_type_1_moves_with_each_binding_and_a_former_key_fits_no_longer() {
    let mut regions = Regions::new(1);
    let region = region(&mut regions);
    let first = regions.allocate_window(PD, WindowKind::Type1).unwrap();
    let second = first | 1;
    regions.bind(PD, QP.1, &binding(first, region)).unwrap();
    regions.bind(PD, OTHER.1, &Binding { address: 0x1080, ..binding(second, region) }).unwrap();
    assert_eq!(check(&regions, QP, first, 0x1010, 1), Err(AccessError::UnknownKey));
    assert_eq!(check(&regions, QP, second, 0x1080, 1), Ok(()));
    assert_eq!(regions.invalidate_window(PD, QP.1, second), Err(AccessError::Rights), "by bindings alone");
    assert!(regions.has_windows(region));
    regions.bind(PD, QP.1, &Binding { length: 0, region: 0, ..binding(first, region) }).unwrap();
    assert!(
        check(&regions, QP, first, 0x1010, 1).is_err() && check(&regions, QP, second, 0x1080, 1).is_err()
    );
    assert!(!regions.has_windows(region));
}

#[test]
fn a_window_of_type_2_serves_the_queue_pair_that_bound_it_until_its_key_is_invalidated() {
    let mut regions = Regions::new(1);
    let region = region(&mut regions);
    let key = regions.allocate_window(PD, WindowKind::Type2).unwrap() | 0x77;
    regions.bind(PD, QP.1, &binding(key, region)).unwrap();
    assert_eq!(check(&regions, QP, key, 0x1010, 1), Ok(()));
    assert_eq!(check(&regions, OTHER, key, 0x1010, 1), Err(AccessError::QueuePair));
    assert_eq!(regions.bind(PD, QP.1, &binding(key ^ 1, region)), Err(BindError::Bound));
    assert_eq!(regions.invalidate_window(PD, OTHER.1, key), Err(AccessError::QueuePair));
    assert_eq!(regions.invalidate_window(PD, QP.1, key ^ 1), Err(AccessError::UnknownKey));
    assert_eq!(regions.invalidate_window(PD, QP.1, key), Ok(()));
    assert_eq!(check(&regions, QP, key, 0x1010, 1), Err(AccessError::Invalidated));
    assert_eq!(regions.invalidate_window(PD, QP.1, key), Err(AccessError::Invalidated));
    assert_eq!(regions.behind_window(key), Some((region, 0)), "what came before is still to be placed");
    // Once more with the same key, by another queue pair, which goes.
    regions.bind(PD, OTHER.1, &binding(key, region)).unwrap();
    assert_eq!(check(&regions, OTHER, key, 0x1010, 1), Ok(()));
    regions.forget_queue_pair(OTHER.1);
    assert_eq!(check(&regions, OTHER, key, 0x1010, 1), Err(AccessError::Invalidated));
    assert!(!regions.has_windows(region));
}

#[test]
fn what_cannot_be_bound_is_refused_and_the_window_is_as_it_was() {
    let mut regions = Regions::new(1);
    let (region, shut) = (region(&mut regions), regions.register(PD, 0x1000, 0x100, Access::ALL).unwrap());
    let readable = regions.register(PD, 0x1000, 0x100, Access::BIND).unwrap();
    let key = regions.allocate_window(PD, WindowKind::Type2).unwrap();
    let good = binding(key, region);
    for (binding, error) in [
        (Binding { key: key ^ 0x100, ..good }, BindError::Window),
        (Binding { region: region ^ 1, ..good }, BindError::Region),
        (Binding { region: shut, ..good }, BindError::Rights),
        (Binding { region: readable, access: WRITE, ..good }, BindError::Rights),
        (Binding { region: readable, access: Access::REMOTE_ATOMIC, ..good }, BindError::Rights),
        (Binding { length: 0, ..good }, BindError::Empty),
        (Binding { address: 0xfff, ..good }, BindError::Bounds),
        (Binding { length: 0xf1, ..good }, BindError::Bounds),
        (Binding { length: u64::MAX, ..good }, BindError::Bounds),
    ] {
        assert_eq!(regions.bind(PD, QP.1, &binding), Err(error), "{binding:?}");
    }
    assert_eq!(regions.bind(Pd(8), QP.1, &good), Err(BindError::ProtectionDomain));
    let elsewhere = regions.register(Pd(8), 0x1000, 0x100, Access::BIND).unwrap();
    assert_eq!(
        regions.bind(PD, QP.1, &Binding { region: elsewhere, ..good }),
        Err(BindError::ProtectionDomain)
    );
    assert_eq!(check(&regions, QP, key, 0x1010, 1), Err(AccessError::UnknownKey));
    regions.bind(PD, QP.1, &Binding { region: readable, ..good }).unwrap();
    assert_eq!(check(&regions, QP, key, 0x1010, 1), Ok(()));
}

#[test]
fn a_window_from_zero_on_leads_to_its_place_in_the_region() {
    let mut regions = Regions::new(1);
    let region = region(&mut regions);
    let key = regions.allocate_window(PD, WindowKind::Type2).unwrap();
    regions.bind(PD, QP.1, &Binding { is_zero_based: true, ..binding(key, region) }).unwrap();
    assert_eq!((check(&regions, QP, key, 0, 0x20), check(&regions, QP, key, 0x1f, 1)), (Ok(()), Ok(())));
    for at in [0x20, 0x1010] {
        assert_eq!(check(&regions, QP, key, at, 1), Err(AccessError::Bounds));
    }
    assert_eq!(regions.behind_window(key), Some((region, 0x1010)));
    // Of type 2 alone, and of type 1 not even bound to nothing.
    let first = regions.allocate_window(PD, WindowKind::Type1).unwrap();
    regions.bind(PD, QP.1, &binding(first, region)).unwrap();
    for length in [0x20, 0] {
        let from_zero = Binding { is_zero_based: true, length, ..binding(first | 1, region) };
        assert_eq!(regions.bind(PD, QP.1, &from_zero), Err(BindError::ZeroBased));
    }
    assert_eq!(check(&regions, QP, first, 0x1010, 1), Ok(()), "it is as it was");
}

#[test]
fn a_window_goes_with_its_region_and_with_itself() {
    let mut regions = Regions::new(1);
    let keys = [WindowKind::Type1, WindowKind::Type2].map(|kind| {
        let region = region(&mut regions);
        let key = regions.allocate_window(PD, kind).unwrap();
        regions.bind(PD, QP.1, &binding(key, region)).unwrap();
        (region, key)
    });
    let [(gone, first), (region, second)] = keys;
    regions.deregister(gone).unwrap();
    assert_eq!(check(&regions, QP, first, 0x1010, 1), Err(AccessError::UnknownKey));
    assert_eq!(regions.behind_window(first), None);
    assert_eq!(check(&regions, QP, second, 0x1010, 1), Ok(()));
    assert_eq!(regions.deallocate_window(second | 9), Ok(()), "whatever its key is at the moment");
    assert_eq!(check(&regions, QP, second, 0x1010, 1), Err(AccessError::UnknownKey));
    assert_eq!(regions.deallocate_window(second), Err(AccessError::UnknownKey));
    assert!(!regions.has_windows(region));
}

#[test]
fn no_window_and_no_region_share_the_upper_part_of_a_key() {
    let mut regions = Regions::new(3);
    let mut indices = alloc::collections::BTreeSet::new();
    let mut keys = alloc::vec::Vec::new();
    for _ in 0..20_000 {
        indices.insert(index_of(regions.allocate_window(PD, WindowKind::Type1).unwrap()));
        keys.push(regions.register(PD, 0, 8, Access::ALL).unwrap());
    }
    assert_eq!(indices.len(), 20_000);
    // Two tables of these sizes, made without regard to each other, would meet about 24 times.
    assert!(keys.iter().all(|key| !indices.contains(&index_of(*key))));
}
