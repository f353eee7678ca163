//! Clients that ask for more than a server can do, with and without credits that follow its cache (CARC, on real packets).
//!
//!     cargo run --release -p roci-endpoint --example requests
//!
//! Server and clients are two endpoints at one loopback address. A request is two SENDs into buffers that all connections share; the
//! server sums its payload up, and answers with the sum. `roci-rpc` says what may be posted and when credits return, and makes the headers
//! (docs/wire.md); here are the SENDs. Without credits all requests that the clients' windows allow wait at the server. With formula (1)
//! no more do than fit the part of a cache that is set aside, and with formula (2) as much more as the server consumes in a round trip where it was idle.
//! Whether the server gains by that is its cache's to say: a scenario with `kind = "rpc"` tells
//! for one that is described.

use roci_endpoint::{
    Access, Buffer, CompletionKind, CompletionQueue, Device, ProtectionDomain, QueuePair, RecvWr, SendWr,
    SharedReceiveQueue, WorkCompletion,
};
use roci_rpc::{
    Client, ClientConfig, Credits, Processed, REQUEST_HEADER, RETURN_HEADER, RequestHeader, ReturnHeader,
    Server, basic_credits,
};
use roci_units::{Instant, Span};
use std::collections::VecDeque;
use std::error::Error;
use std::thread;
use std::time::Duration;

const CLIENTS: u32 = 4;
/// Requests of each client, and how many of them may be unanswered.
const COUNT: u64 = 1000;
const WINDOW: u32 = 32;
/// Octets of a SEND, and of a request's payload.
const PACKET: u32 = 4096;
const REQUEST: u64 = 2 * (PACKET - REQUEST_HEADER) as u64;
/// Octets of a response: a sum.
const RESPONSE: u32 = 8;
/// How often the server goes through a request.
const ROUNDS: usize = 16;
/// What waits at the server is to fit in here.
const CACHE: u32 = 256 << 10;
const LINE: u32 = 64;
const WAIT: Duration = Duration::from_secs(5);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    println!(
        "{CLIENTS} clients with {WINDOW} requests of {REQUEST} octets each; what waits is to fit {CACHE} octets"
    );
    println!("{:>12} {:>12} {:>9} {:>9} {:>16}", "credits", "answered/s", "p50", "p99", "waited at most");
    for (name, credits) in [
        ("unlimited", Credits::Unlimited),
        ("session of 8", Credits::Session(8)),
        ("basic", Credits::Basic),
        ("loosened", Credits::Loosened),
    ] {
        let run = run(credits).map_err(|error| -> Box<dyn Error> { error })?;
        let [p50, p99] = [50, 99].map(|part| run.times[run.times.len() * part / 100].as_ps() / 1_000_000);
        let rate = run.times.len() as f64 / run.took.as_ps() as f64 * 1e12;
        println!("{name:>12} {rate:>12.0} {p50:>6} us {p99:>6} us {:>14} B", run.waited);
    }
    Ok(())
}

/// How requests fared.
struct Run {
    /// How long each took, in order of length.
    times: Vec<Span>,
    took: Span,
    /// The most octets that were at the server and not consumed.
    waited: u32,
}

fn run(credits: Credits) -> Result<Run> {
    let address = "127.0.0.1".parse()?;
    let (near, far) = (Device::open(address)?, Device::open(address)?);
    let clock = Clock::new();
    let basic = basic_credits(CACHE.into(), LINE, CLIENTS);
    let client = Client::new(ClientConfig {
        request: REQUEST,
        packet: PACKET,
        window: WINDOW,
        count: Some(COUNT),
        credits,
        basic,
        line: LINE,
    });

    // The server's buffers are enough for all that may come at once.
    let (pd, cq) = (far.alloc_pd(), far.create_cq()?);
    let buffers = CLIENTS * WINDOW * client.packets();
    let srq = pd.create_srq(buffers);
    post_all(&pd, buffers, PACKET, |request| Ok(srq.post_recv(request)?))?;
    let (mut asking, mut answering) = (Vec::new(), Vec::new());
    for _ in 0..CLIENTS {
        let qp = pd.create_qp(&cq, &cq).srq(&srq).max_send_wr(buffers).build()?;
        let end = ClientEnd::new(&near, &client)?;
        end.qp.connect(qp.info())?;
        qp.connect(end.qp.info())?;
        asking.push(end);
        answering.push(Connection {
            qp,
            server: Server::new((credits != Credits::Unlimited).then(|| client.limit())),
            next: 0,
            sum: 0,
        });
    }
    let mut server = ServerEnd {
        cq,
        srq,
        connections: answering,
        waiting: VecDeque::new(),
        octets: 0,
        waited: 0,
        least: None,
    };

    // Both ends outlive both threads: what is lost last is sent again, and acknowledged.
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&clock));
        let asking: Vec<_> = asking
            .iter_mut()
            .map(|end| (end, client.clone()))
            .map(|(end, client)| scope.spawn(|| end.ask(client, &clock)))
            .collect();
        let mut times = Vec::new();
        for client in asking {
            times.extend(client.join().map_err(|_| "a client panicked")??);
        }
        let waited = serving.join().map_err(|_| "the server panicked")??;
        times.sort_unstable();
        Ok(Run { times, took: clock.now().since(Instant::ZERO), waited })
    })
}

/// Time since it was made, as `roci-rpc` counts it.
struct Clock(std::time::Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "a program's clock")]
    fn new() -> Self {
        Self(std::time::Instant::now())
    }

    fn now(&self) -> Instant {
        Instant::ZERO + Span::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Registers memory for `count` receive requests of `octets` each and has them posted.
fn post_all(
    pd: &ProtectionDomain,
    count: u32,
    octets: u32,
    mut post: impl FnMut(RecvWr) -> Result<()>,
) -> Result<()> {
    buffers(pd, count, octets)?.into_iter().try_for_each(|buffer| post(RecvWr::new(buffer)))
}

/// So many buffers of one region.
fn buffers(pd: &ProtectionDomain, count: u32, octets: u32) -> Result<Vec<Buffer>> {
    let (count, octets) = (count as usize, octets as usize);
    let region = pd.reg_mr(vec![0; count * octets], Access::LOCAL_WRITE)?;
    (0..count).map(|at| Ok(region.buffer(at * octets..(at + 1) * octets)?)).collect()
}

/// What came, or why not.
fn checked(completion: WorkCompletion) -> Result<WorkCompletion> {
    if completion.is_ok() { Ok(completion) } else { Err(completion.status.to_string().into()) }
}

/// The payload of a packet of a request: words that count on.
fn words(request: u64, number: u32, octets: usize) -> impl Iterator<Item = u64> {
    let first = request << 20 | u64::from(number) << 10;
    (first..).take(octets / 8)
}

/// A client's end of its connection.
struct ClientEnd {
    qp: QueuePair,
    cq: CompletionQueue,
    /// Buffers to send from that are not lent.
    free: Vec<Buffer>,
}

impl ClientEnd {
    fn new(device: &Device, client: &Client) -> Result<Self> {
        let (pd, cq) = (device.alloc_pd(), device.create_cq()?);
        let packets = WINDOW * client.packets();
        // Credits come back with each packet at the most.
        let qp = pd.create_qp(&cq, &cq).max_send_wr(packets).max_recv_wr(packets).build()?;
        post_all(&pd, packets, RETURN_HEADER + RESPONSE, |request| Ok(qp.post_recv(request)?))?;
        Ok(Self { qp, cq, free: buffers(&pd, packets, PACKET)? })
    }

    /// Asks until all is answered; gives how long each request took.
    fn ask(&mut self, mut client: Client, clock: &Clock) -> Result<Vec<Span>> {
        let mut times = Vec::new();
        while !client.is_done() {
            while !self.free.is_empty()
                && let Some(packet) = client.next(clock.now())
            {
                let mut buffer = self.free.pop().ok_or("there is a buffer")?;
                buffer.set_len(packet.octets as usize);
                let octets = buffer.as_mut_slice().ok_or("no peer reaches it")?;
                let header =
                    RequestHeader { request: packet.request, number: packet.number, last: packet.last };
                let (front, payload) = octets.split_at_mut(REQUEST_HEADER as usize);
                front.copy_from_slice(&header.emit());
                let length = payload.len();
                for (place, word) in
                    payload.chunks_exact_mut(8).zip(words(packet.request, packet.number, length))
                {
                    place.copy_from_slice(&word.to_be_bytes());
                }
                self.qp.post_send(SendWr::send(buffer))?;
            }
            let completion = checked(self.cq.wait(WAIT)?)?;
            if completion.opcode != CompletionKind::Recv {
                // A packet was acknowledged: its buffer is free again.
                let slices = completion.into_slices().into_iter();
                self.free.extend(slices.filter_map(|slice| slice.try_into_buffer().ok()));
                continue;
            }
            let now = clock.now();
            let length = completion.byte_len as usize;
            let buffer = completion.into_buffer().ok_or("a receive has a buffer")?;
            let octets = buffer.as_slice().and_then(|octets| octets.get(..length)).ok_or("a short buffer")?;
            let (header, payload) = ReturnHeader::parse(octets)?;
            client.returned(now, &header.credits);
            if let Some(request) = header.answers {
                let half = (PACKET - REQUEST_HEADER) as usize;
                let sum = (0..2).flat_map(|number| words(request, number, half)).fold(0, u64::wrapping_add);
                if payload != sum.to_be_bytes() {
                    return Err(format!("request {request} was answered with {payload:?}").into());
                }
                let answered = client.answered(now).filter(|it| it.request == request);
                times.push(now.since(answered.ok_or("an answer to another request")?.begun));
            }
            self.qp.post_recv(RecvWr::new(buffer))?;
        }
        Ok(times)
    }
}

/// The server's end of a connection.
struct Connection {
    qp: QueuePair,
    server: Server,
    /// Which packet of a request is next, and the sum of those before it.
    next: u32,
    sum: u64,
}

/// The thread that answers.
struct ServerEnd {
    cq: CompletionQueue,
    srq: SharedReceiveQueue,
    connections: Vec<Connection>,
    /// What has come, and when.
    waiting: VecDeque<(WorkCompletion, Instant)>,
    /// Octets of it, and the most that there were.
    octets: u32,
    waited: u32,
    /// The least time that the server took for a line.
    least: Option<Span>,
}

impl ServerEnd {
    /// Answers all requests; gives the most octets that waited.
    fn serve(&mut self, clock: &Clock) -> Result<u32> {
        let mut left = COUNT * u64::from(CLIENTS);
        while left > 0 {
            while let Some(completion) = self.cq.poll() {
                self.take(completion, clock)?;
            }
            let Some((completion, came)) = self.waiting.pop_front() else {
                let completion = self.cq.wait(WAIT)?;
                self.take(completion, clock)?;
                continue;
            };
            left -= u64::from(self.consume(completion, came, clock)?);
        }
        Ok(self.waited)
    }

    fn take(&mut self, completion: WorkCompletion, clock: &Clock) -> Result<()> {
        let completion = checked(completion)?;
        self.octets += completion.byte_len;
        self.waited = self.waited.max(self.octets);
        self.waiting.push_back((completion, clock.now()));
        Ok(())
    }

    /// Consumes a packet, and answers where a request ends with it; gives whether one did.
    fn consume(&mut self, completion: WorkCompletion, came: Instant, clock: &Clock) -> Result<bool> {
        let began = clock.now();
        let (qpn, length) = (completion.qp_num, completion.byte_len);
        let mut all = self.connections.iter_mut();
        let connection = all.find(|it| it.qp.qp_num() == qpn).ok_or("an unknown queue pair")?;
        let buffer = completion.into_buffer().ok_or("a receive has a buffer")?;
        let octets =
            buffer.as_slice().and_then(|octets| octets.get(..length as usize)).ok_or("a short buffer")?;
        let (header, payload) = RequestHeader::parse(octets)?;
        if header.number != connection.next {
            return Err(format!("packet {} where {} was to come", header.number, connection.next).into());
        }
        let sum = |_| {
            payload
                .chunks_exact(8)
                .map(|word| u64::from_be_bytes(word.try_into().unwrap_or_default()))
                .fold(0, u64::wrapping_add)
        };
        let sums: Vec<u64> = (0..ROUNDS).map(sum).collect();
        connection.sum = connection.sum.wrapping_add(std::hint::black_box(sums)[0]);
        connection.next = if header.last { 0 } else { header.number + 1 };

        self.srq.post_recv(RecvWr::new(buffer))?;
        self.octets -= length;
        let now = clock.now();
        let (service, lines) = (now.since(began), length.div_ceil(LINE));
        // A program is not told what the cache lost. What took four times as long as it can do counts as lost.
        let of_line = Span::from_ps(service.as_ps() / u64::from(lines));
        let least = self.least.map_or(of_line, |least| least.min(of_line));
        self.least = Some(least);
        let missed = if of_line.as_ps() > 4 * least.as_ps() { lines } else { 0 };
        let credits = connection.server.processed(&Processed {
            lines,
            missed,
            service,
            residence: now.since(came),
            answered: header.last,
            idle: self.waiting.is_empty(),
        });
        if let Some(credits) = credits {
            let answers = header.last.then_some(header.request);
            let mut octets = ReturnHeader { answers, credits }.emit().to_vec();
            if header.last {
                octets.extend(std::mem::take(&mut connection.sum).to_be_bytes());
            }
            connection.qp.post_send(SendWr::send_inline(&octets).unsignaled())?;
        }
        Ok(header.last)
    }
}
