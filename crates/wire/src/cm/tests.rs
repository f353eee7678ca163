//! MADs of connection set-up, octet by octet and at random.

use super::*;
use crate::Cc;
use proptest::prelude::*;

fn request() -> Request {
    Request {
        local: 0x0102_0304,
        service: service(18_515),
        guid: 0x5254_00ff_fe77_0001,
        qpn: Qpn::new(0x11_2233),
        responder_resources: 1,
        initiator_depth: 2,
        psn: Psn::new(0x00ab_cdef),
        mtu: 3,
        retry_count: 7,
        rnr_retry_count: 6,
        traffic_class: 0x68,
        ack_timeout: 19,
        response_timeout: 20,
        max_retries: 15,
        service_type: 0,
        gids: (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED),
        endpoints: None,
        layout: Layout::Standard,
        private: Private::NONE,
    }
}

#[test]
fn a_request_has_its_fields_where_ibta_puts_them() {
    let addresses = ["10.77.0.1".parse().unwrap(), "10.77.0.11".parse().unwrap()];
    let [source, destination] = addresses;
    let endpoints = Some(Endpoints { port: 40_000, source, destination });
    let mad = Mad { transaction: 7, message: Message::Request(Request { endpoints, ..request() }) }.emit();
    assert_eq!(mad[..24], [1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0x10, 0, 0, 0, 0, 0, 0]);
    let at = |offset: usize, length: usize| &mad[24 + offset..24 + offset + length];
    assert_eq!(at(8, 8), [0, 0, 0, 0, 1, 6, 0x48, 0x53]);
    assert_eq!((at(32, 4), at(39, 1)), (&[0x11, 0x22, 0x33, 1][..], &[2][..]));
    assert_eq!(at(43, 5), [20 << 3, 0xab, 0xcd, 0xef, 20 << 3 | 7]);
    assert_eq!(at(48, 8), [0xff, 0xff, 3 << 4 | 6, 15 << 4, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(at(91, 5), [3, 0x68, 64, 0, 19 << 3]);
    assert_eq!(at(140, 4), [0, 0x40, 0x9c, 0x40]);
    assert_eq!((at(156, 4), at(172, 4)), (&[10, 77, 0, 1][..], &[10, 77, 0, 11][..]));
}

#[test]
fn private_data_go_to_the_last_octet_unless_a_layout_is_offered_there() {
    let full = Private::new(&[7; REQUEST_PRIVATE]).unwrap();
    let mad = Mad { transaction: 7, message: Message::Request(Request { private: full, ..request() }) };
    let octets = mad.emit();
    assert_eq!(octets[24 + 140 + 36..], [7; 56], "92 octets, 36 of which are the header of RDMA-CM");
    assert_eq!(Mad::parse(&octets), Ok(mad));
    let offer = Mad {
        transaction: 7,
        message: Message::Request(Request { layout: Layout::Irn, private: full, ..request() }),
    };
    let Message::Request(told) = Mad::parse(&offer.emit()).unwrap().message else { panic!() };
    assert_eq!((told.layout, &told.private.0[..48]), (Layout::Irn, &[7; 48][..]));
    assert_eq!(told.private.0[48..], [0; 8], "the offer is not the user's");
    assert_eq!((Private::<196>::room(Layout::Standard), Private::<196>::room(Layout::Irn)), (196, 188));
    assert!(Private::<56>::beside(Layout::Irn, &[1; 49]).is_none());
    assert!(Private::<56>::beside(Layout::Standard, &[1; 56]).is_some());
}

#[test]
fn other_management_is_not_ours() {
    let mut mad = Mad { transaction: 0, message: Message::ReadyToUse { local: 1, remote: 2 } }.emit();
    assert_eq!(Mad::parse(&mad[..255]), Err(PacketError::Truncated { got: 255, need: 256 }));
    mad[1] = 3;
    assert!(matches!(Mad::parse(&mad), Err(PacketError::Management { .. })));
    mad[1] = 7;
    mad[17] = 0x19;
    assert_eq!(Mad::parse(&mad), Err(PacketError::Management { got: 0x0107_0203_0019 }));
}

#[test]
fn who_gives_up_waiting_says_which_device_it_is() {
    let (of, private) = (Answered::Other, Private::NONE);
    let reject = Reject {
        local: 9,
        remote: 0,
        of,
        reason: reason::TIMEOUT,
        guid: Some(0x0102_0304_0506_0708),
        private,
    };
    let mad = Mad { transaction: 7, message: Message::Reject(reject) };
    let octets = mad.emit();
    assert_eq!(octets[24 + 8..24 + 22], [2 << 6, 8 << 1, 0, 4, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
    assert_eq!(Mad::parse(&octets), Ok(mad));
    let other =
        Mad { transaction: 7, message: Message::Reject(Reject { reason: reason::CONSUMER, ..reject }) };
    assert_eq!(other.emit()[24 + 9], 0, "other reasons have other additional information");
}

#[test]
fn ports_and_services_are_one() {
    assert_eq!(port_of(service(7174)), Some(7174));
    assert_eq!(port_of(0x0106_0000 << 8), None);
    assert_eq!((datagram_service(7174), port_of(datagram_service(7174))), (0x0111_1c06, None));
}

#[test]
fn who_asks_for_the_datagrams_of_a_service_says_what_linux_says_and_where() {
    let [source, destination] = ["10.77.0.1".parse().unwrap(), "10.77.0.11".parse().unwrap()];
    let request = ServiceRequest {
        id: 0x0102_0304,
        p_key: 0xffff,
        service: datagram_service(7174),
        endpoints: Some(Endpoints { port: 40_000, source, destination }),
        private: Private::new(&[7; SERVICE_REQUEST_PRIVATE]).unwrap(),
    };
    let mad = Mad { transaction: 7, message: Message::Resolve(request) };
    let octets = mad.emit();
    assert_eq!(octets[..24], [1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0x17, 0, 0, 0, 0, 0, 0]);
    let at = |offset: usize, length: usize| &octets[24 + offset..24 + offset + length];
    assert_eq!(at(0, 16), [1, 2, 3, 4, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 1, 0x11, 0x1c, 6]);
    assert_eq!(at(16, 4), [0, 0x40, 0x9c, 0x40]);
    assert_eq!((at(32, 4), at(48, 4)), (&[10, 77, 0, 1][..], &[10, 77, 0, 11][..]));
    assert_eq!(at(52, 180), [7; 180], "to the last octet");
    assert_eq!(Mad::parse(&octets), Ok(mad));
    assert_eq!(Addressee::of(&octets), Addressee::Service(datagram_service(7174)));
}

#[test]
fn the_answer_names_a_queue_pair_and_its_key_where_ibta_puts_them() {
    let reply = ServiceReply {
        id: 0x0102_0304,
        status: status::REJECTED,
        information_len: 2,
        information: Private::new(&[8, 9]).unwrap(),
        qpn: Qpn::new(0x11_2233),
        service: datagram_service(7174),
        q_key: 0x0123_4567,
        private: Private::new(&[7; SERVICE_REPLY_PRIVATE]).unwrap(),
    };
    let mad = Mad { transaction: 7, message: Message::Resolved(reply) };
    let mut octets = mad.emit();
    assert_eq!(octets[16..18], [0, 0x18]);
    let at = |offset: usize, length: usize| &octets[24 + offset..24 + offset + length];
    assert_eq!(at(0, 12), [1, 2, 3, 4, 2, 2, 0, 0, 0x11, 0x22, 0x33, 0]);
    assert_eq!(at(12, 12), [0, 0, 0, 0, 1, 0x11, 0x1c, 6, 1, 0x23, 0x45, 0x67]);
    assert_eq!((at(24, 3), at(95, 137)), (&[8, 9, 0][..], &[&[0][..], &[7; 136]].concat()[..]));
    assert_eq!(Mad::parse(&octets), Ok(mad));
    assert_eq!(Addressee::of(&octets), Addressee::Id(0x0102_0304));
    // More than there is room for is said to count: what there is does.
    octets[24 + 5] = 255;
    let Message::Resolved(told) = Mad::parse(&octets).unwrap().message else { panic!() };
    assert_eq!((told.information_len, told.information), (72, reply.information));
}

fn layouts() -> impl Strategy<Value = Layout> {
    let cc = (any::<bool>(), any::<bool>(), 0u8..17)
        .prop_filter_map("at most 16 words", |(time, int, own)| Cc::new(time, int, own).map(Layout::Cc));
    prop_oneof![
        Just(Layout::Standard),
        Just(Layout::Irn),
        Just(Layout::Srnic),
        Just(Layout::Ndp),
        Just(Layout::Homa),
        cc,
    ]
}

proptest! {
    #[test]
    fn each_layout_is_offered_and_understood(layout in layouts()) {
        prop_assert_eq!(layout_of(offer_of(layout)), layout);
    }

    #[test]
    fn what_parses_is_emitted_and_parsed_to_the_same(mut octets in proptest::collection::vec(any::<u8>(), 250..300), kind in 0x10u8..0x19) {
        octets[..4].copy_from_slice(&[1, 7, 2, 3]);
        (octets[16], octets[17]) = (0, kind);
        match Mad::parse(&octets) {
            Ok(mad) => prop_assert_eq!(Mad::parse(&mad.emit()), Ok(mad)),
            Err(error) => prop_assert!(octets.len() < MAD_LEN, "{error}"),
        }
    }
}
