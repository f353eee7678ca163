//! What extended attributes ask for: room, domains.
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
