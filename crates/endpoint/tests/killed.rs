//! A process that is killed in the middle of a transfer, and what is left of that at the other end: nothing.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::cm::{ConnParam, Connection, ConnectionManager, Listener};
use roci_endpoint::{
    Access, CompletionQueue, Device, MemoryRegion, ProtectionDomain, QpState, QueuePair, RecvWr,
    RemoteMemory, SendWr, Status, WorkCompletion,
};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

const HERE: &str = "127.0.0.63";
const PEER: &str = "127.0.0.64";
const PORT: u16 = 7003;
const WAIT: Duration = Duration::from_secs(20);
const SIZE: usize = 1 << 20;
const MESSAGE: usize = 64 << 10;
/// Of which there are eight, 134 ms each: a busy machine lets no living peer wait so long.
const ACK_TIMEOUT: u8 = 15;
const RETRY_TIME: Duration = Duration::from_millis(8 * 134);
/// What the peer is to do.
const ROLE: &str = "ROCI_TEST_KILLED_ROLE";

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

struct End {
    pd: ProtectionDomain,
    cq: CompletionQueue,
    qp: QueuePair,
    open: MemoryRegion,
    own: MemoryRegion,
}

impl End {
    fn new(device: &Device) -> Self {
        let (pd, cq) = (device.alloc_pd(), device.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).build().unwrap();
        let open = pd.reg_mr(vec![0; SIZE], Access::ALL).unwrap();
        let own = pd.reg_mr(vec![0; SIZE], Access::LOCAL_WRITE).unwrap();
        Self { pd, cq, qp, open, own }
    }

    /// What the peer is told of its open memory.
    fn param(&self) -> ConnParam {
        let RemoteMemory { address, rkey } = self.open.remote();
        let private_data = [&address.to_be_bytes()[..], &rkey.to_be_bytes()].concat();
        ConnParam { ack_timeout: Some(ACK_TIMEOUT), private_data, ..ConnParam::default() }
    }

    fn write(&self, slot: usize, to: RemoteMemory) {
        let slice = self.own.slice(slot * MESSAGE..(slot + 1) * MESSAGE).unwrap();
        self.qp.post_send(SendWr::write(slice, to).wr_id(slot as u64)).unwrap();
    }
}

/// The slot that has been sent, and is free again.
fn returned(done: WorkCompletion) -> usize {
    usize::try_from(done.wr_id).unwrap()
}

fn told(private: &[u8]) -> RemoteMemory {
    let address = u64::from_be_bytes(*private.first_chunk().unwrap());
    RemoteMemory { address, rkey: u32::from_be_bytes(*private[8..].first_chunk().unwrap()) }
}

/// The peer: takes what is written to it, or writes itself until it is killed; or says one thing and leaves.
fn peer(role: &str) {
    let device = Device::open(PEER.parse().unwrap()).unwrap();
    let manager = ConnectionManager::new(&device).unwrap();
    let end = End::new(&device);
    let to = SocketAddr::new(HERE.parse().unwrap(), PORT);
    let connection = manager.connect(&end.qp, to, &end.param()).unwrap();
    let there = told(connection.private_data());
    match role {
        "responder" => std::thread::sleep(WAIT),
        "requester" => {
            (0..8).for_each(|slot| end.write(slot, there));
            while let Ok(done) = end.cq.wait(WAIT) {
                end.write(returned(done), there);
            }
        }
        _ => {
            end.qp.post_send(SendWr::send_inline(b"well")).unwrap();
            assert!(end.cq.wait(WAIT).unwrap().is_ok());
            assert!(connection.wait_disconnected(WAIT));
        }
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts this very test as the peer, and is connected to by it.
fn meet(device: &Device, listener: &Listener, role: &str) -> (Killed, End, Connection, RemoteMemory) {
    let test = "one_that_is_killed_in_a_transfer_leaves_nothing_behind";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(ROLE, role).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Killed(command.spawn().unwrap());
    let request = listener.get_request(WAIT).unwrap().expect("the peer connects");
    let there = told(request.private_data());
    let end = End::new(device);
    for slot in 0..16 {
        end.qp
            .post_recv(RecvWr::new(end.own.buffer(SIZE - 64 * (slot + 1)..SIZE - 64 * slot).unwrap()))
            .unwrap();
    }
    let connection = request.accept(&end.qp, &end.param()).unwrap();
    connection.wait_established(WAIT).unwrap();
    (process, end, connection, there)
}

/// Takes all completions until the first that failed, and then those of all that was flushed. Gives how the first failed, and
/// how long after `begin`.
fn fail(end: &End, left: usize, begin: Duration) -> (Status, Duration) {
    let mut back = 0;
    let first = loop {
        let done = end.cq.wait(WAIT).expect("an error completion");
        if !done.is_ok() {
            break done.status;
        }
        back += 1;
    };
    let took = now() - begin;
    while let Ok(done) = end.cq.wait(Duration::from_millis(100)) {
        assert_eq!(done.status, Status::WorkRequestFlushed);
        back += 1;
    }
    assert_eq!(back, left, "besides the one that failed");
    (first, took)
}

#[test]
fn one_that_is_killed_in_a_transfer_leaves_nothing_behind() {
    if let Ok(role) = std::env::var(ROLE) {
        return peer(&role);
    }
    // One device, one manager and one listener, which outlive all of their peers.
    let device = Device::open(HERE.parse().unwrap()).unwrap();
    let manager = ConnectionManager::new(&device).unwrap();
    let listener = manager.listen(PORT).unwrap();
    for role in ["responder", "requester", "responder"] {
        let (process, end, connection, there) = meet(&device, &listener, role);
        // In the middle of it: some of it is through, and more under way.
        let mut last = [0; 8];
        if role == "responder" {
            (0..8).for_each(|slot| end.write(slot, there));
            for _ in 0..64 {
                let done = end.cq.wait(WAIT).unwrap();
                assert!(done.is_ok(), "{done:?}");
                end.write(returned(done), there);
            }
        } else {
            let (until, before) = (now() + WAIT, device.counters().received);
            while device.counters().received < before + 1000 {
                assert!(now() < until, "the peer writes");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let begin = now();
        drop(process);
        // Who only listens hears nothing, and asks; and what was under way may have come through just before.
        end.qp.post_send(SendWr::write_inline(&[], there)).unwrap();
        let posted = if role == "responder" { 8 } else { 0 };
        let (status, took) = fail(&end, posted + 16, begin);
        assert_eq!(status, Status::TransportRetryCounterExceeded, "{role}");
        // What was acknowledged just before has begun the time anew; a busy machine may be late.
        assert!(took > RETRY_TIME / 2 && took < RETRY_TIME + Duration::from_secs(4), "{role}: {took:?}");
        assert_eq!(end.qp.state(), QpState::Error);
        end.open.read(0, &mut last).unwrap();
        assert!(end.own.buffer(0..SIZE).is_ok(), "what was lent is back");
        let End { pd, cq, qp, open, own } = end;
        drop((connection, qp));
        assert_eq!((open.deregister().unwrap().len(), own.deregister().unwrap().len()), (SIZE, SIZE));
        drop((pd, cq));
    }
    // And the next one is served as if nothing had been.
    let (mut process, end, connection, _) = meet(&device, &listener, "well");
    let heard = end.cq.wait(WAIT).unwrap();
    assert_eq!((heard.is_ok(), heard.byte_len), (true, 4));
    connection.disconnect();
    assert!(process.0.wait().unwrap().success());
}
