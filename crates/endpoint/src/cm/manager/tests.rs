//! Who drives the machine, and when it sleeps and ends.

use super::*;
use crate::clock::Clock;
use crate::cm::{CmError, ConnParam};
use crate::device::{Backend, DeviceConfig};
use crate::io::MemoryWire;

fn manager(clock: Clock) -> ConnectionManager {
    let config = DeviceConfig { backend: Backend::Memory(MemoryWire::new(1)), ..DeviceConfig::default() };
    let device = Device::open_by([10, 0, 0, 1].into(), config, clock).unwrap();
    ConnectionManager::new(&device).unwrap()
}

/// Takes a manager's buffers for what it sends, once it has all of them.
fn all_buffers(inner: &Inner) -> Vec<Buffer> {
    while inner.core().free.len() < SENDS {
        std::thread::yield_now();
    }
    std::mem::take(&mut inner.core().free)
}

#[test]
fn a_manager_whose_time_is_over_sleeps() {
    const WHILE: Duration = Duration::from_millis(300);
    let manager = manager(Clock::over());
    let inner = manager.handle.inner.clone();
    drop(manager);
    inner.stop.store(false, Ordering::SeqCst);
    let busy = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            inner.run();
            clock::busy()
        });
        assert!(inner.wait(WHILE, |_| None::<()>).is_none(), "nothing comes any more");
        inner.stop.store(true, Ordering::SeqCst);
        inner.wake.signal();
        thread.join().unwrap()
    });
    assert!(busy < WHILE / 30, "it was busy for {busy:?}");
}

#[test]
fn a_manager_that_has_nothing_to_do_sleeps_until_it_is_needed_and_ends_at_once() {
    let manager = manager(Clock::new());
    let inner = manager.handle.inner.clone();
    while inner.core().sleeps != Some(Instant::from_ps(u64::MAX)) {
        std::thread::yield_now();
    }
    // What is asked for has a timer, of which it is told.
    let cq = inner.device.create_cq().unwrap();
    let qp = inner.device.alloc_pd().create_qp(&cq, &cq).build().unwrap();
    let asked = manager.request(&qp, ([10, 0, 0, 9], 7).into(), &ConnParam::default()).unwrap();
    while inner.core().sleeps.is_none_or(|until| until == Instant::from_ps(u64::MAX)) {
        std::thread::yield_now();
    }
    drop(asked);
    let begin = inner.device.inner.passed();
    drop(manager);
    assert!(inner.device.inner.passed().saturating_sub(begin) < FAREWELL / 2);
}

/// Who was asked would else ask for the lost word itself, a second later.
#[test]
fn a_peer_whose_word_that_it_is_ready_was_lost_is_known_by_its_first_request() {
    use crate::memory::RemoteMemory;
    const WAIT: Duration = Duration::from_secs(10);
    let wire = MemoryWire::new(1);
    let [near, far] = [1, 2].map(|host| {
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
        Device::open_with([10, 0, 0, host].into(), config).unwrap()
    });
    let [asking, answering] = [&near, &far].map(|device| ConnectionManager::new(device).unwrap());
    let [(sent, active), (_, passive)] = [&near, &far].map(|device| {
        let cq = device.create_cq().unwrap();
        let qp = device.alloc_pd().create_qp(&cq, &cq).build().unwrap();
        (cq, qp)
    });
    let listener = answering.listen(7000).unwrap();
    let param = ConnParam::default();
    let mut asked = asking.request(&active, ([10, 0, 0, 2], 7000).into(), &param).unwrap();
    let request = listener.get_request(WAIT).unwrap().unwrap();
    // Without a buffer nothing leaves.
    let inner = &asking.handle.inner;
    let away = all_buffers(inner);
    let accepted = request.accept(&passive, &param).unwrap();
    let connected = asked.wait(&active, WAIT).unwrap().unwrap();
    assert!(accepted.wait_established(4 * SLICE).is_err(), "nothing has come");
    let greetings = || far.inner.cells[0].lock().core.greetings.len();
    assert_eq!(greetings(), 1);
    active.post_send(SendWr::write_inline(&[], RemoteMemory::default())).unwrap();
    assert!(sent.wait(WAIT).unwrap().is_ok());
    accepted.wait_established(Duration::from_millis(500)).unwrap();
    assert_eq!(greetings(), 0);
    // What was lost may come after all, and changes nothing.
    inner.core().free.extend(away);
    active.post_send(SendWr::write_inline(&[], RemoteMemory::default())).unwrap();
    assert!(sent.wait(WAIT).unwrap().is_ok());
    connected.disconnect();
    assert!(accepted.wait_disconnected(WAIT) && connected.wait_disconnected(WAIT));

    // Where the word comes, no request is waited for any more.
    let other = near.create_cq().unwrap();
    let active = near.alloc_pd().create_qp(&other, &other).build().unwrap();
    let cq = far.create_cq().unwrap();
    let passive = far.alloc_pd().create_qp(&cq, &cq).build().unwrap();
    let mut asked = asking.request(&active, ([10, 0, 0, 2], 7000).into(), &param).unwrap();
    let accepted = listener.get_request(WAIT).unwrap().unwrap().accept(&passive, &param).unwrap();
    let _connected = asked.wait(&active, WAIT).unwrap().unwrap();
    accepted.wait_established(WAIT).unwrap();
    assert_eq!(greetings(), 0);
}

/// The request comes again after a second, and nobody listens any more: whoever else is at the address would say so.
#[test]
fn a_peer_that_asks_again_is_answered_by_whom_it_asked_though_that_one_has_ceased_to_listen() {
    const WAIT: Duration = Duration::from_secs(10);
    let devices = [(); 3].map(|()| Device::open([127, 0, 5, 20].into()).unwrap());
    let managers = devices.each_ref().map(|device| ConnectionManager::new(device).unwrap());
    let [asking, answering, other] = &managers;
    let [active, passive, _] = devices.each_ref().map(|device| {
        let cq = device.create_cq().unwrap();
        device.alloc_pd().create_qp(&cq, &cq).build().unwrap()
    });
    let listener = answering.listen(7000).unwrap();
    let param = ConnParam::default();
    let mut asked = asking.request(&active, ([127, 0, 5, 20], 7000).into(), &param).unwrap();
    let request = listener.get_request(WAIT).unwrap().unwrap();
    drop(listener);
    // Without a buffer the answer does not leave.
    let inner = &answering.handle.inner;
    let away = all_buffers(inner);
    let accepted = request.accept(&passive, &param).unwrap();
    assert!(asked.wait(&active, Duration::from_millis(1500)).unwrap().is_none());
    assert!(matches!(other.listen(7000), Err(CmError::InUse(7000))), "the port is not free yet");
    // The request that came again is one more reason to say it.
    assert!(inner.core().machine.has_to_transmit());
    inner.core().free.extend(away);
    inner.pump(&mut inner.core());
    let _connected = asked.wait(&active, WAIT).unwrap().unwrap();
    accepted.wait_established(WAIT).unwrap();
    other.listen(7000).unwrap();
}

/// As above of a rejection, of which no peer says that it has heard it.
#[test]
fn who_asks_again_is_refused_by_whom_it_asked_though_another_would_listen_by_then() {
    const WAIT: Duration = Duration::from_secs(10);
    let devices = [(); 3].map(|()| Device::open([127, 0, 5, 22].into()).unwrap());
    let [asking, answering, other] = devices.each_ref().map(|device| ConnectionManager::new(device).unwrap());
    let cq = devices[0].create_cq().unwrap();
    let active = devices[0].alloc_pd().create_qp(&cq, &cq).build().unwrap();
    let listener = answering.listen(7000).unwrap();
    let to = ([127, 0, 5, 22], 7000).into();
    let mut asked = asking.request(&active, to, &ConnParam::default()).unwrap();
    let request = listener.get_request(WAIT).unwrap().unwrap();
    drop(listener);
    // Without a buffer the rejection does not leave, and this one is lost.
    let inner = &answering.handle.inner;
    let away = all_buffers(inner);
    request.reject(b"full").unwrap();
    assert!(inner.core().machine.poll_transmit().is_some());
    inner.core().free.extend(away);
    assert!(matches!(other.listen(7000), Err(CmError::InUse(7000))), "the port is not free yet");
    drop(answering.listen(7000).unwrap());
    match asked.wait(&active, WAIT) {
        Err(CmError::Rejected { reason, private_data, .. }) => {
            assert_eq!((reason, &private_data[..5]), (roci_wire::cm::reason::CONSUMER, &b"full\0"[..]));
        }
        told => panic!("{told:?}"),
    }
    // Nobody knows whether it was heard.
    assert!(matches!(other.listen(7000), Err(CmError::InUse(7000))));
    let mut core = inner.core();
    core.machine.wake(inner.device.inner.now() + roci_units::Span::from_millis(8_600));
    inner.pump(&mut core);
    assert!(core.notes.is_empty() && core.machine.is_empty());
    drop(core);
    other.listen(7000).unwrap();
}

/// As above of the datagrams of a service, of which no peer says that it has heard the answer.
#[test]
fn who_asks_again_for_datagrams_is_told_the_same_though_another_would_listen_by_then() {
    const WAIT: Duration = Duration::from_secs(10);
    let devices = [(); 3].map(|()| Device::open([127, 0, 5, 21].into()).unwrap());
    let [asking, answering, other] = devices.each_ref().map(|device| ConnectionManager::new(device).unwrap());
    let listener = answering.listen_datagrams(7000).unwrap();
    let mut asked = asking.resolve_service(([127, 0, 5, 21], 7000).into(), None, b"").unwrap();
    let request = listener.get_request(WAIT).unwrap();
    drop(listener);
    // Without a buffer the answer does not leave, and this one is lost.
    let inner = &answering.handle.inner;
    let away = all_buffers(inner);
    request.accept(Qpn::new(0x22), 1, b"").unwrap();
    assert!(inner.core().machine.poll_transmit().is_some());
    inner.core().free.extend(away);
    assert!(matches!(other.listen_datagrams(7000), Err(CmError::InUse(7000))), "the port is not free yet");
    drop(answering.listen_datagrams(7000).unwrap());
    let told = asked.wait(WAIT).unwrap().unwrap();
    assert_eq!(told.qpn, Qpn::new(0x22));
    // Nobody knows whether it was heard.
    assert!(matches!(other.listen_datagrams(7000), Err(CmError::InUse(7000))));
    let mut core = inner.core();
    core.machine.wake(inner.device.inner.now() + roci_units::Span::from_millis(8_600));
    inner.pump(&mut core);
    drop(core);
    other.listen_datagrams(7000).unwrap();
}

#[test]
fn a_manager_stays_until_what_it_said_last_has_left() {
    let manager = manager(Clock::new());
    let inner = manager.handle.inner.clone();
    // As long as a buffer is away, a datagram is on its way out.
    let away = inner.core().free.pop().unwrap();
    let closes = std::thread::spawn(move || drop(manager));
    std::thread::sleep(4 * SLICE);
    assert!(!closes.is_finished());
    inner.core().free.push(away);
    std::thread::sleep(FAREWELL / 2);
    assert!(closes.is_finished(), "and no longer");
    closes.join().unwrap();
}

#[cfg(feature = "tokio")]
#[test]
fn the_last_handle_may_be_dropped_by_a_task_that_the_manager_s_thread_has_woken() {
    use std::task::{Wake, Waker};
    /// Drops on the thread that wakes it, and tells of it.
    struct Last(Mutex<Option<(ConnectionManager, std::sync::mpsc::Sender<String>)>>);
    impl Wake for Last {
        fn wake(self: Arc<Self>) {
            let Some((manager, tell)) = self.0.lock().unwrap().take() else { return };
            drop(manager);
            let thread = std::thread::current();
            tell.send(thread.name().unwrap_or_default().to_owned()).unwrap();
        }
    }
    let manager = manager(Clock::new());
    let inner = manager.handle.inner.clone();
    let (tell, told) = std::sync::mpsc::channel();
    let last = Arc::new(Last(Mutex::new(Some((manager, tell)))));
    let mut place = inner.tasks.place();
    place.wait(&Waker::from(last));
    // As if the queue pair of a connection had failed, which the thread hears of.
    inner.cq.inner.push(WorkCompletion {
        wr_id: 0,
        qp_num: Qpn::new(77),
        status: Status::WorkRequestFlushed,
        opcode: CompletionKind::Send,
        byte_len: 0,
        tail: roci_transport::Tail::Plain,
        solicited: false,
        original: 0,
        source: None,
        payload: crate::work::Payload::None,
        time_ns: 0,
    });
    assert_eq!(told.recv_timeout(Duration::from_secs(10)).as_deref(), Ok("roci-cm"));
    drop(place);
    while Arc::strong_count(&inner) > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(feature = "tokio")]
#[test]
fn tasks_that_do_not_wait_any_more_are_forgotten() {
    use std::pin::pin;
    use std::task::{Context, Waker};
    let manager = manager(Clock::new());
    let inner = &manager.handle.inner;
    for _ in 0..10 {
        let mut waits = pin!(inner.when(|_| None::<()>));
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert!(inner.tasks.is_empty());
}
