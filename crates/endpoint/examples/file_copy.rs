//! Copies a file by RDMA WRITEs, goes on where an earlier copy ended, and compares checksums.
//!
//!     cargo run --release -p roci-endpoint --example file_copy -- receive 127.0.0.1 TO
//!     cargo run --release -p roci-endpoint --example file_copy -- send 127.0.0.1 127.0.0.1 FROM
//!
//! The two talk over TCP, port 18601: the sender tells the length of the file and the CRC-32 of all of it; the receiver
//! tells how much it has and the CRC of that, where to WRITE, and its queue pair. Where that CRC is not the sender's, the
//! copy begins anew. Each block is a WRITE with immediate into one of the receiver's slots; the receiver grants a slot
//! again by a SEND when the block is in the file, so a copy that is interrupted has only whole blocks.

use roci_endpoint::{
    Access, CompletionKind, CompletionQueue, Device, QpInfo, Qpn, QueuePair, RecvWr, RemoteMemory, SendWr,
    WorkCompletion,
};
use roci_units::Psn;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

const PORT: u16 = 18_601;
const BLOCK: usize = 1 << 20;
const SLOTS: usize = 4;
const WAIT: Duration = Duration::from_secs(10);

const GONE: &str = "the other end has gone; start both again, and the copy goes on where it ended";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

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
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", local, to] => receive(local.parse()?, to),
        ["send", local, remote, from] => send(local.parse()?, remote.parse()?, from),
        _ => {
            Err("usage: file_copy receive LOCAL TO, and at the other end file_copy send LOCAL REMOTE FROM"
                .into())
        }
    }
}

/// The CRC-32 of the first `length` octets of a file; the file is read from its start on.
fn checksum(file: &mut File, length: u64) -> Result<u32> {
    file.seek(SeekFrom::Start(0))?;
    let (mut hasher, mut left) = (crc32fast::Hasher::new(), length);
    let mut block = vec![0; BLOCK];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        file.read_exact(&mut block[..wanted])?;
        hasher.update(&block[..wanted]);
        left -= wanted as u64;
    }
    Ok(hasher.finalize())
}

fn gone(error: std::io::Error) -> String {
    format!("{error}: {GONE}")
}

fn tell(stream: &mut TcpStream, numbers: &[u64], info: QpInfo) -> Result<()> {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let QpInfo { address, qpn, psn } = info;
    Ok(writeln!(stream, "{address} {} {} {}", qpn.get(), psn.get(), numbers.join(" ")).map_err(gone)?)
}

fn hear(stream: &TcpStream) -> Result<(Vec<u64>, QpInfo)> {
    let mut line = String::new();
    BufReader::new(stream.try_clone()?).read_line(&mut line).map_err(gone)?;
    let mut words = line.split_whitespace();
    let mut word = || words.next().ok_or(GONE);
    let address = word()?.parse()?;
    let (qpn, psn) = (Qpn::new(word()?.parse()?), Psn::new(word()?.parse()?));
    let numbers = words.map(str::parse).collect::<std::result::Result<_, _>>()?;
    Ok((numbers, QpInfo { address, qpn, psn }))
}

/// The next work request that is done.
fn next(cq: &CompletionQueue) -> Result<WorkCompletion> {
    let completion = cq.wait(WAIT).map_err(gone)?;
    if completion.is_ok() { Ok(completion) } else { Err(format!("{}: {GONE}", completion.status).into()) }
}

fn receive(local: IpAddr, path: &str) -> Result<()> {
    let device = Device::open(local)?;
    let pd = device.alloc_pd();
    let cq = device.create_cq()?;
    let rights = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let region = pd.reg_mr(vec![0; SLOTS * BLOCK], rights)?;
    let qp = pd.create_qp(&cq, &cq).build()?;
    let mut stream = TcpListener::bind((local, PORT))?.accept()?.0;
    let (told, peer) = hear(&stream)?;
    let [length, whole] = told[..] else { return Err("length and checksum of the file".into()) };

    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let have = file.metadata()?.len().min(length) / BLOCK as u64 * BLOCK as u64;
    let sum = checksum(&mut file, have)?;
    for _ in 0..SLOTS {
        qp.post_recv(RecvWr::empty())?;
    }
    qp.connect(peer)?;
    let RemoteMemory { address, rkey } = region.remote();
    tell(&mut stream, &[have, sum.into(), address, rkey.into()], qp.info())?;
    let (begin, _) = hear(&stream)?;
    let mut at = *begin.first().ok_or("where it begins")?;
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;

    let mut block = vec![0; BLOCK];
    while at < length {
        let completion = next(&cq)?;
        let Some(slot) = completion.imm() else { continue };
        let (slot, size) = (usize::try_from(slot)? % SLOTS, usize::try_from(completion.byte_len)?);
        region.read(slot * BLOCK, &mut block[..size])?;
        file.write_all(&block[..size])?;
        at += size as u64;
        qp.post_recv(RecvWr::empty())?;
        qp.post_send(SendWr::send_inline(&[1]))?;
    }
    let right = u64::from(checksum(&mut file, length)?) == whole;
    tell(&mut stream, &[u64::from(right)], qp.info())?;
    // The sender says that it has heard, so that nothing of ours is needed any more.
    hear(&stream)?;
    println!("{length} octets, {}", if right { "checksum right" } else { "CHECKSUM WRONG" });
    if right { Ok(()) } else { Err("the copy differs".into()) }
}

fn send(local: IpAddr, remote: IpAddr, path: &str) -> Result<()> {
    let device = Device::open(local)?;
    let pd = device.alloc_pd();
    let cq = device.create_cq()?;
    let region = pd.reg_mr(vec![0; SLOTS * (BLOCK + 8)], Access::LOCAL_WRITE)?;
    let qp = pd.create_qp(&cq, &cq).build()?;
    let mut file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let length = file.metadata()?.len();
    let sum = checksum(&mut file, length)?;
    let mut stream = TcpStream::connect((remote, PORT))
        .map_err(|error| format!("{remote}, port {PORT}: {error}; start `file_copy receive` there first"))?;
    tell(&mut stream, &[length, sum.into()], qp.info())?;
    let (told, peer) = hear(&stream)?;
    let [have, sum, address, rkey] = told[..] else { return Err("what the receiver has".into()) };
    qp.connect(peer)?;
    let begin = if have <= length && u64::from(checksum(&mut file, have)?) == sum { have } else { 0 };
    tell(&mut stream, &[begin], qp.info())?;
    file.seek(SeekFrom::Start(begin))?;
    println!("{begin} of {length} octets are there");

    let mut free: Vec<_> = (0..SLOTS)
        .map(|slot| region.buffer(slot * BLOCK..(slot + 1) * BLOCK))
        .collect::<std::result::Result<_, _>>()?;
    for slot in 0..SLOTS {
        let at = SLOTS * BLOCK + 8 * slot;
        qp.post_recv(RecvWr::new(region.buffer(at..at + 8)?))?;
    }
    let to = RemoteMemory { address, rkey: u32::try_from(rkey)? };
    let (mut at, mut slot, mut granted, mut flying) = (begin, 0, SLOTS, 0);
    while at < length || flying > 0 {
        while at < length && granted > 0 && !free.is_empty() {
            let Some(mut buffer) = free.pop() else { break };
            let size = usize::try_from(length - at).unwrap_or(BLOCK).min(BLOCK);
            buffer.set_len(size);
            file.read_exact(buffer.as_mut_slice().ok_or("local memory is ours")?)?;
            write_block(&qp, buffer, to.plus((slot * BLOCK) as u64), slot)?;
            slot = (slot + 1) % SLOTS;
            (at, granted, flying) = (at + size as u64, granted - 1, flying + 1);
        }
        let completion = next(&cq)?;
        if completion.opcode == CompletionKind::Write {
            flying -= 1;
            for slice in completion.into_slices() {
                let mut buffer = slice.try_into_buffer().map_err(|_| "nobody else has it")?;
                buffer.set_len(BLOCK);
                free.push(buffer);
            }
        } else if let Some(buffer) = completion.into_buffer() {
            granted += 1;
            qp.post_recv(RecvWr::new(buffer))?;
        }
    }
    let (right, _) = hear(&stream)?;
    tell(&mut stream, &[], qp.info())?;
    if right == [1] { Ok(()) } else { Err("the copy differs".into()) }
}

fn write_block(qp: &QueuePair, buffer: roci_endpoint::Buffer, to: RemoteMemory, slot: usize) -> Result<()> {
    qp.post_send(SendWr::write(buffer, to).imm(u32::try_from(slot)?))?;
    Ok(())
}
