//! Connection set-up between two devices, over UDP sockets at two loopback addresses and over a wire in memory.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::cm::{CmError, ConnParam, Connection, ConnectionManager, Listener};
use roci_endpoint::perf;
use roci_endpoint::ping::{self, PingError, Watch};
use roci_endpoint::{
    Access, Backend, Change, CompletionQueue, Device, DeviceConfig, Faults, MemoryWire, Mtu, QpState,
    QueuePair, QueuePairError, Recovery, RecvWr, RemoteMemory, SendWr, Status, Transition,
};
use roci_wire::Layout;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

const WAIT: Duration = Duration::from_secs(20);

fn in_memory(wire: &MemoryWire, address: &str) -> Device {
    let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
    Device::open_with(address.parse().unwrap(), config).unwrap()
}

/// Connects two queue pairs, moves a message in each direction, and ends the connection.
fn talk(near: &Device, far: &Device, param: &ConnParam) {
    let (asking, answering) = (ConnectionManager::new(near).unwrap(), ConnectionManager::new(far).unwrap());
    let listener = answering.listen(7000).unwrap();
    assert!(matches!(answering.listen(7000), Err(CmError::InUse(7000))));
    let to = SocketAddr::new(far.address(), 7000);
    std::thread::scope(|scope| {
        let end = |device: &Device| {
            let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
            let qp = pd.create_qp(&cq, &cq).build().unwrap();
            let region = pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE).unwrap();
            qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
            (qp, cq, region)
        };
        let far = scope.spawn(move || {
            let request = listener.get_request(WAIT).unwrap().unwrap();
            assert_eq!(&request.private_data()[..6], b"hello\0");
            let (qp, cq, _region) = end(far);
            let param = ConnParam { private_data: b"welcome".to_vec(), ..ConnParam::default() };
            let connection = request.accept(&qp, &param).unwrap();
            connection.wait_established(WAIT).unwrap();
            let heard = cq.wait(WAIT).unwrap();
            assert_eq!((heard.is_ok(), heard.byte_len), (true, 4));
            qp.post_send(SendWr::send_inline(b"pong!")).unwrap();
            assert!(cq.wait(WAIT).unwrap().is_ok());
            assert!(connection.wait_disconnected(WAIT));
        });
        let (qp, cq, _region) = end(near);
        let param = ConnParam { private_data: b"hello".to_vec(), ..param.clone() };
        let connection = asking.connect(&qp, to, &param).unwrap();
        assert_eq!(qp.state(), QpState::ReadyToSend);
        assert_eq!(&connection.private_data()[..8], b"welcome\0");
        qp.post_send(SendWr::send_inline(b"ping")).unwrap();
        let lengths = [cq.wait(WAIT).unwrap(), cq.wait(WAIT).unwrap()].map(|it| (it.is_ok(), it.byte_len));
        assert!(lengths.contains(&(true, 5)), "{lengths:?}");
        connection.disconnect();
        assert!(connection.wait_disconnected(WAIT));
        far.join().unwrap();
    });
}

#[test]
fn two_devices_connect_over_sockets() {
    let open = |address: &str| Device::open(address.parse().unwrap()).unwrap();
    talk(&open("127.0.0.21"), &open("127.0.0.22"), &ConnParam::default());
}

#[test]
fn a_smaller_mtu_is_agreed_on_and_what_is_lost_comes_again() {
    let wire = MemoryWire::new(3);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let param = ConnParam { path_mtu: Some(Mtu::Mtu256), ..ConnParam::default() };
    talk(&near, &far, &param);
    // Eight attempts in a row are lost once in a million times.
    wire.set_faults(Faults { loss: 100, duplicate: 200, ..Faults::default() });
    talk(&near, &far, &param);
}

#[test]
fn many_connections_that_end_at_once_are_all_heard_to_end_though_who_ended_them_is_gone() {
    const MANY: usize = 300;
    let wire = MemoryWire::new(4);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let queue_pairs = |device: &Device| {
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qps: Vec<_> = (0..MANY).map(|_| pd.create_qp(&cq, &cq).build().unwrap()).collect();
        qps
    };
    let param = ConnParam::default();
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| {
            let accept = |qp| {
                let connection = listener.get_request(WAIT).unwrap().unwrap().accept(qp, &param).unwrap();
                connection.wait_established(WAIT).unwrap();
                connection
            };
            let qps = queue_pairs(&far);
            let connections: Vec<_> = qps.iter().map(accept).collect();
            // All say farewell, and what is not said then is never said: nobody is left who would say it again.
            drop((connections, answering, listener));
        });
        let qps = queue_pairs(&near);
        let connections: Vec<_> = qps.iter().map(|qp| asking.connect(qp, to, &param).unwrap()).collect();
        ending.join().unwrap();
        let ended = connections.iter().filter(|connection| connection.wait_disconnected(WAIT)).count();
        assert_eq!(ended, MANY);
    });
}

/// A queue pair with its completion queue.
fn queue_pair(device: &Device) -> (QueuePair, CompletionQueue) {
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    (pd.create_qp(&cq, &cq).build().unwrap(), cq)
}

/// Connects `near` to `far`, of which the latter is asked at port 7000; both wait for it.
fn met(
    near: &ConnectionManager,
    far: &ConnectionManager,
    to: IpAddr,
    qps: [&QueuePair; 2],
) -> [Connection; 2] {
    let listener = far.listen(7000).unwrap();
    let param = ConnParam { ack_timeout: Some(10), ..ConnParam::default() };
    let mut asked = near.request(qps[0], SocketAddr::new(to, 7000), &param).unwrap();
    let accepted = listener.get_request(WAIT).unwrap().unwrap().accept(qps[1], &param).unwrap();
    let connection = asked.wait(qps[0], WAIT).unwrap().unwrap();
    accepted.wait_established(WAIT).unwrap();
    [connection, accepted]
}

const NOWHERE: RemoteMemory = RemoteMemory { address: 0, rkey: 0 };

#[test]
fn a_connection_whose_queue_pair_has_failed_is_over_at_either_end() {
    let wire = MemoryWire::new(11);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let ((active, sent), (passive, _)) = (queue_pair(&near), queue_pair(&far));
    let [asked, accepted] = met(&asking, &answering, far.address(), [&active, &passive]);
    active.post_send(SendWr::write_inline(&[], NOWHERE)).unwrap();
    assert!(sent.wait(WAIT).unwrap().is_ok());
    assert!(!asked.is_disconnected() && !accepted.is_disconnected());
    // A request without rights fails both ends, and the one that was asked has nothing that could be completed.
    active.post_send(SendWr::write_inline(&[1], NOWHERE)).unwrap();
    assert_eq!(sent.wait(WAIT).unwrap().status, Status::RemoteAccessError);
    assert!(asked.is_disconnected(), "at once");
    assert!(accepted.wait_disconnected(WAIT));
    assert_eq!(passive.state(), QpState::Error);
}

/// Nobody looks whether they have failed: who waits hears of it as it happens, or never.
#[test]
fn who_waits_for_the_end_of_one_connection_of_many_hears_that_its_queue_pair_has_failed() {
    const MANY: usize = 300;
    const FAILURES: usize = 30;
    let wire = MemoryWire::new(15);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let ends = [&near, &far].map(|device| (device.alloc_pd(), device.create_cq().unwrap()));
    let connect = |_| {
        let qps = ends.each_ref().map(|(pd, cq)| pd.create_qp(cq, cq).build().unwrap());
        (met(&asking, &answering, far.address(), [&qps[0], &qps[1]]), qps)
    };
    let all: Vec<_> = (0..MANY).map(connect).collect();
    for (connections, [active, _]) in all.iter().step_by(MANY / FAILURES) {
        std::thread::scope(|scope| {
            let waits = connections.each_ref().map(|end| scope.spawn(|| end.wait_disconnected(WAIT)));
            active.post_send(SendWr::write_inline(&[1], NOWHERE)).unwrap();
            assert!(waits.into_iter().all(|wait| wait.join().unwrap()));
        });
    }
    let over = all.iter().filter(|(connections, _)| connections[1].is_disconnected()).count();
    assert_eq!(over, FAILURES, "and the others go on");
}

#[test]
fn who_waits_for_the_end_of_a_connection_hears_that_its_peer_no_longer_answers() {
    let wire = MemoryWire::new(12);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let ((active, _sent), (passive, _)) = (queue_pair(&near), queue_pair(&far));
    let [asked, _accepted] = met(&asking, &answering, far.address(), [&active, &passive]);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| asked.wait_disconnected(WAIT));
        wire.set_faults(Faults { loss: 1000, ..Faults::default() });
        std::thread::sleep(Duration::from_millis(200));
        assert!(!waits.is_finished(), "nothing is outstanding that could tell");
        active.post_send(SendWr::write_inline(&[], NOWHERE)).unwrap();
        assert!(waits.join().unwrap());
    });
}

#[test]
fn a_queue_pair_that_rdma_cm_cannot_connect_is_refused_at_once() {
    let wire = MemoryWire::new(13);
    let [near, far, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|address| in_memory(&wire, address));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let [(stranger, _), (active, _), (other, _), (passive, _)] = [&third, &near, &near, &far].map(queue_pair);
    let (to, param) = (SocketAddr::new(far.address(), 7000), ConnParam::default());
    let is_foreign = |error: CmError| matches!(error, CmError::QueuePair(QueuePairError::Foreign(_)));
    let listener = answering.listen(7000).unwrap();
    assert!(is_foreign(asking.request(&stranger, to, &param).unwrap_err()));
    // What was refused asked nobody, and the next that is heard of is another.
    let mut asked = asking.request(&active, to, &param).unwrap();
    assert!(is_foreign(asked.wait(&stranger, WAIT).unwrap_err()));
    let another = asked.wait(&other, WAIT).unwrap_err();
    assert!(
        matches!(another, CmError::Another { asked, given } if (asked, given) == (active.qp_num(), other.qp_num()))
    );
    assert_eq!(other.state(), QpState::Init);
    let request = listener.get_request(WAIT).unwrap().unwrap();
    assert!(is_foreign(request.accept(&stranger, &param).unwrap_err()));
    let refused = asked.wait(&active, WAIT).unwrap_err();
    assert!(matches!(refused, CmError::Rejected { reason: 28, .. }), "{refused}");
    drop(listener);
    let [_asked, _accepted] = met(&asking, &answering, far.address(), [&active, &passive]);
    let listener = answering.listen(7000).unwrap();
    let again = asking.request(&active, to, &param).unwrap_err();
    assert!(matches!(again, CmError::QueuePair(QueuePairError::NotInit(QpState::ReadyToSend))), "{again}");
    assert!(again.to_string().contains("make another"), "{again}");
    let _asked = asking.request(&other, to, &param).unwrap();
    let again = listener.get_request(WAIT).unwrap().unwrap().accept(&passive, &param).unwrap_err();
    assert!(matches!(again, CmError::QueuePair(QueuePairError::NotInit(QpState::ReadyToSend))), "{again}");
}

#[test]
fn queue_pairs_carry_data_after_their_connection_has_ended_until_they_are_ended_themselves() {
    let wire = MemoryWire::new(14);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let ((active, sent), (passive, received)) = (queue_pair(&near), queue_pair(&far));
    let [asked, accepted] = met(&asking, &answering, far.address(), [&active, &passive]);
    asked.disconnect();
    assert!(asked.wait_disconnected(WAIT) && accepted.wait_disconnected(WAIT));
    assert_eq!([active.state(), passive.state()], [QpState::ReadyToSend; 2]);
    (0..2).for_each(|number| passive.post_recv(RecvWr::empty().wr_id(number)).unwrap());
    active.post_send(SendWr::send_inline(&[]).imm(7)).unwrap();
    assert!(sent.wait(WAIT).unwrap().is_ok());
    assert_eq!(received.wait(WAIT).unwrap().imm(), Some(7));
    let fail = Change { transition: Some(Transition::Fail), ..Change::default() };
    passive.modify(&fail).unwrap();
    let flushed = received.wait(WAIT).unwrap();
    assert_eq!((flushed.wr_id, flushed.status), (1, Status::WorkRequestFlushed));
}

#[test]
fn who_listens_at_port_0_has_a_free_one_and_is_found_there() {
    let wire = MemoryWire::new(16);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listeners = [0, 0].map(|port| answering.listen(port).unwrap());
    let ports = listeners.each_ref().map(Listener::port);
    assert!(ports[0] != ports[1] && ports.iter().all(|port| *port >= 0x8000), "{ports:?}");
    assert!(matches!(answering.listen(ports[0]), Err(CmError::InUse(port)) if port == ports[0]));
    let ((active, _), (passive, _)) = (queue_pair(&near), queue_pair(&far));
    let param = ConnParam::default();
    let mut asked = asking.request(&active, SocketAddr::new(far.address(), ports[1]), &param).unwrap();
    let _accepted = listeners[1].get_request(WAIT).unwrap().unwrap().accept(&passive, &param).unwrap();
    assert!(asked.wait(&active, WAIT).unwrap().is_some());
}

#[test]
fn a_rejection_tells_why() {
    let wire = MemoryWire::new(4);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let (pd, cq) = (near.alloc_pd(), near.create_cq().unwrap());
    let qp = pd.create_qp(&cq, &cq).build().unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let refused = asking.connect(&qp, to, &ConnParam::default());
    assert!(matches!(refused, Err(CmError::Rejected { reason: 8, .. })), "{refused:?}");
    let listener = answering.listen(7000).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| listener.get_request(WAIT).unwrap().unwrap().reject(b"full").unwrap());
        let refused = asking.connect(&qp, to, &ConnParam::default());
        let Err(CmError::Rejected { reason: 28, private_data, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(&private_data[..5], b"full\0");
    });
    assert_eq!(qp.state(), QpState::Init);
}

#[test]
fn a_header_layout_is_offered_and_has_to_be_accepted() {
    let wire = MemoryWire::new(5);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let make = |device: &Device, is_irn: bool| {
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let builder = pd.create_qp(&cq, &cq);
        let builder = if is_irn { builder.recovery(Recovery::Irn, Layout::Irn) } else { builder };
        builder.build().unwrap()
    };
    for knows in [true, false] {
        std::thread::scope(|scope| {
            let (listener, far) = (&listener, &far);
            let answer = scope.spawn(move || {
                let request = listener.get_request(WAIT).unwrap().unwrap();
                assert_eq!(request.layout(), Layout::Irn);
                let qp = make(far, knows);
                request.accept(&qp, &ConnParam::default()).map(|connection| (qp, connection))
            });
            let asked = asking.connect(&make(&near, true), to, &ConnParam::default());
            assert_eq!(asked.is_ok(), knows, "{asked:?}");
            let answered = answer.join().unwrap();
            assert_eq!(answered.is_ok(), knows);
        });
    }
}

#[test]
fn queue_pair_1_is_there_once() {
    let wire = MemoryWire::new(6);
    let device = in_memory(&wire, "10.0.0.1");
    let first = ConnectionManager::new(&device).unwrap();
    let second = ConnectionManager::new(&device);
    assert!(matches!(second, Err(CmError::QueuePair(QueuePairError::Management))), "{second:?}");
    drop(first);
    ConnectionManager::new(&device).unwrap();
}

/// Says when a server waits, whom it refused, and how many pings were done.
#[derive(Default)]
struct Notes {
    waiting: AtomicU32,
    refused: AtomicU32,
    pings: AtomicU32,
    stopped: AtomicBool,
}

impl Watch for Notes {
    fn waiting(&self, _at: std::net::SocketAddr) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
    }

    fn ping(&self, _: u64, _: &[u8], _: f64) {
        self.pings.fetch_add(1, Ordering::SeqCst);
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn refused(&self, _: SocketAddr, _: &CmError) {
        self.refused.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits until `done`, for as long as is reasonable.
fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..WAIT.as_millis() / 5 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what}: not within {WAIT:?}");
}

fn pings(host: Option<&str>, device: &str) -> ping::Options {
    ping::Options {
        host: host.map(|host| host.parse().unwrap()),
        port: 7174,
        device: device.parse::<IpAddr>().unwrap(),
        count: 50,
        size: 5000,
        validate: true,
        persistent: false,
    }
}

#[test]
fn pings_go_to_and_fro() {
    let notes = Notes::default();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| ping::run(&pings(None, "127.0.0.32"), &notes).unwrap());
        until("the server waits", || notes.waiting.load(Ordering::SeqCst) > 0);
        let client = ping::run(&pings(Some("127.0.0.32:7174"), "127.0.0.31"), &Notes::default());
        assert_eq!(client.unwrap(), 50);
        assert_eq!(server.join().unwrap(), 50);
    });
}

#[test]
fn a_server_of_pings_asks_for_no_sign_of_life_while_something_else_of_it_is_not_answered() {
    let notes = Notes::default();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| ping::run(&pings(None, "127.0.3.7"), &notes));
        until("the server waits", || notes.waiting.load(Ordering::SeqCst) > 0);
        let device = Device::open("127.0.3.8".parse().unwrap()).unwrap();
        let (manager, pd) = (ConnectionManager::new(&device).unwrap(), device.alloc_pd());
        let cq = device.create_cq().unwrap();
        let qp = pd.create_qp(&cq, &cq).access(Access::ALL).build().unwrap();
        let region = pd.reg_mr(vec![0; 64], Access::ALL).unwrap();
        let to = "127.0.3.7:7174".parse().unwrap();
        let connection = manager.connect(&qp, to, &ConnParam::default()).unwrap();
        let first = qp.query().unwrap().receive_psn;
        // Where our text is. The server READs it, and SENDs that it has it, which nothing here takes for longer than it waits before it asks.
        let RemoteMemory { address, rkey } = region.remote();
        let told = [&address.to_be_bytes()[..], &rkey.to_be_bytes(), &64u32.to_be_bytes()].concat();
        qp.post_send(SendWr::send_inline(&told)).unwrap();
        assert!(cq.wait(WAIT).unwrap().is_ok());
        std::thread::sleep(Duration::from_millis(1500));
        qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
        assert!(cq.wait(WAIT).unwrap().is_ok());
        let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let begin = now();
        std::thread::sleep(Duration::from_millis(100));
        let taken = qp.query().unwrap().receive_psn;
        // After a second of silence from here on it may ask.
        assert!(taken == first.plus(2) || now() - begin > Duration::from_millis(900), "{taken:?} {first:?}");
        connection.disconnect();
        assert_eq!(server.join().unwrap().unwrap(), 0, "a client that leaves has had enough");
    });
}

/// More pings than anybody waits for.
const ENDLESS: u64 = 200_000;

/// Lets two ends ping, and stops one of them in the middle; gives how the server and the client ended.
fn stopped(devices: [&str; 2], stop: impl Fn(&Notes, &Notes)) -> [Result<u64, PingError>; 2] {
    let (far, near) = (Notes::default(), Notes::default());
    let endless = |host, device| ping::Options { count: ENDLESS, ..pings(host, device) };
    let address = format!("{}:7174", devices[0]);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| ping::run(&endless(None, devices[0]), &far));
        until("the server waits", || far.waiting.load(Ordering::SeqCst) > 0);
        let client = scope.spawn(|| ping::run(&endless(Some(&address), devices[1]), &near));
        until("pings are done", || near.pings.load(Ordering::SeqCst) > 100);
        stop(&far, &near);
        [server.join().unwrap(), client.join().unwrap()]
    })
}

#[test]
fn who_pings_on_and_on_can_be_stopped() {
    let stop_client = |_: &Notes, near: &Notes| near.stopped.store(true, Ordering::SeqCst);
    let [server, client] = stopped(["127.0.3.1", "127.0.3.2"], stop_client).map(Result::unwrap);
    assert!(client < ENDLESS && (client..=client + 1).contains(&server), "{client} and {server}");
}

#[test]
fn a_server_that_is_pinged_on_and_on_can_be_stopped() {
    let stop_server = |far: &Notes, _: &Notes| far.stopped.store(true, Ordering::SeqCst);
    let [server, client] = stopped(["127.0.3.3", "127.0.3.4"], stop_server);
    assert!(server.unwrap() < ENDLESS);
    assert!(matches!(client, Err(PingError::Left(100..))), "{client:?}");
}

/// A server that takes what a client tells first, and is gone without a word, as one that was killed.
fn vanish(device: &str) {
    let device = Device::open(device.parse().unwrap()).unwrap();
    let manager = ConnectionManager::new(&device).unwrap();
    let listener = manager.listen(7174).unwrap();
    let request = listener.get_request(WAIT).unwrap().unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let qp = pd.create_qp(&cq, &cq).build().unwrap();
    let place = pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE).unwrap();
    qp.post_recv(RecvWr::new(place.buffer(0..64).unwrap())).unwrap();
    std::mem::forget(request.accept(&qp, &ConnParam::default()).unwrap());
    assert!(cq.wait(WAIT).unwrap().is_ok());
    // What it has been told is acknowledged.
    std::thread::sleep(Duration::from_millis(100));
}

#[test]
fn that_a_server_is_gone_is_noticed_while_nothing_is_asked_of_it() {
    let near = Notes::default();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| vanish("127.0.3.5"));
        let client = scope.spawn(|| {
            let ping = || ping::run(&pings(Some("127.0.3.5:7174"), "127.0.3.6"), &near);
            (0..100).map(|_| ping()).find(|ended| !matches!(ended, Err(PingError::Connect(_))))
        });
        server.join().unwrap();
        let is_over = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            client.is_finished()
        });
        near.stopped.store(true, Ordering::SeqCst);
        let client = client.join().unwrap();
        let lost = Status::TransportRetryCounterExceeded;
        assert!(
            is_over && matches!(&client, Some(Err(PingError::Completion(status))) if *status == lost),
            "{client:?}"
        );
    });
}

/// Asks for connections that cannot be made, and for one that it does not want: what anybody may send.
fn pester(device: &str, server: &str) {
    let device = Device::open(device.parse().unwrap()).unwrap();
    let manager = ConnectionManager::new(&device).unwrap();
    let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
    let to = server.parse().unwrap();
    let odd = pd.create_qp(&cq, &cq).recovery(Recovery::Irn, Layout::Irn).build().unwrap();
    for _ in 0..3 {
        let refused = manager.connect(&odd, to, &ConnParam::default());
        assert!(matches!(refused, Err(CmError::Rejected { .. })), "{refused:?}");
    }
    let plain = pd.create_qp(&cq, &cq).build().unwrap();
    drop(manager.request(&plain, to, &ConnParam::default()).unwrap());
}

#[test]
fn a_request_that_cannot_be_accepted_ends_no_server() {
    let notes = Notes::default();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| ping::run(&pings(None, "127.0.0.34"), &notes).unwrap());
        until("the server waits", || notes.waiting.load(Ordering::SeqCst) > 0);
        pester("127.0.0.35", "127.0.0.34:7174");
        until("the server has refused", || notes.refused.load(Ordering::SeqCst) >= 3);
        let client = ping::run(&pings(Some("127.0.0.34:7174"), "127.0.0.33"), &Notes::default());
        assert_eq!(client.unwrap(), 50);
        assert_eq!(server.join().unwrap(), 50, "and not the one that was given up");
    });
}

struct Quiet(AtomicU32);

impl perf::Watch for Quiet {
    fn event(&self, event: perf::Event<'_>) {
        if matches!(event, perf::Event::Waiting(_)) {
            self.0.store(1, Ordering::SeqCst);
        }
    }

    fn stopped(&self) -> bool {
        false
    }
}

#[test]
fn nor_one_of_perftests_tests() {
    let device = Some("127.0.0.37".parse().unwrap());
    let test = perf::Test { verb: perf::Verb::Write, metric: perf::Metric::Bandwidth };
    let options = perf::Options { iterations: 20, rdma_cm: true, device, ..perf::Options::new(test) };
    let quiet = Quiet(AtomicU32::new(0));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| perf::run(&options, &quiet));
        until("the server waits", || quiet.0.load(Ordering::SeqCst) > 0);
        pester("127.0.0.38", &format!("127.0.0.37:{}", options.port));
        let host = Some("127.0.0.37".to_owned());
        let near = perf::Options { host, device: Some("127.0.0.36".parse().unwrap()), ..options.clone() };
        perf::run(&near, &Quiet(AtomicU32::new(0))).unwrap();
        server.join().unwrap().unwrap();
    });
}

/// Notes when a server waits, and of whom it tells.
#[derive(Default)]
struct Porter(AtomicBool, Mutex<Vec<String>>);

impl perf::Watch for Porter {
    fn event(&self, event: perf::Event<'_>) {
        match event {
            perf::Event::Waiting(_) => self.0.store(true, Ordering::SeqCst),
            perf::Event::Stranger { deed, .. } => self.1.lock().unwrap().push(deed.to_owned()),
            _ => {}
        }
    }
}

#[test]
fn nor_does_who_is_connected_and_leaves_says_nonsense_or_nothing() {
    let server: IpAddr = "127.0.0.61".parse().unwrap();
    let device = Some(server);
    let test = perf::Test { verb: perf::Verb::Write, metric: perf::Metric::Bandwidth };
    let patience = Duration::from_millis(400);
    let options =
        perf::Options { iterations: 20, rdma_cm: true, device, patience, ..perf::Options::new(test) };
    let porter = Porter::default();
    std::thread::scope(|scope| {
        let far = scope.spawn(|| perf::run(&options, &porter));
        until("the server waits", || porter.0.load(Ordering::SeqCst));
        let stranger = Device::open("127.0.0.62".parse().unwrap()).unwrap();
        let manager = ConnectionManager::new(&stranger).unwrap();
        let (pd, cq) = (stranger.alloc_pd(), stranger.create_cq().unwrap());
        let to = SocketAddr::new(server, options.port);
        let told = || porter.1.lock().unwrap().len();
        for says in [None, Some(&b"GET / HTTP/1.1"[..]), Some(&b"6.06\0\0\0\0\0\0\0\0\0\0\0\0"[..])] {
            let qp = pd.create_qp(&cq, &cq).build().unwrap();
            let region = pd.reg_mr(vec![0; 256], Access::LOCAL_WRITE).unwrap();
            qp.post_recv(RecvWr::new(region.buffer(0..256).unwrap())).unwrap();
            let connection = manager.connect(&qp, to, &ConnParam::default()).unwrap();
            let before = told();
            match says {
                Some(says) => qp.post_send(SendWr::send_inline(says)).unwrap(),
                None => connection.disconnect(),
            }
            until("the server has told of it", || told() > before);
        }
        let host = Some("127.0.0.61".to_owned());
        let near = perf::Options { host, device: Some("127.0.0.63".parse().unwrap()), ..options.clone() };
        perf::run(&near, &Quiet(AtomicU32::new(0))).unwrap();
        far.join().unwrap().unwrap();
    });
    let told = porter.1.into_inner().unwrap();
    assert_eq!(told, ["left before it told a queue pair", "told 14 octets and not 16", "said no more"]);
}

#[test]
fn retries_and_timeout_are_those_that_the_asker_names() {
    // An address where nobody is: what is sent to a queue pair that is gone is never answered.
    let wire = MemoryWire::new(7);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    // Twice 4.2 ms, in place of eight times 67 ms.
    let param = ConnParam { retry_count: 1, ack_timeout: Some(10), ..ConnParam::default() };
    std::thread::scope(|scope| {
        let far = &far;
        let answer = scope.spawn(move || {
            let request = listener.get_request(WAIT).unwrap().unwrap();
            let (pd, cq) = (far.alloc_pd(), far.create_cq().unwrap());
            let qp = pd.create_qp(&cq, &cq).build().unwrap();
            let connection = request.accept(&qp, &ConnParam::default()).unwrap();
            assert!(connection.wait_disconnected(WAIT));
            qp.post_send(SendWr::send_inline(b"nobody")).unwrap();
            let end = cq.wait(WAIT).unwrap();
            assert_eq!(end.status, Status::TransportRetryCounterExceeded);
            qp.counters().timeouts
        });
        let (pd, cq) = (near.alloc_pd(), near.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).build().unwrap();
        let connection = asking.connect(&qp, to, &param).unwrap();
        drop((qp, connection));
        assert_eq!(answer.join().unwrap(), 2, "one retry, of seven");
    });
}

#[test]
fn private_data_fill_what_rdma_cm_leaves() {
    let wire = MemoryWire::new(8);
    let (near, far) = (in_memory(&wire, "10.0.0.1"), in_memory(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let of = |octets: usize| ConnParam { private_data: vec![9; octets], ..ConnParam::default() };
    std::thread::scope(|scope| {
        let far = &far;
        let answer = scope.spawn(move || {
            let request = listener.get_request(WAIT).unwrap().unwrap();
            assert_eq!(request.private_data(), [9; 56]);
            let (pd, cq) = (far.alloc_pd(), far.create_cq().unwrap());
            let qp = pd.create_qp(&cq, &cq).build().unwrap();
            let connection = request.accept(&qp, &of(196)).unwrap();
            assert!(connection.wait_disconnected(WAIT));
        });
        let (pd, cq) = (near.alloc_pd(), near.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).build().unwrap();
        let long = asking.connect(&qp, to, &of(57));
        assert!(matches!(long, Err(CmError::PrivateData(56))), "{long:?}");
        assert_eq!(asking.connect(&qp, to, &of(56)).unwrap().private_data(), [9; 196]);
        answer.join().unwrap();
    });
}
