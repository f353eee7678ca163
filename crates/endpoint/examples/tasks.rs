//! A server that answers many clients from one thread: tasks of tokio in place of threads.
//!
//!     cargo run --release -p roci-endpoint --features tokio --example tasks
//!
//! Server and clients are two endpoints at two loopback addresses. Each client connects by RDMA-CM, sends a number, and
//! gets its square.

use roci_endpoint::asynchronous::AsyncCompletionQueue;
use roci_endpoint::cm::{ConnParam, ConnectRequest, ConnectionManager};
use roci_endpoint::{Access, Device, RecvWr, SendWr};
use std::error::Error;
use std::net::SocketAddr;

const CLIENTS: u64 = 32;
const PORT: u16 = 7471;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let (near, far) = (Device::open("127.0.0.1".parse()?)?, Device::open("127.0.0.2".parse()?)?);
        let answering = ConnectionManager::new(&far)?;
        let listener = answering.listen(PORT)?;
        let served = far.clone();
        tokio::task::spawn_local(async move {
            while let Ok(request) = listener.get_request_async().await {
                let device = served.clone();
                tokio::task::spawn_local(async move {
                    if let Err(error) = answer(&device, request).await {
                        eprintln!("a client was lost: {error}");
                    }
                });
            }
        });
        let manager = ConnectionManager::new(&near)?;
        let to = SocketAddr::new(far.address(), PORT);
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let (device, manager) = (near.clone(), manager.clone());
            clients.push(tokio::task::spawn_local(async move {
                ask(&device, &manager, to, number).await.map_err(|error| error.to_string())
            }));
        }
        let mut sum = 0;
        for client in clients {
            sum += client.await??;
        }
        println!("the sum of the squares below {CLIENTS} is {sum}");
        let expected: u64 = (0..CLIENTS).map(|number| number * number).sum();
        if sum == expected { Ok(()) } else { Err(format!("and should be {expected}").into()) }
    })
}

/// The server's side of one connection.
async fn answer(device: &Device, request: ConnectRequest) -> Result<()> {
    let (pd, cq) = (device.alloc_pd(), AsyncCompletionQueue::new(device.create_cq()?)?);
    let qp = pd.create_qp(cq.get_ref(), cq.get_ref()).build()?;
    let region = pd.reg_mr(vec![0; 8], Access::LOCAL_WRITE)?;
    qp.post_recv(RecvWr::new(region.buffer(0..8)?))?;
    let connection = request.accept_async(&qp, &ConnParam::default()).await?;
    let heard = cq.poll().await?.into_buffer().ok_or("no buffer")?.to_vec();
    let number = u64::from_be_bytes(heard.try_into().map_err(|_| "a number has 8 octets")?);
    qp.post_send(SendWr::send_inline(&number.wrapping_mul(number).to_be_bytes()))?;
    cq.poll().await?;
    connection.disconnected_async().await;
    Ok(())
}

/// A client.
async fn ask(device: &Device, manager: &ConnectionManager, to: SocketAddr, number: u64) -> Result<u64> {
    let (pd, cq) = (device.alloc_pd(), AsyncCompletionQueue::new(device.create_cq()?)?);
    let qp = pd.create_qp(cq.get_ref(), cq.get_ref()).build()?;
    let region = pd.reg_mr(vec![0; 8], Access::LOCAL_WRITE)?;
    qp.post_recv(RecvWr::new(region.buffer(0..8)?))?;
    let connection = manager.connect_async(&qp, to, &ConnParam::default()).await?;
    qp.post_send(SendWr::send_inline(&number.to_be_bytes()).unsignaled())?;
    let heard = cq.poll().await?.into_buffer().ok_or("no buffer")?.to_vec();
    connection.disconnect();
    Ok(u64::from_be_bytes(heard.try_into().map_err(|_| "a square has 8 octets")?))
}
