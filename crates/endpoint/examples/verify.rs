//! One end of a connection on which every octet is compared: SEND, WRITE, READ and atomics of many lengths. The other end
//! is `interop/verify.py` on an RDMA device of Linux, or this program again.
//!
//!     verify ADDRESS MTU lead|follow ROUNDS           waits at TCP port 18600
//!     verify ADDRESS MTU lead|follow ROUNDS PEER      goes there
//!
//! Both ends tell each other, as a line over TCP, `end QPN PSN ADDRESS VIRTUAL-ADDRESS RKEY`, and then `connected`. The
//! follower's memory has parts of 256 KiB: for WRITEs, for READs, three that it does not tell of, and two numbers. In each
//! round the leader says `round N LENGTH`; the follower posts a receive, prepares what is to be read, and answers `ready`;
//! the leader SENDs, WRITEs, READs, adds 1 to the first number and swaps the second from N to N + 1, compares what came
//! back, and says `check`; the follower compares, and answers `right`. The octet at place i of a pattern s is
//! (i mod 251) · 131 + s · 29, modulo 256: N is sent, N + 1 read, N + 2 written.

use roci_endpoint::{
    Access, CompletionQueue, Device, MemoryRegion, Mtu, Psn, QpInfo, Qpn, QueuePair, RecvWr, RemoteMemory,
    SendWr, WorkCompletion,
};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

const PORT: u16 = 18600;
const PART: usize = 256 << 10;
const SOURCE: usize = PART;
const COUNTERS: usize = 5 * PART;
const LENGTHS: [usize; 11] = [1, 3, 64, 255, 1024, 1025, 4096, 4097, 30_000, 65_536, 200_001];
/// Longer than any number of retransmissions takes.
const WAIT: Duration = Duration::from_secs(60);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length).map(|place| (((place % 251) * 131) as u64 + seed * 29).to_le_bytes()[0]).collect()
}

/// A line of words over TCP.
struct Talk(BufReader<TcpStream>);

impl Talk {
    fn say(&mut self, line: &str) -> Result<()> {
        Ok(self.0.get_mut().write_all(format!("{line}\n").as_bytes())?)
    }

    /// The next line, whose first word is to be one of these; the other words.
    fn hear(&mut self, wanted: &[&str]) -> Result<(String, Vec<String>)> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        match words.next() {
            Some(first) if wanted.contains(&first.as_str()) => Ok((first, words.collect())),
            _ => Err(format!("{wanted:?} was due, but {line:?} came").into()),
        }
    }
}

struct End {
    cq: CompletionQueue,
    qp: QueuePair,
    /// What the peer reaches.
    open: MemoryRegion,
    /// What it does not.
    own: MemoryRegion,
}

impl End {
    fn done(&self) -> Result<WorkCompletion> {
        let completion = self.cq.wait(WAIT)?;
        if completion.is_ok() { Ok(completion) } else { Err(format!("{completion:?}").into()) }
    }

    fn filled(&self, place: usize, octets: &[u8]) -> Result<roci_endpoint::Buffer> {
        let mut buffer = self.own.buffer(place..place + octets.len())?;
        buffer.write(0, octets)?;
        Ok(buffer)
    }
}

fn expect(what: &str, found: &[u8], wanted: &[u8]) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(format!("{what} of {} octets is wrong", wanted.len()).into()) }
}

fn lead(end: &End, talk: &mut Talk, rounds: u64, there: RemoteMemory) -> Result<()> {
    for (round, length) in (0..rounds).zip(LENGTHS.into_iter().cycle()) {
        talk.say(&format!("round {round} {length}"))?;
        talk.hear(&["ready"])?;
        let sent = end.filled(0, &pattern(round, length))?;
        let written = end.filled(PART, &pattern(round + 2, length))?;
        let read = end.own.buffer(2 * PART..2 * PART + length)?;
        let (first, second) = (there.plus(COUNTERS as u64), there.plus(COUNTERS as u64 + 8));
        end.qp.post_sends([
            SendWr::send(sent),
            SendWr::write(written, there),
            SendWr::read(read, there.plus(SOURCE as u64)),
            SendWr::fetch_add(first, 1),
            SendWr::compare_swap(second, round, round + 1),
        ])?;
        end.done()?;
        end.done()?;
        let read = end.done()?.into_buffer().ok_or("a READ without its buffer")?;
        expect("READ", &read.to_vec(), &pattern(round + 1, length))?;
        for _ in 0..2 {
            expect("atomic", &end.done()?.original.to_le_bytes(), &round.to_le_bytes())?;
        }
        talk.say("check")?;
        talk.hear(&["right"])?;
    }
    talk.say("done")
}

fn follow(end: &End, talk: &mut Talk) -> Result<()> {
    loop {
        let (word, rest) = talk.hear(&["round", "done"])?;
        let [round, length] = rest.as_slice() else { return Ok(()) };
        if word == "done" {
            return Ok(());
        }
        let (round, length): (u64, usize) = (round.parse()?, length.parse()?);
        end.open.write(SOURCE, &pattern(round + 1, length))?;
        end.qp.post_recv(RecvWr::new(end.own.buffer(0..length)?))?;
        talk.say("ready")?;
        talk.hear(&["check"])?;
        let received = end.done()?.into_buffer().ok_or("a receive without its buffer")?;
        expect("SEND", &received.to_vec(), &pattern(round, length))?;
        let mut there = vec![0; length];
        end.open.read(0, &mut there)?;
        expect("WRITE", &there, &pattern(round + 2, length))?;
        for place in [COUNTERS, COUNTERS + 8] {
            expect("atomic", &end.open.load(place)?.to_le_bytes(), &(round + 1).to_le_bytes())?;
        }
        talk.say("right")?;
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (address, mtu, role, rounds, peer) = match arguments.as_slice() {
        [address, mtu, role, rounds] => (address, mtu, role, rounds, None),
        [address, mtu, role, rounds, peer] => (address, mtu, role, rounds, Some(peer)),
        _ => return Err("usage: verify ADDRESS MTU lead|follow ROUNDS [PEER]".into()),
    };
    let address: IpAddr = address.parse()?;
    let mtu = Mtu::from_octets(mtu.parse()?).ok_or("MTU: 256, 512, 1024, 2048 or 4096")?;
    let device = Device::open(address)?;
    let (pd, cq) = (device.alloc_pd(), device.create_cq()?);
    let qp = pd.create_qp(&cq, &cq).path_mtu(mtu).timeout(16).build()?;
    let open = pd.reg_mr(vec![0; COUNTERS + 4096], Access::ALL)?;
    let own = pd.reg_mr(vec![0; 3 * PART], Access::LOCAL_WRITE)?;
    let end = End { cq, qp, open, own };
    let stream = match peer {
        Some(peer) => TcpStream::connect((peer.parse::<IpAddr>()?, PORT))?,
        None => TcpListener::bind((address, PORT))?.accept()?.0,
    };
    stream.set_nodelay(true)?;
    let mut talk = Talk(BufReader::new(stream));
    let QpInfo { qpn, psn, .. } = end.qp.info();
    let RemoteMemory { address: memory, rkey } = end.open.remote();
    talk.say(&format!("end {} {} {address} {memory} {rkey}", qpn.get(), psn.get()))?;
    let (_, words) = talk.hear(&["end"])?;
    let [qpn, psn, peer, memory, rkey] = words.as_slice() else { return Err("end has five numbers".into()) };
    let (qpn, psn) = (Qpn::new(qpn.parse()?), Psn::new(psn.parse()?));
    end.qp.connect(QpInfo { address: peer.parse()?, qpn, psn })?;
    talk.say("connected")?;
    talk.hear(&["connected"])?;
    match role.as_str() {
        "lead" => {
            let there = RemoteMemory { address: memory.parse()?, rkey: rkey.parse()? };
            lead(&end, &mut talk, rounds.parse()?, there)?;
        }
        "follow" => follow(&end, &mut talk)?,
        _ => return Err("lead or follow".into()),
    }
    // What the peer still repeats is to be answered.
    std::thread::sleep(Duration::from_millis(100));
    println!("every octet is right; {:?}", end.qp.counters());
    Ok(())
}
