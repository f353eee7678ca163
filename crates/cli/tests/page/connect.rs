use roci_endpoint::cm::{ConnParam, ConnectionManager};
use roci_endpoint::{Device, RecvWr, SendWr};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wait = Duration::from_secs(10);
    // Again both ends in one program, at one address, as two programs may be.
    let (near, far) = (Device::open("127.0.0.3".parse()?)?, Device::open("127.0.0.3".parse()?)?);
    let cqs = (near.create_cq()?, far.create_cq()?);
    let active = near.alloc_pd().create_qp(&cqs.0, &cqs.0).build()?;
    let passive = far.alloc_pd().create_qp(&cqs.1, &cqs.1).build()?;

    // The one listens, the other asks; `connect` asks and waits, where the two are not one thread.
    let listener = ConnectionManager::new(&far)?.listen(7471)?;
    let manager = ConnectionManager::new(&near)?;
    let mut asked = manager.request(&active, "127.0.0.3:7471".parse()?, &ConnParam::default())?;

    let request = listener.get_request(wait)?.ok_or("nobody has asked")?;
    let accepted = request.accept(&passive, &ConnParam::default())?;
    let connection = asked.wait(&active, wait)?.ok_or("no answer yet")?;
    accepted.wait_established(wait)?;

    // Both queue pairs are connected now; here immediate data alone go over them.
    passive.post_recv(RecvWr::empty())?;
    active.post_send(SendWr::send_inline(&[]).imm(7))?;
    assert_eq!(cqs.1.wait(wait)?.imm(), Some(7));

    connection.disconnect();
    assert!(accepted.wait_disconnected(wait));
    Ok(())
}
