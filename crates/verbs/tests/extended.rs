//! What extended attributes ask for.
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
