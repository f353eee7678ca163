//! What a program in C meets of librdmacm's interface for datagrams, at two devices of one process.
#![allow(
    missing_docs,
    dead_code,
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

use roci_verbs::abi::{self, attr_mask as mask, qp_state};
use roci_verbs::cm::abi::{AddrInfo, CmId, ConnParam, EventChannel, event, port_space, rai};
use roci_verbs::cm::channel::*;
use roci_verbs::cm::connect::*;
use roci_verbs::cm::endpoint::*;
use roci_verbs::cm::id::*;
use roci_verbs::cm::queue_pair::*;
use roci_verbs::cm::refused::*;
use roci_verbs::cm::resolve::*;
use roci_verbs::queue_pair::*;
use std::ffi::CString;
use std::mem::zeroed;
use std::ptr::{null, null_mut};

#[path = "common/ids.rs"]
mod ids;
use ids::{FAR, NEAR, address, attributes, devices, errno, gone, saying};

const Q_KEY: u32 = 0x0123_4567;

/// An event as it was, acknowledged.
#[derive(Debug)]
struct Told {
    status: i32,
    private_data: Vec<u8>,
    id: *mut CmId,
    listens: *mut CmId,
    /// The queue pair and its key, and the peer's GID.
    ud: (u32, u32, [u8; 8]),
}

unsafe fn next(channel: *mut EventChannel, expected: u32) -> Told {
    let mut got = null_mut();
    assert_eq!(rdma_get_cm_event(channel, &raw mut got), 0);
    let (it, ud) = (&*got, (*got).param.ud);
    assert_eq!(it.event, expected, "status {}", it.status);
    let private_data = if ud.private_data.is_null() {
        Vec::new()
    } else {
        std::slice::from_raw_parts(ud.private_data.cast(), ud.private_data_len.into()).to_vec()
    };
    let ud = (ud.qp_num, ud.qkey, ud.ah_attr.grh.dgid.raw[1]);
    let told = Told { status: it.status, private_data, id: it.id, listens: it.listen_id, ud };
    assert_eq!(rdma_ack_cm_event(got), 0);
    told
}

unsafe fn made(channel: *mut EventChannel) -> *mut CmId {
    let mut id = null_mut();
    assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::UDP), 0);
    assert_eq!(((*id).ps, (*id).qp_type), (port_space::UDP, abi::qp_type::UD));
    id
}

unsafe fn with_queue_pair(id: *mut CmId) -> u32 {
    let mut init = abi::QpInitAttr { qp_type: abi::qp_type::UD, ..attributes() };
    assert_eq!(rdma_create_qp(id, null_mut(), &mut init), 0);
    let mut told: (abi::QpAttr, abi::QpInitAttr) = (zeroed(), zeroed());
    assert_eq!(ibv_query_qp((*id).qp, &raw mut told.0, 0, &raw mut told.1), 0);
    assert_eq!((told.0.qp_state, told.0.qkey), (qp_state::RTS, Q_KEY), "it sends and receives at once");
    (*(*id).qp).qp_num
}

/// Who listens at a port of the far device, and who has been led there.
unsafe fn ends() -> (*mut EventChannel, *mut CmId, *mut EventChannel, *mut CmId) {
    devices();
    let channels = [(); 2].map(|()| rdma_create_event_channel());
    let ids = channels.map(|channel| made(channel));
    assert_eq!(rdma_bind_addr(ids[0], (&raw mut *Box::new(address(FAR, 0))).cast()), 0);
    assert_eq!(rdma_listen(ids[0], 4), 0);
    let port = u16::from_be(rdma_get_src_port(ids[0]));
    led(channels[1], ids[1], port);
    (channels[0], ids[0], channels[1], ids[1])
}

unsafe fn led(channel: *mut EventChannel, id: *mut CmId, port: u16) {
    let (mut from, mut to) = (address(NEAR, 0), address(FAR, port));
    assert_eq!(rdma_resolve_addr(id, (&raw mut from).cast(), (&raw mut to).cast(), 2000), 0);
    next(channel, event::ADDR_RESOLVED);
    assert_eq!(rdma_resolve_route(id, 2000), 0);
    next(channel, event::ROUTE_RESOLVED);
}

#[test]
fn who_asks_learns_the_queue_pair_and_its_key_and_both_what_the_other_says() {
    for has_queue_pair in [true, false] {
        unsafe {
            let (at_far, listens, at_near, near) = ends();
            with_queue_pair(near);
            assert_eq!(rdma_connect(near, &mut saying(b"who")), 0);
            let asked = next(at_far, event::CONNECT_REQUEST);
            let far = asked.id;
            assert_eq!((asked.listens, (*far).qp_type, asked.status), (listens, abi::qp_type::UD, 0));
            assert_eq!((asked.private_data.len(), &asked.private_data[..4]), (180, &b"who\0"[..]));
            assert_eq!(rdma_get_dst_port(far), rdma_get_src_port(near));
            assert_eq!(rdma_get_src_port(far), rdma_get_dst_port(near));
            let number = if has_queue_pair { with_queue_pair(far) } else { 0x33 };
            // The id's own, or the one that is named.
            let mut param = ConnParam { qp_num: 0x33, ..saying(b"me") };
            assert_eq!(rdma_accept(far, &mut param), 0);
            assert_eq!((rdma_accept(far, &mut param), errno()), (-1, libc::EINVAL), "once");
            let told = next(at_near, event::ESTABLISHED);
            assert_eq!((told.private_data.len(), &told.private_data[..3]), (136, &b"me\0"[..]));
            assert_eq!(told.ud, (number, Q_KEY, [0, 0, 0xff, 0xff, 127, 0, 5, 2]));
            assert_eq!((rdma_disconnect(near), errno()), (-1, libc::EINVAL), "nothing is connected");
            gone(null_mut(), far);
            gone(at_far, listens);
            gone(at_near, near);
        }
    }
}

#[test]
fn who_is_refused_hears_the_status_and_what_is_said_with_it() {
    unsafe {
        let (at_far, listens, at_near, near) = ends();
        assert_eq!(rdma_connect(near, null_mut()), 0);
        let far = next(at_far, event::CONNECT_REQUEST).id;
        assert_eq!((rdma_accept(far, null_mut()), errno()), (-1, libc::EINVAL), "no queue pair is named");
        assert_eq!(rdma_reject(far, b"not you".as_ptr().cast(), 7), 0);
        let told = next(at_near, event::UNREACHABLE);
        assert_eq!((told.id, told.status, &told.private_data[..8]), (near, 2, &b"not you\0"[..]));
        // Nobody listens any more.
        let port = u16::from_be(rdma_get_dst_port(near));
        gone(null_mut(), far);
        gone(at_far, listens);
        gone(null_mut(), near);
        let near = made(at_near);
        led(at_near, near, port);
        assert_eq!(rdma_connect(near, null_mut()), 0);
        assert_eq!(next(at_near, event::UNREACHABLE).status, 1);
        gone(at_near, near);
    }
}

#[test]
fn a_queue_pair_that_the_program_made_itself_is_brought_through_its_states() {
    unsafe {
        let (at_far, listens, at_near, near) = ends();
        for (to, expected) in [
            (qp_state::INIT, mask::STATE | mask::PKEY_INDEX | mask::PORT | mask::QKEY),
            (qp_state::RTR, mask::STATE),
            (qp_state::RTS, mask::STATE | mask::SQ_PSN),
        ] {
            let (mut attr, mut what) = (abi::QpAttr { qp_state: to, ..zeroed() }, 0);
            assert_eq!(rdma_init_qp_attr(near, &raw mut attr, &raw mut what), 0);
            assert_eq!((what, attr.qp_state, attr.qkey), (expected, to, Q_KEY));
        }
        gone(at_far, listens);
        gone(at_near, near);
    }
}

#[test]
fn ids_without_a_channel_wait_for_the_answer_and_ports_are_apart_from_those_of_connections() {
    devices();
    let found = |port: u16, flags: i32| unsafe {
        let [node, port] = [FAR.to_owned(), port.to_string()].map(|it| CString::new(it).unwrap());
        let mut hints: AddrInfo = zeroed();
        (hints.ai_flags, hints.ai_port_space) = (flags, port_space::UDP as i32);
        let mut found = null_mut();
        assert_eq!(rdma_getaddrinfo(node.as_ptr(), port.as_ptr(), &raw const hints, &raw mut found), 0);
        assert_eq!((*found).ai_qp_type, abi::qp_type::UD as i32);
        found
    };
    unsafe {
        // The same number, for connections.
        let (at_connections, connections, port) = ids::listening();
        let (at, mut listens) = (found(port, rai::PASSIVE), null_mut());
        assert_eq!(rdma_create_ep(&raw mut listens, at, null_mut(), &mut attributes()), 0);
        rdma_freeaddrinfo(at);
        assert_eq!(rdma_listen(listens, 0), 0);
        let server = listens.expose_provenance();
        let answers = std::thread::spawn(move || {
            let (listens, mut id) = (std::ptr::with_exposed_provenance_mut(server), null_mut());
            assert_eq!(rdma_get_request(listens, &raw mut id), 0);
            assert_eq!((*(*id).qp).state, qp_state::RTS, "made with what the listener was made with");
            assert_eq!(rdma_accept(id, null_mut()), 0);
            let number = (*(*id).qp).qp_num;
            rdma_destroy_ep(id);
            assert_eq!(rdma_get_request(listens, &raw mut id), 0);
            assert_eq!(rdma_reject(id, null(), 0), 0);
            rdma_destroy_ep(id);
            rdma_destroy_ep(listens);
            number
        });
        let asks = |is_granted: bool| {
            let (to, mut id) = (found(port, 0), null_mut());
            assert_eq!(rdma_create_ep(&raw mut id, to, null_mut(), &mut attributes()), 0);
            rdma_freeaddrinfo(to);
            assert_eq!(rdma_connect(id, null_mut()) == 0, is_granted);
            let ud = (*(*id).event).param.ud;
            rdma_destroy_ep(id);
            ud.qp_num
        };
        let told = asks(true);
        asks(false);
        assert_eq!(answers.join().unwrap(), told);
        gone(at_connections, connections);
    }
}

#[test]
fn there_is_no_multicast() {
    unsafe {
        let (at_far, listens, at_near, near) = ends();
        let mut group = address("239.1.1.1", 0);
        let joined = rdma_join_multicast(near, (&raw mut group).cast(), null_mut());
        assert_eq!((joined, errno()), (-1, libc::EOPNOTSUPP));
        let resolved = rdma_resolve_addr(near, null_mut(), (&raw mut group).cast(), 2000);
        assert_eq!((resolved, errno()), (-1, libc::EOPNOTSUPP));
        let mut id = null_mut();
        let refused = rdma_create_id(at_near, &raw mut id, null_mut(), port_space::IPOIB);
        assert_eq!((refused, errno()), (-1, libc::EOPNOTSUPP));
        gone(at_far, listens);
        gone(at_near, near);
    }
}
