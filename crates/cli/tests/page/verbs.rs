use roci_endpoint::{Access, Device, RecvWr, SendWr};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Both ends in one program; on two hosts each opens a device at an address of its own.
    let address = "127.0.0.1".parse()?;
    let (near, far) = (Device::open(address)?, Device::open(address)?);

    // The far end: a queue pair, and memory that its peer may write and read.
    let pd = far.alloc_pd();
    let far_cq = far.create_cq()?;
    let passive = pd.create_qp(&far_cq, &far_cq).build()?;
    let rights = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
    let target = pd.reg_mr(vec![0; 4096], rights)?;

    // The near end: a queue pair, and memory to write from.
    let pd = near.alloc_pd();
    let cq = near.create_cq()?;
    let active = pd.create_qp(&cq, &cq).build()?;
    let source = pd.reg_mr(vec![7; 4096], Access::LOCAL_WRITE)?;

    // Each is told the other's address, number and first PSN. Between two hosts `info()` goes over TCP, as in the example
    // `ping_pong`, with `remote()`, where the memory is and its key; or `cm` connects them.
    active.connect(passive.info())?;
    passive.connect(active.info())?;
    let remote = target.remote();

    // A WRITE of the first 1024 octets of the source, to octet 64 of the target and on.
    active.post_send(SendWr::write(source.slice(0..1024)?, remote.plus(64)).wr_id(1))?;

    // Its completion, by polling; `cq.wait(timeout)` blocks in place of that.
    let completion = loop {
        match cq.poll() {
            Some(completion) => break completion,
            None => std::thread::yield_now(),
        }
    };
    assert_eq!((completion.wr_id, completion.is_ok()), (1, true), "{}", completion.status);

    let mut written = [0; 1024];
    target.read(64, &mut written)?;
    assert_eq!(written, [7; 1024]);

    // A SEND goes where the peer has posted a buffer to receive it; the receive's completion brings the buffer back.
    let second = Duration::from_secs(1);
    passive.post_recv(RecvWr::new(target.buffer(2048..3072)?).wr_id(2))?;
    active.post_send(SendWr::send(source.slice(1024..1029)?).wr_id(3))?;
    let received = far_cq.wait(second)?;
    assert_eq!((received.wr_id, received.is_ok(), received.byte_len), (2, true, 5));
    assert_eq!(received.octets(), [7; 5]);
    // The buffer comes back as long as it was, for the next one.
    passive.post_recv(RecvWr::new(received.into_buffer().ok_or("a receive has a buffer")?))?;
    assert!(cq.wait(second)?.is_ok(), "the SEND's own");

    // A READ of what was written, into a buffer of ours, as many octets as it is long.
    let into = source.buffer(2048..3072)?;
    active.post_send(SendWr::read(into, remote.plus(64)).wr_id(4))?;
    let read = cq.wait(second)?;
    assert_eq!((read.wr_id, read.is_ok()), (4, true), "{}", read.status);
    let buffer = read.into_buffer().ok_or("a READ has a buffer")?;
    assert_eq!(buffer.as_slice(), Some(&[7; 1024][..]));
    Ok(())
}
