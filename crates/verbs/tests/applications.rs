//! Applications that use RDMA for a purpose of their own, as distributions compile them, run over this library.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod common;

use common::{Killed, library, preloaded_line, succeeded};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// A virtual machine that does not run, and its monitor.
struct Machine {
    qemu: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Machine {
    fn new(at: &str, more: &str) -> Self {
        let line = "qemu-system-x86_64 -nodefaults -display none -machine q35 -m 64 -accel tcg -S -qmp stdio";
        let mut qemu = preloaded_line(&format!("{line} {more}"), at);
        qemu.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut qemu = qemu.spawn().unwrap();
        let (to, from) = (qemu.stdin.take().unwrap(), BufReader::new(qemu.stdout.take().unwrap()));
        let mut machine = Self { qemu, to, from };
        machine.ask(r#"{"execute":"qmp_capabilities"}"#);
        machine
    }

    /// What it answers, past what it tells by itself.
    fn ask(&mut self, command: &str) -> String {
        writeln!(self.to, "{command}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "{command}: the machine has ended");
            assert!(!line.contains("\"error\""), "{command}: {line}");
            if line.contains("\"return\"") {
                return line;
            }
        }
    }

    /// What its memory holds from an address on.
    fn memory(&mut self, address: u64, octets: usize, file: &Path) -> Vec<u8> {
        let (execute, file_name) = (r#"{"execute":"pmemsave","arguments":"#, file.display());
        self.ask(&format!(r#"{execute}{{"val":{address},"size":{octets},"filename":"{file_name}"}}}}"#));
        std::fs::read(file).unwrap()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

/// So many octets that look like none in particular.
fn arbitrary(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let octets = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    });
    octets.take(count).collect()
}

#[test]
fn a_virtual_machine_moves_with_all_that_its_memory_holds() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [loaded, moved] = ["memory-loaded", "memory-moved"].map(|name| directory.join(name));
    let octets = arbitrary(8 << 20);
    std::fs::write(&loaded, &octets).unwrap();
    let (address, to) = (0x0100_0000, "rdma:127.0.5.1:18801");
    let mut far = Machine::new("127.0.5.1", &format!("-incoming {to}"));
    let file = loaded.display();
    let loader = format!("-device loader,file={file},addr={address:#x},force-raw=on");
    let mut near = Machine::new("127.0.5.2", &loader);
    near.ask(&format!(r#"{{"execute":"migrate","arguments":{{"uri":"{to}"}}}}"#));
    let begin = Instant::now();
    loop {
        let said = near.ask(r#"{"execute":"query-migrate"}"#);
        if said.contains(r#""status": "completed""#) {
            break;
        }
        assert!(!said.contains("failed") && begin.elapsed() < Duration::from_secs(60), "{said}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(far.memory(address, octets.len(), &moved) == octets, "the memory is another one");
}

#[test]
fn qperf_measures() {
    let [far, near] = ["127.0.5.3", "127.0.5.4"];
    let server = Killed::begun(preloaded_line("qperf --listen_port 18803", far));
    for test in [
        "rc_lat",
        "rc_bw",
        "rc_bi_bw",
        "rc_rdma_write_lat",
        "rc_rdma_read_bw",
        "ver_rc_compare_swap",
        "ver_rc_fetch_add",
    ] {
        let line = format!("qperf -cm1 --listen_port 18803 -t 1 {far} {test}");
        let said = succeeded(preloaded_line(&line, near).output().unwrap(), &line);
        // "latency  =  4.2 us", or ms on a busy machine.
        assert!(["latency  =", "bw  =", "msg_rate  ="].iter().any(|told| said.contains(told)), "{said}");
    }
    drop(server);
}

/// fio asks for no retries where its receiver has posted no receive, and its receiver posts as many as its sender has under way: it is done
/// at all because each end tells the other of its receives.
#[test]
fn fio_transfers_by_each_verb() {
    let [far, near] = ["127.0.5.5", "127.0.5.6"];
    for (port, verb) in (18805..).zip(["send", "write", "read"]) {
        let line = |more: &str| {
            format!(
                "fio --name={verb} --thread --ioengine=rdma --port={port} --size=8m --bs=16k --iodepth=8 {more}"
            )
        };
        let server = Killed::begun(preloaded_line(&line("--rw=read"), far));
        // "write" is who asks. It asks once, where it may come too early.
        let line = line(&format!("--rw=write --verb={verb} --hostname={far}"));
        let said = (0..20).find_map(|_| {
            std::thread::sleep(Duration::from_millis(300));
            let output = Killed::begun(preloaded_line(&line, near)).ended();
            output.status.success().then(|| succeeded(output, &line))
        });
        assert!(said.is_some_and(|said| said.contains("io=8192KiB")), "{line}");
        succeeded(server.ended(), "the server");
    }
}

/// iSCSI over RDMA, with the target and the initiators in user space. The target takes a signal by a descriptor, which no thread of ours may
/// take before; the initiators have lists of parts in packed structures.
#[test]
fn iser_targets_serve_what_their_disks_hold_and_keep_what_is_written() {
    let [far, near] = ["127.0.5.43", "127.0.5.44"];
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [disk, socket] = ["iser-disk", "iser-control"].map(|name| directory.join(name));
    let octets = arbitrary(4 << 20);
    std::fs::write(&disk, &octets).unwrap();
    // The port cannot be named: tgtd looks at an `errno` of before.
    let mut server =
        preloaded_line(&format!("tgtd -f -C 77 --iscsi portal={far}:18808 --iser pool_sz_mb=16"), far);
    server.env("TGT_IPC_SOCKET", &socket);
    let server = Killed::begun(server);
    let [target, initiator] = ["target", "initiator"].map(|name| format!("iqn.2026-01.rocinante:{name}"));
    for asked in [
        format!("--op new --mode target --tid 1 -T {target}"),
        format!("--op new --mode logicalunit --tid 1 --lun 1 -b {}", disk.display()),
        // Of initiators over RDMA it wants to know both the address and the name.
        "--op bind --mode target --tid 1 -I ALL".to_owned(),
        format!("--op bind --mode target --tid 1 -Q {initiator}"),
    ] {
        let begin = Instant::now();
        let mut told = Command::new("tgtadm");
        told.args(["-C", "77", "--lld", "iser"]).args(asked.split(' ')).env("TGT_IPC_SOCKET", &socket);
        while !told.output().unwrap().status.success() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{asked}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    let url = format!("iser://{far}/{target}/1");
    for (line, said) in [
        ("iscsi-inq", "Product:VIRTUAL-DISK"),
        ("iscsi-readcapacity16", "Total size:4194304"),
        // It is told to compare what it has with what was read before.
        ("iscsi-test-cu -t SCSI.Verify16.Simple", "Tests completed with return value: 0"),
        ("iscsi-test-cu --dataloss -t SCSI.Write16.Simple", "Tests completed with return value: 0"),
    ] {
        let line = format!("{line} -i {initiator} {url}");
        let told = succeeded(Killed::begun(preloaded_line(&line, near)).ended(), &line);
        assert!(told.contains(said) && !told.contains("SKIPPED"), "{line}: {told}");
    }
    let kept = std::fs::read(&disk).unwrap();
    // Up to 256 blocks at the beginning and at the end, of one octet each.
    let (blocks, whole) = (256 * 512, kept.len());
    let is_written = |octets: &[u8]| octets.iter().all(|octet| *octet == octets[0]);
    assert!(is_written(&kept[..blocks]) && is_written(&kept[whole - blocks..]));
    assert!(kept[blocks..whole - blocks] == octets[blocks..whole - blocks]);
    drop(server);
}

/// Both ends of libfabric's ping-pong, which leaves the loopback out, at the two addresses of a network of their own.
const PINGPONG: &str = r#"
set -e
ip link set lo up
ip link add near mtu 9000 type veth peer name far mtu 9000
ip addr add 10.77.0.1/24 dev far
ip addr add 10.77.0.2/24 dev near
ip link set far up
ip link set near up
ROCI_DEVICES=10.77.0.1 LD_PRELOAD=$LIBRARY fi_pingpong -p "$1" -e "$2" -I 100 &
for try in 1 2 3 4 5 6 7 8 9 10; do
    sleep 0.5
    ROCI_DEVICES=10.77.0.2 LD_PRELOAD=$LIBRARY fi_pingpong -p "$1" -e "$2" -I 100 10.77.0.1 && break
done
wait $!
"#;

#[test]
fn libfabric_exchanges_messages_over_connections_and_datagrams() {
    for (provider, endpoint) in [("verbs", "msg"), ("verbs;ofi_rxm", "rdm"), ("verbs", "dgram")] {
        let mut both = Command::new("unshare");
        both.args(["-rn", "sh", "-c", PINGPONG, "sh", provider, endpoint]).env("LIBRARY", library());
        let said = succeeded(both.output().unwrap(), provider);
        assert!(said.matches("\n4k ").count() == 2, "{provider} {endpoint}: {said}");
    }
}
