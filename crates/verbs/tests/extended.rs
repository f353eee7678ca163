//! What extended attributes ask for: room, domains, times.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

mod ends;

use ends::*;
use roci_verbs::abi;
use roci_verbs::completion::*;
use roci_verbs::device::*;
use roci_verbs::memory::*;
use roci_verbs::queue_pair::*;
use std::ptr::null_mut;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[test]
fn a_completion_queue_is_asked_for_as_much_room_as_the_device_says_at_most() {
    unsafe {
        let context = open();
        let mut attr = std::mem::zeroed::<abi::DeviceAttr>();
        assert_eq!(ibv_query_device(context, &raw mut attr), 0);
        let most = attr.max_cqe;
        let make = |cqe| ibv_create_cq(context, cqe, null_mut(), null_mut(), 0);
        for cqe in [i32::MIN, 0, most + 1, i32::MAX] {
            assert!(make(cqe).is_null());
            assert_eq!(errno(), libc::EINVAL);
        }
        for cqe in [0, most.cast_unsigned() + 1, u32::MAX] {
            assert!(create_cq_ex(context, &mut cq_attributes(cqe, 0)).is_null());
            assert_eq!(errno(), libc::EINVAL);
        }
        let cq = make(most);
        assert_eq!((*cq).cqe, most);
        assert_eq!([1, 0, most + 1].map(|cqe| ibv_resize_cq(cq, cqe)), [0, libc::EINVAL, libc::EINVAL]);
        assert_eq!((*cq).cqe, 1);
        assert_eq!((ibv_destroy_cq(cq), ibv_close_device(context)), (0, 0));
    }
}

#[test]
fn a_parent_domain_is_the_protection_domain_that_it_was_made_from() {
    let [near, far] = connected();
    let calls = table(near.context);
    unsafe {
        let thread = |comp_mask| (calls.alloc_td)(near.context, &mut abi::TdInitAttr { comp_mask });
        assert!(thread(1).is_null());
        let td = thread(0);
        let make = |pd, td, comp_mask| {
            let (alloc_free, pd_context) = ([std::ptr::null(); 2], null_mut());
            let mut init = abi::ParentDomainInitAttr { pd, td, comp_mask, alloc_free, pd_context };
            (calls.alloc_parent_domain)(near.context, &raw mut init)
        };
        // Another device's; none; and with allocators.
        for (pd, comp_mask, error) in
            [(far.pd, 0, libc::EINVAL), (null_mut(), 0, libc::EINVAL), (near.pd, 1, libc::EOPNOTSUPP)]
        {
            assert!(make(pd, td, comp_mask).is_null());
            assert_eq!(errno(), error);
        }
        let [parent, without] = [make(near.pd, td, 0), make(near.pd, null_mut(), 0)];
        assert!(make(parent, null_mut(), 0).is_null(), "it is none of a parent domain");
        assert_eq!((ibv_dealloc_pd(without), (calls.dealloc_td)(td)), (0, libc::EBUSY));

        // A queue and a queue pair of it, with memory of the domain itself, and of it.
        let mut wanted = cq_attributes(16, 0);
        (wanted.comp_mask, wanted.parent_domain) = (2, near.pd);
        assert!(create_cq_ex(near.context, &mut wanted).is_null(), "that is no parent domain");
        wanted.parent_domain = parent;
        let cq = create_cq_ex(near.context, &mut wanted).cast::<abi::Cq>();
        let mut init = attributes(near.cq, abi::qp_type::RC, null_mut());
        let qp = ibv_create_qp(parent, &raw mut init);
        assert_eq!((*qp).pd, parent);
        initialize(qp);
        let mut own = [0_u8; 64];
        let mr = ibv_reg_mr(parent, own.as_mut_ptr().cast(), 64, RIGHTS);
        let of_it = abi::Sge { addr: (*mr).addr.expose_provenance() as u64, length: 64, lkey: (*mr).lkey };
        for (queue_pair, part) in [(qp, near.part(0, 64)), (qp, of_it), (near.qp, of_it)] {
            let (mut parts, mut bad) = ([part], null_mut());
            let mut wr = receive(1, &mut parts);
            assert_eq!(((*near.context).ops.post_recv)(queue_pair, &raw mut wr, &raw mut bad), 0);
        }
        // Octets go there which a peer sends.
        let mut parts = [far.part(0, 4)];
        let mut wr = request(2, abi::wr_opcode::SEND, &mut parts, SIGNALED);
        assert_eq!(far.post(&mut wr), 0);
        assert_eq!((far.completion().status, near.completion().status), (0, 0));

        for gone in [ibv_destroy_qp(qp), ibv_dereg_mr(mr)] {
            assert_eq!(gone, 0);
            assert_eq!(ibv_dealloc_pd(parent), libc::EBUSY);
        }
        assert_eq!((ibv_destroy_cq(cq), ibv_dealloc_pd(parent)), (0, 0));
        assert_eq!((calls.dealloc_td)(td), 0);
    }
    near.close();
    far.close();
}

#[test]
fn the_device_tells_its_clock_and_programs_of_any_age_as_much_as_they_have_room_for() {
    unsafe {
        let context = open();
        let mut ordinary = std::mem::zeroed::<abi::DeviceAttr>();
        assert_eq!(ibv_query_device(context, &raw mut ordinary), 0);
        let whole = size_of::<abi::DeviceAttrEx>();
        for size in [whole + 8, whole, std::mem::offset_of!(abi::DeviceAttrEx, tso_caps)] {
            let mut room = vec![u64::MAX; whole / 8 + 2];
            let attr = room.as_mut_ptr().cast::<abi::DeviceAttrEx>();
            assert_eq!((table(context).query_device_ex)(context, std::ptr::null(), attr, size), 0);
            let it = &*attr;
            assert_eq!((it.orig_attr.max_cqe, it.hca_core_clock), (ordinary.max_cqe, 1_000_000));
            assert_eq!((it.comp_mask, it.completion_timestamp_mask), (0, u64::MAX));
            if size >= whole {
                assert_eq!((it.cq_mod_caps, it.phys_port_cnt_ex), ([u16::MAX; 2], 1));
            }
            let octets = std::slice::from_raw_parts(attr.cast::<u8>(), 8 * room.len());
            assert!(octets[size..].iter().all(|octet| *octet == 0xff), "{size}: beyond is the program's");
        }
        let attr = (&raw mut ordinary).cast();
        let refused = (table(context).query_device_ex)(context, std::ptr::null(), attr, 8);
        assert_eq!((refused, table(context).post_srq_ops_to_create_wq[0].is_null()), (libc::EINVAL, true));
        assert_eq!(ibv_close_device(context), 0);
    }
}

/// What the device's clock says.
fn ticks(context: *mut abi::Context) -> u64 {
    let mut values = abi::ValuesEx { comp_mask: 1, raw_clock: unsafe { std::mem::zeroed() } };
    assert_eq!(unsafe { (table(context).query_rt_values)(context, &raw mut values) }, 0);
    assert_eq!((values.comp_mask, values.raw_clock.tv_sec), (1, 0));
    u64::try_from(values.raw_clock.tv_nsec).unwrap()
}

#[test]
fn completions_tell_when_they_came_by_the_clocks_of_the_device_and_of_the_system() {
    const TIMESTAMP: u64 = 1 << 7;
    const WALLCLOCK: u64 = 1 << 11;
    let [mut near, far] = connected();
    unsafe {
        let mut values = abi::ValuesEx { comp_mask: 2, raw_clock: std::mem::zeroed() };
        assert_eq!((table(near.context).query_rt_values)(near.context, &raw mut values), libc::EINVAL);
        for (flags, is_told) in [(TIMESTAMP | WALLCLOCK, true), (0x7f | WALLCLOCK, true), (0x7f, false)] {
            let ex = create_cq_ex(near.context, &mut cq_attributes(16, flags));
            let mut init = attributes(ex.cast(), abi::qp_type::RC, null_mut());
            let (first, ordinary) = (near.qp, near.cq);
            near.qp = ibv_create_qp(near.pd, &raw mut init);
            near.cq = ex.cast();
            let mut init = attributes(far.cq, abi::qp_type::RC, null_mut());
            let other = ibv_create_qp(far.pd, &raw mut init);
            let peer = End { qp: other, memory: Vec::new(), ..far };
            [&near, &peer].into_iter().for_each(End::initialize);
            near.connect(&peer);
            peer.connect(&near);
            let (begin, day) = (ticks(near.context), SystemTime::now());
            let mut times = vec![begin];
            for wr_id in [1, 2] {
                near.receive(wr_id, &mut []);
                let mut wr = request(9, abi::wr_opcode::SEND, &mut [], SIGNALED);
                assert_eq!((peer.post(&mut wr), peer.completion().status), (0, 0));
                let (mut attr, started) = (abi::PollCqAttr { comp_mask: 0 }, Instant::now());
                while ((*ex).start_poll)(ex, &raw mut attr) != 0 {
                    assert!(started.elapsed() < Duration::from_secs(20), "a completion comes");
                }
                let wall = Duration::from_nanos(((*ex).read_completion_wallclock_ns)(ex));
                times.push(((*ex).read_completion_ts)(ex));
                ((*ex).end_poll)(ex);
                if is_told {
                    // Tests are not run while somebody sets the clock.
                    let (from, to) =
                        (day.duration_since(UNIX_EPOCH), SystemTime::now().duration_since(UNIX_EPOCH));
                    let slack = Duration::from_millis(100);
                    assert!((from.unwrap() - slack..to.unwrap() + slack).contains(&wall), "{wall:?}");
                } else {
                    assert_eq!(wall, Duration::ZERO);
                }
            }
            times.push(ticks(near.context));
            if is_told {
                assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
            } else {
                assert_eq!(times[1..3], [0, 0]);
            }
            assert_eq!((ibv_destroy_qp(other), ibv_destroy_qp(near.qp), ibv_destroy_cq(near.cq)), (0, 0, 0));
            (near.qp, near.cq) = (first, ordinary);
        }
    }
    near.close();
    far.close();
}
