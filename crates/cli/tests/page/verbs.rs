use roci_endpoint::{Access, Device, SendWr};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Both ends in one program; on two hosts each opens a device at an address of its own.
    let address = "127.0.0.1".parse()?;
    let (near, far) = (Device::open(address)?, Device::open(address)?);

    // The far end: a queue pair, and memory that its peer may write.
    let pd = far.alloc_pd();
    let cq = far.create_cq()?;
    let passive = pd.create_qp(&cq, &cq).build()?;
    let target = pd.reg_mr(vec![0; 4096], Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;

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
    Ok(())
}
