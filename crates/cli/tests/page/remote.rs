use roci_endpoint::cm::{CmError, ConnParam, ConnectionManager};
use roci_endpoint::{Access, Device, RemoteMemory, SendWr};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wait = Duration::from_secs(10);
    let far = Device::open("127.0.0.5".parse()?)?;
    let (pd, cq) = (far.alloc_pd(), far.create_cq()?);
    let passive = pd.create_qp(&cq, &cq).build()?;
    let target = pd.reg_mr(vec![0; 4096], Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    let RemoteMemory { address, rkey } = target.remote();
    let listener = ConnectionManager::new(&far)?.listen(7471)?;
    let server = std::thread::spawn(move || {
        let told = [&address.to_be_bytes()[..], &rkey.to_be_bytes()].concat();
        let request = listener.get_request(wait)?.expect("somebody asks");
        let accepted = request.accept(&passive, &ConnParam { private_data: told, ..ConnParam::default() })?;
        // Both are kept: what is dropped is closed.
        Ok::<_, CmError>((accepted, passive))
    });

    let near = Device::open("127.0.0.4".parse()?)?;
    let (pd, cq) = (near.alloc_pd(), near.create_cq()?);
    let active = pd.create_qp(&cq, &cq).build()?;
    let source = pd.reg_mr(vec![7; 4096], Access::LOCAL_WRITE)?;
    let manager = ConnectionManager::new(&near)?;
    let connection = manager.connect(&active, "127.0.0.5:7471".parse()?, &ConnParam::default())?;

    // What the peer told may have zeros behind it.
    let (address, rest) = connection.private_data().split_first_chunk().ok_or("no address")?;
    let (rkey, _) = rest.split_first_chunk().ok_or("no key")?;
    let remote = RemoteMemory { address: u64::from_be_bytes(*address), rkey: u32::from_be_bytes(*rkey) };
    active.post_send(SendWr::write(source.slice(..)?, remote))?;
    assert!(cq.wait(wait)?.is_ok());
    assert_eq!(target.load(8)?, u64::from_ne_bytes([7; 8]));
    let (_accepted, _passive) = server.join().expect("it accepts")?;
    Ok(())
}
