//! What a program in C meets of librdmacm's interface, without one, at two devices of one process.
#![allow(
    missing_docs,
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    reason = "tests, of an interface whose conditions the manual pages have"
)]

use roci_verbs::abi::{self, qp_state};
use roci_verbs::cm::abi::{AddrInfo, CmId, ConnParam, event, option, port_space, rai};
use roci_verbs::cm::channel::*;
use roci_verbs::cm::connect::*;
use roci_verbs::cm::endpoint::*;
use roci_verbs::cm::id::*;
use roci_verbs::cm::queue_pair::*;
use roci_verbs::cm::refused::*;
use roci_verbs::cm::resolve::*;
use roci_verbs::completion::*;
use roci_verbs::memory::*;
use roci_verbs::queue_pair::*;
use std::ffi::CString;
use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::time::Duration;

#[path = "common/ids.rs"]
mod ids;
use ids::*;

#[test]
fn two_ids_connect_tell_each_other_what_they_are_told_to_and_either_ends_it() {
    for ends in [0, 1] {
        unsafe {
            let (at_far, listens, port) = listening();
            let (at_near, near) = resolved(FAR, port);
            assert_eq!(rdma_create_qp(near, null_mut(), &mut attributes()), 0);
            assert_eq!((*(*near).qp).state, qp_state::INIT);
            assert!(!(*near).send_cq_channel.is_null() && (*(*near).qp).send_cq == (*near).send_cq);
            assert_eq!(rdma_connect(near, &mut saying(b"who")), 0);

            let asked = next(at_far, event::CONNECT_REQUEST);
            let far = asked.id;
            assert_eq!((asked.listens, (*far).context.addr()), (listens, 7));
            // Each is told what the other has as its own counterpart.
            assert_eq!(asked.conn, (5, 3, (*(*near).qp).qp_num));
            assert_eq!((asked.private_data.len(), &asked.private_data[..4]), (56, &b"who\0"[..]));
            assert_eq!(rdma_get_dst_port(far), rdma_get_src_port(near));
            assert_eq!(rdma_get_src_port(far), rdma_get_dst_port(near));
            assert_eq!(rdma_create_qp(far, null_mut(), &mut attributes()), 0);
            assert_eq!(rdma_accept(far, &mut saying(b"me")), 0);

            let granted = next(at_near, event::ESTABLISHED);
            assert_eq!((granted.private_data.len(), &granted.private_data[..3]), (196, &b"me\0"[..]));
            assert_eq!((granted.conn.2, granted.conn.1), ((*(*far).qp).qp_num, 3));
            assert_eq!(next(at_far, event::ESTABLISHED).id, far);
            let mut told: (abi::QpAttr, abi::QpInitAttr) = (zeroed(), zeroed());
            assert_eq!(ibv_query_qp((*near).qp, &raw mut told.0, 0, &raw mut told.1), 0);
            assert_eq!((told.0.qp_state, told.0.dest_qp_num), (qp_state::RTS, (*(*far).qp).qp_num));
            assert_eq!((told.0.max_rd_atomic, told.0.max_dest_rd_atomic), (3, 3));
            send((*near).qp, (*far).qp);
            send((*far).qp, (*near).qp);

            let (ending, other) = if ends == 0 { (near, far) } else { (far, near) };
            let channel = |id: *mut CmId| if id == near { at_near } else { at_far };
            assert_eq!(rdma_disconnect(ending), 0);
            assert_eq!(next(channel(other), event::DISCONNECTED).id, other);
            assert_eq!(next(channel(ending), event::DISCONNECTED).id, ending);
            assert_eq!(((*(*ending).qp).state, (*(*other).qp).state), (qp_state::ERR, qp_state::RTS));
            assert_eq!(rdma_disconnect(other), 0);
            assert_eq!((*(*other).qp).state, qp_state::ERR);
            gone(null_mut(), far);
            gone(at_far, listens);
            gone(at_near, near);
        }
    }
}

#[test]
fn who_is_rejected_hears_why_and_what_the_other_says() {
    unsafe {
        let (at_far, listens, port) = listening();
        let (at_near, near) = asking(port);
        let asked = next(at_far, event::CONNECT_REQUEST).id;
        assert_eq!(rdma_reject(asked, b"not you".as_ptr().cast(), 7), 0);
        let told = next(at_near, event::REJECTED);
        // IBTA's number for a user who refuses.
        assert_eq!((told.status, told.private_data.len()), (28, 148));
        assert_eq!(&told.private_data[..8], b"not you\0");
        assert_eq!((*(*near).qp).state, qp_state::ERR);
        gone(null_mut(), asked);
        gone(at_near, near);

        // Who goes without an answer has rejected, and so has who is gone.
        for is_taken in [true, false] {
            let (at_far, listens, port) = listening();
            let (at_near, near) = asking(port);
            if is_taken {
                gone(null_mut(), next(at_far, event::CONNECT_REQUEST).id);
            } else {
                let mut waits = libc::pollfd { fd: (*at_far).fd, events: libc::POLLIN, revents: 0 };
                assert_eq!(libc::poll(&raw mut waits, 1, 10_000), 1);
            }
            gone(at_far, listens);
            assert_eq!(next(at_near, event::REJECTED).status, 28);
            gone(at_near, near);
        }
        gone(at_far, listens);

        // Nobody listens any more.
        let (at_near, near) = asking(port);
        assert_eq!(next(at_near, event::REJECTED).status, 8);
        gone(at_near, near);
    }
}

#[test]
fn who_asks_at_an_address_without_anybody_hears_so_after_all_retries() {
    unsafe {
        let (channel, id) = resolved("127.0.5.9", 7000);
        asks(id);
        assert_eq!(next(channel, event::UNREACHABLE).status, -libc::ETIMEDOUT);
        gone(channel, id);
    }
}

#[test]
fn addresses_that_no_device_has_or_leads_to_are_refused() {
    devices();
    unsafe {
        let (channel, mut id) = (rdma_create_event_channel(), null_mut());
        assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
        assert_eq!(rdma_bind_addr(id, (&raw mut *Box::new(address("203.0.113.8", 0))).cast()), -1);
        assert_eq!(errno(), libc::ENODEV);
        let mut v6: libc::sockaddr_in6 = zeroed();
        v6.sin6_family = libc::AF_INET6 as u16;
        v6.sin6_addr.s6_addr[15] = 1;
        // The system may have no such addresses at all.
        if rdma_resolve_addr(id, null_mut(), (&raw mut v6).cast(), 2000) == 0 {
            assert_eq!(next(channel, event::ADDR_ERROR).status, -libc::ENODEV);
        } else {
            assert!([libc::EADDRNOTAVAIL, libc::ENETUNREACH, libc::EAFNOSUPPORT].contains(&errno()));
        }
        assert_eq!((rdma_connect(id, null_mut()), errno()), (-1, libc::EINVAL));
        assert_eq!((rdma_resolve_route(id, 2000), errno()), (-1, libc::EINVAL));
        gone(channel, id);
        for space in [port_space::IPOIB, port_space::IB] {
            assert_eq!(rdma_create_id(null_mut(), &raw mut id, null_mut(), space), -1);
            assert_eq!(errno(), libc::EOPNOTSUPP);
        }
        assert_eq!(
            (rdma_join_multicast(null_mut(), null_mut(), null_mut()), errno()),
            (-1, libc::EOPNOTSUPP)
        );
    }
}

#[test]
fn the_loopback_is_no_device_where_none_is_named_there_and_hears_nothing() {
    devices();
    unsafe {
        let (channel, mut id) = (rdma_create_event_channel(), null_mut());
        assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
        assert_eq!(rdma_bind_addr(id, (&raw mut *Box::new(address("127.0.5.8", 0))).cast()), 0);
        assert!((*id).verbs.is_null());
        assert_eq!((rdma_listen(id, 1), errno()), (-1, libc::ENODEV));
        gone(channel, id);
    }
}

#[test]
fn who_listens_at_any_address_of_a_family_without_devices_hears_nothing() {
    devices();
    unsafe {
        let (channel, mut id) = (rdma_create_event_channel(), null_mut());
        assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
        let mut on = 1;
        let (level, name) = (option::LEVEL_ID, option::ID_AFONLY);
        assert_eq!(rdma_set_option(id, level, name, (&raw mut on).cast(), size_of::<i32>()), 0);
        let mut any: libc::sockaddr_in6 = zeroed();
        (any.sin6_family, any.sin6_port) = (libc::AF_INET6 as u16, 7009_u16.to_be());
        assert_eq!(rdma_bind_addr(id, (&raw mut any).cast()), 0);
        assert_eq!(rdma_listen(id, 1), 0);
        gone(channel, id);
    }
}

#[test]
fn who_comes_back_to_a_channel_that_another_has_destroyed_waits_as_who_was_there_before() {
    unsafe {
        let channel = rdma_create_event_channel();
        rdma_destroy_event_channel(channel);
        let place = channel.expose_provenance();
        let comes = std::thread::spawn(move || {
            let mut got = null_mut();
            rdma_get_cm_event(std::ptr::with_exposed_provenance_mut(place), &raw mut got)
        });
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!comes.is_finished(), "it would tell its program that it failed");
    }
}

/// An address as `rdma_getaddrinfo` finds it.
unsafe fn found(node: &str, port: u16, flags: i32) -> *mut AddrInfo {
    let [node, port] = [node.to_owned(), port.to_string()].map(|it| CString::new(it).unwrap());
    let mut hints: AddrInfo = zeroed();
    (hints.ai_flags, hints.ai_port_space) = (flags, port_space::TCP as i32);
    let mut found = null_mut();
    assert_eq!(rdma_getaddrinfo(node.as_ptr(), port.as_ptr(), &raw const hints, &raw mut found), 0);
    assert_eq!(((*found).ai_family, (*found).ai_qp_type), (libc::AF_INET, abi::qp_type::RC as i32));
    found
}

#[test]
fn ids_without_a_channel_wait_for_what_they_ask_for() {
    devices();
    unsafe {
        let (at, mut listens) = (found(FAR, 0, rai::PASSIVE), null_mut());
        assert_eq!(rdma_create_ep(&raw mut listens, at, null_mut(), &mut attributes()), 0);
        rdma_freeaddrinfo(at);
        assert_eq!(rdma_listen(listens, 0), 0);
        let port = u16::from_be(rdma_get_src_port(listens));
        let server = listens.expose_provenance();
        let answers = std::thread::spawn(move || {
            let (listens, mut id) = (std::ptr::with_exposed_provenance_mut(server), null_mut());
            // One is refused, and one is not.
            assert_eq!(rdma_get_request(listens, &raw mut id), 0);
            assert_eq!(rdma_reject(id, null(), 0), 0);
            rdma_destroy_ep(id);
            assert_eq!(rdma_get_request(listens, &raw mut id), 0);
            assert_eq!((*(*id).event).event, event::CONNECT_REQUEST);
            assert_eq!(rdma_accept(id, null_mut()), 0);
            assert_eq!((*(*id).event).event, event::ESTABLISHED);
            assert_eq!(rdma_disconnect(id), 0);
            assert_eq!((*(*id).event).event, event::DISCONNECTED);
            rdma_destroy_ep(id);
            rdma_destroy_ep(listens);
        });
        for is_accepted in [false, true] {
            let (to, mut id) = (found(FAR, port, 0), null_mut());
            assert_eq!(rdma_create_ep(&raw mut id, to, null_mut(), &mut attributes()), 0);
            rdma_freeaddrinfo(to);
            assert!(!(*id).qp.is_null());
            if is_accepted {
                assert_eq!(rdma_connect(id, null_mut()), 0);
                assert_eq!((*(*id).event).event, event::ESTABLISHED);
                // It may be over by now, and is afterwards.
                assert_eq!(rdma_disconnect(id), 0);
                assert_eq!(rdma_disconnect(id), 0);
            } else {
                assert_eq!((rdma_connect(id, null_mut()), errno()), (-1, libc::ECONNREFUSED));
            }
            rdma_destroy_ep(id);
        }
        answers.join().unwrap();
    }
}

/// Brings a queue pair that the program made through a state, as its id says.
unsafe fn brought(id: *mut CmId, qp: *mut abi::Qp, to: u32) {
    let (mut attr, mut what) = (abi::QpAttr { qp_state: to, ..zeroed() }, 0);
    assert_eq!(rdma_init_qp_attr(id, &raw mut attr, &raw mut what), 0);
    assert_eq!(ibv_modify_qp(qp, &raw mut attr, what), 0);
}

#[test]
fn queue_pairs_that_the_program_made_itself_are_connected_by_their_numbers() {
    unsafe {
        let (at_far, listens, port) = listening();
        let (at_near, near) = resolved(FAR, port);
        let own = |id: *mut CmId| {
            let cq = ibv_create_cq((*id).verbs, 8, null_mut(), null_mut(), 0);
            let mut init = abi::QpInitAttr { send_cq: cq, recv_cq: cq, ..attributes() };
            let qp = ibv_create_qp((*id).pd, &raw mut init);
            brought(id, qp, qp_state::INIT);
            (qp, cq)
        };
        let numbered = |qp: *mut abi::Qp| ConnParam { qp_num: (*qp).qp_num, ..saying(b"number") };
        let (near_qp, near_cq) = own(near);
        assert_eq!(rdma_connect(near, &mut numbered(near_qp)), 0);
        let asked = next(at_far, event::CONNECT_REQUEST);
        let far = asked.id;
        assert_eq!(asked.conn.2, (*near_qp).qp_num);
        let (far_qp, far_cq) = own(far);
        [qp_state::RTR, qp_state::RTS].into_iter().for_each(|to| brought(far, far_qp, to));
        assert_eq!(rdma_accept(far, &mut numbered(far_qp)), 0);
        assert_eq!(next(at_near, event::CONNECT_RESPONSE).conn.2, (*far_qp).qp_num);
        [qp_state::RTR, qp_state::RTS].into_iter().for_each(|to| brought(near, near_qp, to));
        assert_eq!(rdma_establish(near), 0);
        next(at_far, event::ESTABLISHED);
        send(near_qp, far_qp);
        send(far_qp, near_qp);
        assert_eq!(rdma_disconnect(far), 0);
        next(at_near, event::DISCONNECTED);
        next(at_far, event::DISCONNECTED);
        // The last that is heard, some seconds later, of ids that are still there.
        assert_eq!(next(at_near, event::TIMEWAIT_EXIT).id, near);
        assert_eq!(next(at_far, event::TIMEWAIT_EXIT).id, far);
        assert_eq!((rdma_disconnect(near), rdma_disconnect(far)), (0, 0));
        for (qp, cq) in [(near_qp, near_cq), (far_qp, far_cq)] {
            assert_eq!((ibv_destroy_qp(qp), ibv_destroy_cq(cq)), (0, 0));
        }
        gone(null_mut(), far);
        gone(at_far, listens);
        gone(at_near, near);
    }
}

#[test]
fn a_channel_is_polled_for_and_blocks_only_where_it_may() {
    unsafe {
        let (at_near, near) = resolved(FAR, 9);
        let (fd, mut got) = ((*at_near).fd, null_mut());
        assert_eq!(libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK), 0);
        let readable = || {
            let mut waits = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            libc::poll(&raw mut waits, 1, 0)
        };
        assert_eq!(readable(), 0);
        assert_eq!((rdma_get_cm_event(at_near, &raw mut got), errno()), (-1, libc::EAGAIN));
        assert_eq!(rdma_resolve_route(near, 2000), 0);
        assert_eq!(readable(), 1);
        // It goes with its id to another channel.
        let other = rdma_create_event_channel();
        assert_eq!(rdma_migrate_id(near, other), 0);
        assert_eq!((readable(), (*near).channel), (0, other));
        assert_eq!(next(other, event::ROUTE_RESOLVED).id, near);
        rdma_destroy_event_channel(at_near);
        gone(other, near);
    }
}

#[test]
fn who_is_asked_hears_that_the_peer_has_given_up() {
    unsafe {
        let (at_far, listens, port) = listening();
        let (at_near, near) = asking(port);
        let far = next(at_far, event::CONNECT_REQUEST).id;
        gone(at_near, near);
        let told = next(at_far, event::REJECTED);
        // IBTA's number for a time that is over.
        assert_eq!((told.id, told.status), (far, 4));
        assert_eq!((rdma_accept(far, &mut saying(b"late")), errno()), (-1, libc::EINVAL));
        gone(null_mut(), far);
        gone(at_far, listens);
    }
}

#[test]
fn who_ends_a_connection_and_asks_for_another_is_heard_of_in_this_order() {
    const TIMES: usize = 300;
    unsafe {
        let (at_far, listens, port) = listening();
        let asks = std::thread::spawn(move || {
            for _ in 0..TIMES {
                let (at_near, near) = asking(port);
                next(at_near, event::ESTABLISHED);
                gone(at_near, near);
            }
        });
        for _ in 0..TIMES {
            let far = next(at_far, event::CONNECT_REQUEST).id;
            accepts(far);
            assert_eq!(next(at_far, event::ESTABLISHED).id, far);
            assert_eq!(next(at_far, event::DISCONNECTED).id, far);
            gone(null_mut(), far);
        }
        asks.join().unwrap();
        gone(at_far, listens);
    }
}

#[test]
fn a_request_goes_where_who_listens_has_gone_before_it_is_taken() {
    unsafe {
        let (at_far, listens, port) = listening();
        let (at_near, near) = asking(port);
        let mut waits = libc::pollfd { fd: (*at_far).fd, events: libc::POLLIN, revents: 0 };
        assert_eq!(libc::poll(&raw mut waits, 1, 10_000), 1);
        let other = rdma_create_event_channel();
        assert_eq!(rdma_migrate_id(listens, other), 0);
        rdma_destroy_event_channel(at_far);
        (*listens).context = std::ptr::without_provenance_mut(8);
        let far = next(other, event::CONNECT_REQUEST).id;
        assert_eq!(((*far).channel, (*far).context.addr()), (other, 8));
        accepts(far);
        next(at_near, event::ESTABLISHED);
        assert_eq!(next(other, event::ESTABLISHED).id, far);
        gone(null_mut(), far);
        gone(other, listens);
        gone(at_near, near);
    }
}

#[test]
fn connections_are_of_a_queue_pair_and_by_a_way_and_memory_is_where_the_queue_pair_is() {
    unsafe {
        devices();
        let (channel, mut id) = (rdma_create_event_channel(), null_mut());
        assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
        let (mut from, mut to) = (address(NEAR, 0), address(FAR, 9));
        assert_eq!(rdma_resolve_addr(id, (&raw mut from).cast(), (&raw mut to).cast(), 2000), 0);
        next(channel, event::ADDR_RESOLVED);
        assert_eq!((rdma_connect(id, &mut saying(b"no way")), errno()), (-1, libc::EINVAL));
        assert_eq!(rdma_resolve_route(id, 2000), 0);
        next(channel, event::ROUTE_RESOLVED);
        assert_eq!((rdma_connect(id, null_mut()), errno()), (-1, libc::EINVAL));
        let own = ibv_alloc_pd((*id).verbs);
        assert!(own != (*id).pd);
        assert_eq!(rdma_create_qp(id, own, &mut attributes()), 0);
        assert_eq!(((*id).pd, (*(*id).qp).pd), (own, own));
        gone(channel, id);
        assert_eq!(ibv_dealloc_pd(own), 0);
    }
}

#[test]
fn an_id_that_was_not_bound_for_its_port_can_be_bound_elsewhere() {
    unsafe {
        let (at_far, listens, port) = listening();
        let (channel, mut id) = (rdma_create_event_channel(), null_mut());
        assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
        let bind = |at| rdma_bind_addr(id, (&raw mut *Box::new(address(at, port))).cast());
        assert_eq!((bind(FAR), errno()), (-1, libc::EADDRINUSE));
        assert!((*id).verbs.is_null() && rdma_get_src_port(id) == 0);
        assert_eq!(bind(NEAR), 0);
        assert!(!(*id).verbs.is_null() && (*id).verbs != (*listens).verbs);
        gone(channel, id);
        gone(at_far, listens);
    }
}

#[test]
fn an_id_does_not_go_before_its_events_are_acknowledged() {
    unsafe {
        let (channel, id) = resolved(FAR, 9);
        assert_eq!(rdma_resolve_route(id, 2000), 0);
        let mut got = null_mut();
        assert_eq!(rdma_get_cm_event(channel, &raw mut got), 0);
        let named = id.expose_provenance();
        let goes = std::thread::spawn(move || rdma_destroy_id(std::ptr::with_exposed_provenance_mut(named)));
        std::thread::sleep(Duration::from_millis(100));
        assert!(!goes.is_finished());
        assert_eq!(rdma_ack_cm_event(got), 0);
        assert_eq!(goes.join().unwrap(), 0);
        rdma_destroy_event_channel(channel);
    }
}

#[test]
fn options_are_taken_and_ports_are_shared_where_both_say_so() {
    devices();
    unsafe {
        let channel = rdma_create_event_channel();
        let made = |is_shared: bool| {
            let mut id = null_mut();
            assert_eq!(rdma_create_id(channel, &raw mut id, null_mut(), port_space::TCP), 0);
            let (mut on, size) = (i32::from(is_shared), size_of::<i32>());
            let name = option::ID_REUSEADDR;
            assert_eq!(rdma_set_option(id, option::LEVEL_ID, name, (&raw mut on).cast(), size), 0);
            id
        };
        let ids = [made(true), made(true), made(false)];
        let bind = |id| rdma_bind_addr(id, (&raw mut *Box::new(address(FAR, 7777))).cast());
        assert_eq!(ids.map(bind), [0, 0, -1]);
        assert_eq!(errno(), libc::EADDRINUSE);
        let mut exponent = 32u8;
        let set = |value: *mut u8| {
            rdma_set_option(ids[0], option::LEVEL_ID, option::ID_ACK_TIMEOUT, value.cast(), 1)
        };
        assert_eq!((set(&raw mut exponent), errno()), (-1, libc::EINVAL));
        exponent = 14;
        assert_eq!(set(&raw mut exponent), 0);
        assert_eq!((rdma_set_option(ids[0], 1, 1, null_mut(), 0), errno()), (-1, libc::EOPNOTSUPP));
        ids.into_iter().for_each(|id| gone(null_mut(), id));
        rdma_destroy_event_channel(channel);
    }
}

#[test]
fn both_ends_of_a_connection_have_the_class_that_is_set_at_one_unless_the_other_sets_its_own() {
    for (own, agreed) in [(None, 0x68), (Some(0x20u8), 0x20)] {
        unsafe {
            let set = |id, mut tos: u8| {
                assert_eq!(
                    rdma_set_option(id, option::LEVEL_ID, option::ID_TOS, (&raw mut tos).cast(), 1),
                    0
                );
            };
            let class = |id: *mut CmId| {
                let mut told: (abi::QpAttr, abi::QpInitAttr) = (zeroed(), zeroed());
                assert_eq!(ibv_query_qp((*id).qp, &raw mut told.0, 0, &raw mut told.1), 0);
                told.0.ah_attr.grh.traffic_class
            };
            let (at_far, listens, port) = listening();
            let (at_near, near) = resolved(FAR, port);
            set(near, 0x68);
            asks(near);
            let far = next(at_far, event::CONNECT_REQUEST).id;
            if let Some(own) = own {
                set(far, own);
            }
            accepts(far);
            next(at_near, event::ESTABLISHED);
            next(at_far, event::ESTABLISHED);
            assert_eq!([near, far].map(class), [0x68, agreed]);
            gone(null_mut(), far);
            gone(at_far, listens);
            gone(at_near, near);
        }
    }
}

#[test]
fn a_program_that_ends_says_so_to_whom_it_was_connected_with_and_to_whom_it_asked() {
    unsafe {
        if let Ok(port) = std::env::var(CHILD) {
            let asked = || {
                let (channel, id) = resolved_from(OTHER, FAR, port.parse().unwrap());
                asks(id);
                channel
            };
            let channel = asked();
            next(channel, event::ESTABLISHED);
            asked();
            // Until it has been taken note of.
            next(channel, event::DISCONNECTED);
            next(asked(), event::ESTABLISHED);
            std::process::exit(0);
        }
        let (channel, listens, port) = listening();
        let name = std::thread::current().name().unwrap().to_owned();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name])
            .env(CHILD, port.to_string())
            .spawn()
            .unwrap();
        let accepted = || {
            let id = next(channel, event::CONNECT_REQUEST).id;
            accepts(id);
            id
        };
        // Of different ids what comes at once comes in any order.
        let heard = |count: usize| {
            let told = |_| any(channel);
            let mut heard: Vec<_> = (0..count).map(told).map(|told| (told.event, told.id)).collect();
            heard.sort_unstable();
            heard
        };
        let first = accepted();
        let told = heard(2);
        let asked = told[0].1;
        assert_eq!(told, [(event::CONNECT_REQUEST, asked), (event::ESTABLISHED, first)]);
        gone(null_mut(), first);
        let second = accepted();
        let expected =
            [(event::REJECTED, asked), (event::ESTABLISHED, second), (event::DISCONNECTED, second)];
        assert_eq!(heard(3), expected);
        assert!(child.wait().unwrap().success());
        gone(null_mut(), asked);
        gone(null_mut(), second);
        gone(channel, listens);
    }
}
