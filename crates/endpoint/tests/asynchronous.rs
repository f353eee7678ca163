//! Tasks in place of threads: one thread runs both ends of a conversation, and sleeps in between.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::asynchronous::AsyncCompletionQueue;
use roci_endpoint::cm::{CmError, ConnParam, ConnectionManager};
use roci_endpoint::{
    Access, Backend, Device, DeviceConfig, MemoryRegion, MemoryWire, QueuePair, RecvWr, SendWr,
};
use std::net::SocketAddr;
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
fn a_refusal_wakes_who_waits() {
    let wire = MemoryWire::new(2);
    let (near, far) = (device(&wire, "10.0.0.1"), device(&wire, "10.0.0.2"));
    let (asking, answering) = (ConnectionManager::new(&near).unwrap(), ConnectionManager::new(&far).unwrap());
    let listener = answering.listen(7000).unwrap();
    let to = SocketAddr::new(far.address(), 7000);
    block_on(async {
        let (qp, ..) = end(&near);
        let refused = async { listener.get_request_async().await.unwrap().reject(b"full") };
        let param = ConnParam::default();
        let (asked, ()) = tokio::join!(asking.connect_async(&qp, to, &param), refused);
        assert!(matches!(asked, Err(CmError::Rejected { reason: 28, .. })), "{asked:?}");
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
