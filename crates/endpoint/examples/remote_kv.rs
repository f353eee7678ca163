//! A key-value table that clients read with RDMA READs alone: the server's processor takes no part in a look-up.
//!
//!     cargo run --release -p roci-endpoint --example remote_kv
//!
//! Server and client are two endpoints at one loopback address. The table is open-addressed, an entry is 64 octets:
//! key, version, 48 octets of value. The client READs one entry after the other until it meets the key or a gap. A
//! writer makes the version odd while it changes the value; who reads an odd version, reads again.

use roci_endpoint::{Access, CompletionQueue, Device, MemoryRegion, QueuePair, RemoteMemory, SendWr};
use std::error::Error;
use std::time::Duration;

const ENTRY: usize = 64;
const ENTRIES: usize = 1024;
const VALUE: usize = 48;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let address = "127.0.0.1".parse()?;
    let (near, far) = (Device::open(address)?, Device::open(address)?);

    let pd = far.alloc_pd();
    let cq = far.create_cq()?;
    let answering = pd.create_qp(&cq, &cq).build()?;
    let rights = Access::LOCAL_WRITE | Access::REMOTE_READ;
    let table = Table(pd.reg_mr(vec![0; ENTRY * ENTRIES], rights)?);
    for key in 1..=700 {
        table.put(key, format!("the value of {key}").as_bytes())?;
    }

    let pd = near.alloc_pd();
    let cq = near.create_cq()?;
    let asking = pd.create_qp(&cq, &cq).build()?;
    asking.connect(answering.info())?;
    answering.connect(asking.info())?;
    let scratch = pd.reg_mr(vec![0; ENTRY], Access::LOCAL_WRITE)?;
    let client = Client { qp: asking, cq, scratch, table: table.0.remote() };

    let mut reads = 0;
    for key in 1..=700 {
        let (value, cost) = client.get(key)?;
        reads += cost;
        if value.as_deref() != Some(format!("the value of {key}").as_str()) {
            return Err(format!("key {key} gave {value:?}").into());
        }
    }
    println!("700 keys found with {reads} READs; 701: {:?}", client.get(701)?.0);
    table.put(7, b"another value")?;
    println!("7 after a change: {:?}", client.get(7)?.0);
    Ok(())
}

/// Where the search for a key begins.
fn place_of(key: u64) -> usize {
    let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    usize::try_from(mixed).unwrap_or_default() % ENTRIES
}

/// The server's side.
struct Table(MemoryRegion);

impl Table {
    fn put(&self, key: u64, value: &[u8]) -> Result<()> {
        for step in 0..ENTRIES {
            let at = (place_of(key) + step) % ENTRIES * ENTRY;
            let (found, version) = (self.0.load(at)?, self.0.load(at + 8)?);
            if found != key && found != 0 {
                continue;
            }
            let mut octets = [0; VALUE];
            octets.get_mut(..value.len()).ok_or("a long value")?.copy_from_slice(value);
            self.0.write(at + 8, &(version + 1).to_ne_bytes())?;
            self.0.write(at, &key.to_ne_bytes())?;
            self.0.write(at + 16, &octets)?;
            self.0.write(at + 8, &(version + 2).to_ne_bytes())?;
            return Ok(());
        }
        Err("the table is full".into())
    }
}

struct Client {
    qp: QueuePair,
    cq: CompletionQueue,
    scratch: MemoryRegion,
    table: RemoteMemory,
}

impl Client {
    /// The value of a key, and how many READs that took.
    fn get(&self, key: u64) -> Result<(Option<String>, u32)> {
        let (mut step, mut reads) = (0, 0);
        while step < ENTRIES {
            let at = (place_of(key) + step) % ENTRIES * ENTRY;
            let buffer = self.scratch.buffer(0..ENTRY)?;
            self.qp.post_send(SendWr::read(buffer, self.table.plus(at as u64)))?;
            let completion = self.cq.wait(Duration::from_secs(5))?;
            reads += 1;
            if !completion.is_ok() {
                return Err(completion.status.to_string().into());
            }
            let entry = completion.into_buffer().ok_or("a READ brings its buffer back")?.to_vec();
            let word = |at: usize| entry[at..].first_chunk().map_or(0, |octets| u64::from_ne_bytes(*octets));
            if word(0) == 0 {
                return Ok((None, reads));
            }
            if word(0) != key {
                step += 1;
            } else if word(8).is_multiple_of(2) {
                let value = String::from_utf8_lossy(&entry[16..]);
                return Ok((Some(value.trim_end_matches('\0').to_owned()), reads));
            }
        }
        Ok((None, reads))
    }
}
