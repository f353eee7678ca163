use roci_endpoint::{Change, Device, Event, RecvWr, SendWr, Transition};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::open("127.0.0.5".parse()?)?;
    let (pd, cq, events) = (device.alloc_pd(), device.create_cq()?, device.events()?);
    let srq = pd.create_srq(100);
    let served = pd.create_qp(&cq, &cq).srq(&srq).build()?;
    let client = pd.create_qp(&cq, &cq).build()?;
    served.connect(client.info())?;
    client.connect(served.info())?;

    let wait = Duration::from_secs(10);
    for _ in 0..10 {
        srq.post_recv(RecvWr::empty())?;
    }
    srq.set_limit(10)?;
    client.post_send(SendWr::send_inline(&[]).unsignaled())?;
    assert!(cq.wait(wait)?.is_ok());
    assert_eq!(events.wait(wait)?, Event::SrqLimitReached(srq.srq_num()));

    served.modify(&Change { transition: Some(Transition::Fail), ..Change::default() })?;
    assert_eq!(events.wait(wait)?, Event::LastReceiveReached(served.qp_num()));
    Ok(())
}
