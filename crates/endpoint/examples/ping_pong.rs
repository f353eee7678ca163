//! Sends a message to and fro between two endpoints, and tells how long that takes.
//!
//!     cargo run --release -p roci-endpoint --example ping_pong -- server 127.0.0.1
//!     cargo run --release -p roci-endpoint --example ping_pong -- client 127.0.0.1 127.0.0.1
//!
//! The two tell each other their queue pairs by TCP, port 18600.

use roci_endpoint::{Access, Device, QpInfo, Qpn, RecvWr, SendWr};
use roci_units::Psn;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

const PORT: u16 = 18_600;
const SIZE: usize = 64;
const COUNT: u32 = 10_000;
const WAIT: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (is_client, local) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", local] => (false, local.parse()?),
        ["client", local, _] => (true, local.parse()?),
        _ => {
            return Err(
                "usage: ping_pong server LOCAL, and at the other end ping_pong client LOCAL REMOTE".into()
            );
        }
    };
    let device = Device::open(local)?;
    let pd = device.alloc_pd();
    let cq = device.create_cq()?;
    let qp = pd.create_qp(&cq, &cq).build()?;
    let region = pd.reg_mr(vec![0; 16 * SIZE], Access::LOCAL_WRITE)?;
    for slot in 1..16 {
        qp.post_recv(RecvWr::new(region.buffer(slot * SIZE..(slot + 1) * SIZE)?))?;
    }
    let stream = if is_client {
        let there = (args[2].parse::<IpAddr>()?, PORT);
        TcpStream::connect(there)
            .map_err(|error| format!("{}, port {PORT}: {error}; start the other end there first", there.0))?
    } else {
        TcpListener::bind((local, PORT))?.accept()?.0
    };
    qp.connect(exchange(stream, qp.info())?)?;

    let message = region.slice(0..SIZE)?;
    let mut received = 0;
    #[expect(clippy::disallowed_methods, reason = "it measures")]
    let begin = std::time::Instant::now();
    if is_client {
        qp.post_send(SendWr::send(message.clone()).unsignaled())?;
    }
    while received < COUNT {
        let completion = cq.wait(WAIT)?;
        if !completion.is_ok() {
            return Err(completion.status.to_string().into());
        }
        let Some(buffer) = completion.into_buffer() else { continue };
        received += 1;
        qp.post_recv(RecvWr::new(buffer))?;
        if !is_client || received < COUNT {
            // The last answer is waited for, so that it is not lost with the queue pair.
            let answer = SendWr::send(message.clone());
            qp.post_send(if received < COUNT { answer.unsignaled() } else { answer })?;
        }
    }
    if !is_client {
        cq.wait(WAIT)?;
    }
    let half = begin.elapsed() / COUNT / 2;
    println!("{COUNT} times {SIZE} octets to and fro, half a round trip in {half:?}");
    Ok(())
}

/// Tells the peer our queue pair, and learns its.
fn exchange(mut stream: TcpStream, ours: QpInfo) -> Result<QpInfo, Box<dyn Error>> {
    writeln!(stream, "{} {} {}", ours.address, ours.qpn.get(), ours.psn.get())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        [address, qpn, psn] => {
            Ok(QpInfo { address: address.parse()?, qpn: Qpn::new(qpn.parse()?), psn: Psn::new(psn.parse()?) })
        }
        _ => Err("the peer said something else".into()),
    }
}
