//! Tasks in place of threads: one thread runs both ends of a conversation, and sleeps in between.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::asynchronous::{AsyncCompletionQueue, AsyncEvents};
use roci_endpoint::cm::{CmError, ConnParam, ConnectionManager, UDP_Q_KEY};
use roci_endpoint::{
    Access, Backend, Change, Device, DeviceConfig, Event, MemoryRegion, MemoryWire, QueuePair, RecvWr,
    RemoteMemory, SendWr, Transition, WorkCompletion,
};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(20);

fn block_on<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(WAIT, task).await.expect("it ends") })
}

fn device(wire: &MemoryWire, address: &str) -> Device {
    let config = DeviceConfig { backend: Backend::Memory(wire.clone()), ..DeviceConfig::default() };
    Device::open_with(address.parse().unwrap(), config).unwrap()
}

fn end(device: &Device) -> (QueuePair, AsyncCompletionQueue, MemoryRegion) {
    let pd = device.alloc_pd();
    let cq = AsyncCompletionQueue::new(device.create_cq().unwrap()).unwrap();
    let qp = pd.create_qp(cq.get_ref(), cq.get_ref()).build().unwrap();
    let region = pd.reg_mr(vec![0; 64], Access::LOCAL_WRITE).unwrap();
    (qp, cq, region)
}

#[test]
fn both_ends_of_a_conversation_are_tasks_of_one_thread() {
    let wire = MemoryWire::new(1);
    let (near, far) = (device(&wire, "10.0.0.1"), device(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let server = async {
        let (qp, cq, region) = end(&far);
        qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
        let request = listener.get_request_async().await.unwrap();
        let connection = request.accept_async(&qp, &ConnParam::default()).await.unwrap();
        for round in 0..100u32 {
            let heard = cq.poll().await.unwrap();
            assert!(heard.is_ok(), "{heard:?}");
            let buffer = heard.into_buffer().unwrap();
            assert_eq!(buffer.to_vec()[..4], round.to_be_bytes());
            qp.post_recv(RecvWr::new(buffer)).unwrap();
            qp.post_send(SendWr::send_inline(&round.to_le_bytes()).unsignaled()).unwrap();
        }
        connection.disconnected_async().await;
    };
    let client = async {
        let (qp, cq, region) = end(&near);
        qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap())).unwrap();
        let connection = asking.connect_async(&qp, to, &ConnParam::default()).await.unwrap();
        for round in 0..100u32 {
            qp.post_send(SendWr::send_inline(&round.to_be_bytes()).unsignaled()).unwrap();
            let buffer = cq.poll().await.unwrap().into_buffer().unwrap();
            assert_eq!(buffer.to_vec()[..4], round.to_le_bytes());
            qp.post_recv(RecvWr::new(buffer)).unwrap();
        }
        connection.disconnect();
        connection.disconnected_async().await;
    };
    block_on(async { tokio::join!(server, client) });
}

#[test]
fn a_queue_pair_that_fails_wakes_who_waits_for_the_end_of_its_connection() {
    let wire = MemoryWire::new(9);
    let (near, far) = (device(&wire, "10.0.0.1"), device(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    block_on(async {
        let ((active, ..), (passive, ..)) = (end(&near), end(&far));
        let param = ConnParam::default();
        let answered =
            async { listener.get_request_async().await.unwrap().accept_async(&passive, &param).await };
        let (asked, answered) = tokio::join!(asking.connect_async(&active, to, &param), answered);
        let (asked, answered) = (asked.unwrap(), answered.unwrap());
        let early = tokio::time::timeout(Duration::from_millis(250), asked.disconnected_async()).await;
        assert!(early.is_err(), "nothing has failed");
        active.post_send(SendWr::write_inline(&[1], RemoteMemory::default())).unwrap();
        tokio::join!(asked.disconnected_async(), answered.disconnected_async());
    });
}

#[test]
fn tasks_wait_for_events_and_each_goes_to_one_of_them() {
    let device = device(&MemoryWire::new(3), "10.0.0.1");
    block_on(async {
        let events = AsyncEvents::new(device.events().unwrap()).unwrap();
        let srqs = [(); 2].map(|()| device.alloc_pd().create_srq(1));
        let both = async { tokio::join!(events.poll(), events.poll()) };
        let arms = async {
            for srq in &srqs {
                tokio::time::sleep(Duration::from_millis(5)).await;
                srq.set_limit(1).unwrap();
            }
        };
        let ((one, other), ()) = tokio::join!(both, arms);
        let seen = [one.unwrap(), other.unwrap()];
        assert!(srqs.iter().all(|srq| seen.contains(&Event::SrqLimitReached(srq.srq_num()))), "{seen:?}");
        let early = tokio::time::timeout(Duration::from_millis(50), events.poll()).await;
        assert!(early.is_err() && events.get_ref().poll().is_none());
    });
}

#[test]
fn a_refusal_wakes_who_waits() {
    let wire = MemoryWire::new(2);
    let (near, far) = (device(&wire, "10.0.0.1"), device(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    block_on(async {
        let (qp, ..) = end(&near);
        let refused = async { listener.get_request_async().await.unwrap().reject(b"full").unwrap() };
        let param = ConnParam::default();
        let (asked, ()) = tokio::join!(asking.connect_async(&qp, to, &param), refused);
        assert!(matches!(asked, Err(CmError::Rejected { reason: 28, .. })), "{asked:?}");
    });
}

#[test]
fn a_task_that_asks_where_datagrams_go_and_the_one_that_tells_it_are_of_one_thread() {
    const TASKS: usize = 3;
    let wire = MemoryWire::new(7);
    let (near, far) = (device(&wire, "10.0.0.1"), device(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen_datagrams(0).unwrap();
    let to = SocketAddr::new(far.address(), listener.port());
    let end = |device: &Device| {
        let (pd, cq) = (device.alloc_pd(), AsyncCompletionQueue::new(device.create_cq().unwrap()).unwrap());
        let qp = pd.create_qp(cq.get_ref(), cq.get_ref()).datagrams(UDP_Q_KEY).build().unwrap();
        let region = pd.reg_mr(vec![0; 64 * TASKS], Access::LOCAL_WRITE).unwrap();
        (0..TASKS).for_each(|number| {
            let buffer = region.buffer(64 * number..64 * (number + 1)).unwrap();
            qp.post_recv(RecvWr::new(buffer)).unwrap();
        });
        (qp, cq, region)
    };
    let server = async {
        let (qp, cq, _region) = end(&far);
        for _ in 0..TASKS {
            let request = listener.get_request_async().await;
            request.accept(qp.qp_num(), UDP_Q_KEY, b"me").unwrap();
        }
        for _ in 0..TASKS {
            let heard = cq.poll().await.unwrap();
            assert!(heard.is_ok() && heard.source.is_some(), "{heard:?}");
            let (address, qpn) = heard.source.unwrap();
            let octets = heard.into_buffer().unwrap().to_vec();
            let answer = SendWr::datagram_inline(&octets[..1], address, qpn, UDP_Q_KEY);
            qp.post_send(answer.unsignaled()).unwrap();
        }
    };
    let client = async |number: u8| {
        let (qp, cq, _region) = end(&near);
        let peer = asking.resolve_service_async(to, None, &[number]).await.unwrap();
        assert_eq!(&peer.private_data[..3], b"me\0");
        let hello = SendWr::datagram_inline(&[number], peer.address, peer.qpn, peer.q_key);
        qp.post_send(hello.unsignaled()).unwrap();
        let heard = cq.poll().await.unwrap();
        assert_eq!(heard.into_buffer().unwrap().to_vec()[0], number);
    };
    block_on(async { tokio::join!(server, client(1), client(2), client(3)) });
}

#[test]
fn who_waits_for_a_queue_pair_of_datagrams_hears_of_a_refusal_and_may_stop_and_wait_again() {
    let wire = MemoryWire::new(8);
    let (near, far) = (device(&wire, "10.0.0.1"), device(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen_datagrams(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    block_on(async {
        let mut asked = asking.resolve_service(to, None, b"").unwrap();
        let early = tokio::time::timeout(Duration::from_millis(20), asked.answered_async()).await;
        assert!(early.is_err(), "nobody has answered: {early:?}");
        let request = listener.get_request_async().await;
        let refused = async { request.reject(b"full").unwrap() };
        let (told, ()) = tokio::join!(asked.answered_async(), refused);
        match told {
            Err(CmError::Unresolved { peer, private_data, .. }) => {
                assert_eq!((peer, &private_data[..5]), (to, &b"full\0"[..]));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(asked.answered_async().await, Err(CmError::Gone)), "it is told once");
        // Nobody waits any more for what was asked for, and none who listens is lost with a future.
        let early = tokio::time::timeout(Duration::from_millis(20), listener.get_request_async()).await;
        assert!(early.is_err());
        let (told, ()) = tokio::join!(asking.resolve_service_async(to, None, b""), async {
            listener.get_request_async().await.accept(roci_endpoint::Qpn::new(5), 1, b"").unwrap();
        });
        assert_eq!(told.unwrap().qpn.get(), 5);
        drop(listener);
        let gone = asking.resolve_service_async(to, None, b"").await;
        assert!(matches!(gone, Err(CmError::Unresolved { status: 1, .. })), "{gone:?}");
    });
}

#[test]
fn a_future_that_is_dropped_takes_no_completion_with_it() {
    let wire = MemoryWire::new(3);
    let device = device(&wire, "10.0.0.1");
    block_on(async {
        let (qp, cq, region) = end(&device);
        qp.connect(qp.info()).unwrap();
        qp.post_recv(RecvWr::new(region.buffer(0..64).unwrap()).wr_id(7)).unwrap();
        let early = tokio::time::timeout(Duration::from_millis(20), cq.poll()).await;
        assert!(early.is_err(), "nothing was sent: {early:?}");
        qp.post_send(SendWr::send_inline(b"now").unsignaled()).unwrap();
        assert_eq!(cq.poll().await.unwrap().wr_id, 7);
    });
}

/// A task that is woken as often as it says, and polled by hand.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn of_several_who_wait_none_is_forgotten_when_another_takes_its_notification() {
    let wire = MemoryWire::new(4);
    let device = device(&wire, "10.0.0.1");
    block_on(async {
        let (qp, cq, region) = end(&device);
        // What is posted to a queue pair that has failed comes back at once.
        let failed = Change { transition: Some(Transition::Fail), ..Change::default() };
        qp.modify(&failed).unwrap();
        let complete = |number: usize| {
            let buffer = region.buffer(number..number + 1).unwrap();
            qp.post_recv(RecvWr::new(buffer).wr_id(number as u64)).unwrap();
        };
        let woken: [Arc<Woken>; 2] = Default::default();
        let wakers = woken.clone().map(Waker::from);
        let poll = |task: usize, it: Pin<&mut dyn Future<Output = std::io::Result<WorkCompletion>>>| {
            it.poll(&mut Context::from_waker(&wakers[task])).map(|found| found.unwrap().wr_id)
        };
        let tell = || tokio::time::sleep(Duration::from_millis(5));
        let (mut first, mut second) = (pin!(cq.poll()), pin!(cq.poll()));
        assert!(poll(0, first.as_mut()).is_pending() && poll(1, second.as_mut()).is_pending());
        complete(1);
        tell().await;
        assert_eq!(poll(0, first.as_mut()), Poll::Ready(1));
        // It waits again, and is told of the next one; but the other, who was woken too, comes before and takes that.
        let mut again = pin!(cq.poll());
        assert!(poll(0, again.as_mut()).is_pending());
        complete(2);
        assert_eq!(poll(1, second.as_mut()), Poll::Ready(2));
        tell().await;
        // What it was told in vain.
        let _ = poll(0, again.as_mut());
        let before = woken[0].0.load(Ordering::SeqCst);
        complete(3);
        tell().await;
        assert!(woken[0].0.load(Ordering::SeqCst) > before, "the third completion wakes who waits");
        assert_eq!(poll(0, again.as_mut()), Poll::Ready(3));
    });
}

#[test]
fn who_always_finds_a_completion_lets_other_tasks_of_the_runtime_go_on() {
    const COMPLETIONS: usize = 1000;
    let wire = MemoryWire::new(6);
    let device = device(&wire, "10.0.0.1");
    block_on(async {
        let (qp, cq, _region) = end(&device);
        // What is posted to a queue pair that has failed comes back at once.
        qp.modify(&Change { transition: Some(Transition::Fail), ..Change::default() }).unwrap();
        (0..COMPLETIONS).for_each(|_| qp.post_recv(RecvWr::empty()).unwrap());
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        for _ in 0..COMPLETIONS {
            cq.poll().await.unwrap();
        }
        other.abort();
        assert!(turns.load(Ordering::SeqCst) >= 5, "it had {turns:?} turns");
    });
}

#[test]
fn many_tasks_on_many_threads_share_a_queue_also_with_a_thread_that_waits() {
    const TASKS: usize = 4;
    const EACH: usize = 500;
    let wire = MemoryWire::new(5);
    let device = device(&wire, "10.0.0.1");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    let (qp, cq, _region) = {
        let _entered = runtime.enter();
        end(&device)
    };
    qp.modify(&Change { transition: Some(Transition::Fail), ..Change::default() }).unwrap();
    let cq = Arc::new(cq);
    let threads: Vec<_> = (0..TASKS)
        .map(|number| {
            let (cq, handle) = (cq.clone(), runtime.handle().clone());
            std::thread::spawn(move || {
                if number == 0 {
                    return (0..EACH).for_each(|_| drop(cq.get_ref().wait(WAIT).unwrap()));
                }
                handle.block_on(async move {
                    for _ in 0..EACH {
                        cq.poll().await.unwrap();
                    }
                })
            })
        })
        .collect();
    runtime.block_on(async {
        for number in 0..TASKS * EACH {
            while qp.post_send(SendWr::send_inline(b"it comes back")).is_err() {
                tokio::task::yield_now().await;
            }
            if number % 3 == 0 {
                tokio::time::sleep(Duration::from_micros(1)).await;
            }
        }
        let all = async {
            while !threads.iter().all(std::thread::JoinHandle::is_finished) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(WAIT, all).await.expect("each gets its share");
    });
}

/// An executor that polls where it is woken, as some do.
struct AtOnce {
    task: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut task = self.task.lock().unwrap();
        if let Some(mut running) = task.take()
            && running.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        {
            *task = Some(running);
        }
    }
}

#[test]
fn a_waker_may_look_at_once_whether_its_task_can_go_on() {
    let wire = MemoryWire::new(6);
    let (near, far) = (device(&wire, "10.0.0.1"), device(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let (tell, told) = mpsc::channel();
    let task = async move {
        let request = listener.get_request_async().await.unwrap();
        tell.send(request.peer().ip()).unwrap();
    };
    let executor = Arc::new(AtOnce { task: Mutex::new(Some(Box::pin(task))) });
    executor.clone().wake();
    let (pd, cq) = (near.alloc_pd(), near.create_cq().unwrap());
    let qp = pd.create_qp(&cq, &cq).build().unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    let asked = asking.request(&qp, to, &ConnParam::default()).unwrap();
    assert_eq!(told.recv_timeout(WAIT).expect("it goes on"), near.address());
    drop(asked);
}
