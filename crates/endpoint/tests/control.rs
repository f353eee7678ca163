//! The control socket: what can be asked for, by whom, and what is refused.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Pair, connect, in_memory};
use roci_endpoint::cm::ConnectionManager;
use roci_endpoint::control::table::{self, Row};
use roci_endpoint::{Backend, Device, DeviceConfig, MemoryWire, Mtu, Recovery, SendWr, congestion, control};
use roci_units::BitsPerSec;
use std::path::PathBuf;

/// A path that no other test has.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("roci-control-{}-{name}", std::process::id()))
}

#[test]
fn registers_are_read_and_written_while_the_device_runs() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp);
    let path = path("registers");
    a.device.serve_control(&path).unwrap();
    let ask = |request: &str| control::ask(&path, request).unwrap();
    let qp = format!("{:#08x}", a.qp.qp_num().get());
    let all = ask("get").unwrap();
    assert!(all.contains(&format!("{qp} dcqcn state ReadyToSend\n")), "{all}");
    assert!(all.contains(&format!("{qp} dcqcn allowed_rate unlimited\n")), "{all}");
    assert_eq!(ask(&format!("get {qp} rai")).unwrap(), format!("{qp} dcqcn rai 40Mb/s\n"));
    let told = ask(&format!("set {} rai 7Mb/s", a.qp.qp_num().get())).unwrap();
    assert_eq!(told, "rai is 7Mb/s on 1 queue pair now, and was 40Mb/s\n");
    assert_eq!(ask("get all").unwrap(), ask("get").unwrap());
    assert_eq!(ask("get all rai").unwrap(), format!("{qp} dcqcn rai 7Mb/s\n"));
    assert!(ask("set all rc 1Gb/s").unwrap().contains("\nrc rises to rt again"));
    ask("set all increase_timer 1000s").unwrap();
    assert!(ask("set all rc 1Gb/s").unwrap().starts_with("rc is 1Gb/s on 1 queue pair now, and was "));
    for (asked, got) in [("200Gb/s", "100Gb/s"), ("1kb/s", "40Mb/s")] {
        let remark = format!("rc takes rmin to the link's rate: it is {got} now, not {asked}\n");
        let told = ask(&format!("set all rc {asked}")).unwrap();
        assert_eq!(told.split_once('\n').map(|(_, remark)| remark), Some(remark.as_str()));
        assert!(told.starts_with(&format!("rc is {got} on 1 queue pair now")), "{told}");
    }
    ask("set all rc 1Gb/s").unwrap();
    assert_eq!(ask(&format!("get {qp} rai")).unwrap(), format!("{qp} dcqcn rai 7Mb/s\n"));
    assert_eq!(a.qp.query().unwrap().credit.rate_kbps, 1_000_000);
    assert_eq!(ask("get all allowed_rate").unwrap(), format!("{qp} dcqcn allowed_rate 1Gb/s\n"));
    assert_eq!(ask("get all packets").unwrap(), format!("{qp} dcqcn packets 0\n"));
    a.qp.post_send(SendWr::write_inline(b"on it goes", b.open.remote())).unwrap();
    a.done();
    assert_eq!(ask("get all packets").unwrap(), format!("{qp} dcqcn packets 1\n"));
    assert_eq!(ask("get all octets").unwrap(), format!("{qp} dcqcn octets 10B\n"));
    assert_eq!(ask("get all cnps").unwrap(), format!("{qp} dcqcn cnps 0\n"));
}

#[test]
fn of_a_window_or_rate_that_the_law_computes_it_is_said_that_it_will_not_stay() {
    for (name, register, value, stays) in [
        ("hpcc", "window", "1KB", false),
        ("powertcp", "window", "1KB", false),
        ("theta-powertcp", "window", "1KB", false),
        ("dctcp", "window", "1KB", false),
        ("nscc", "window", "1KB", false),
        ("timely", "rate", "1Gb/s", false),
        ("hpcc", "eta", "0.5", true),
    ] {
        let law = congestion::law(name, BitsPerSec::from_gbps(100), |path| std::fs::read(path)).unwrap();
        let wire = MemoryWire::new(1);
        let open = |last| {
            let backend = Backend::Memory(wire.clone());
            let config = DeviceConfig { backend, laws: vec![law.clone()], ..DeviceConfig::default() };
            Device::open_with([10, 0, 0, last].into(), config).unwrap()
        };
        let layout = congestion::layout(&law);
        let Pair { a, .. } = connect(&open(1), &open(2), |qp| qp.recovery(Recovery::GoBackN, layout));
        let path = path(name);
        a.device.serve_control(&path).unwrap();
        let told = control::ask(&path, &format!("set all {register} {value}")).unwrap().unwrap();
        let remark = format!("the law sets {register} anew with ");
        assert_eq!(told.contains(&remark), !stays, "{name}: {told}");
    }
}

#[test]
fn the_queue_pair_of_rdma_cm_is_not_among_all_but_can_be_asked_for() {
    let Pair { a, .. } = in_memory(1, |qp| qp);
    let _manager = ConnectionManager::new(&a.device).unwrap();
    let path = path("management");
    a.device.serve_control(&path).unwrap();
    let ask = |request: &str| control::ask(&path, request).unwrap();
    let own = format!("{:#08x} dcqcn state ReadyToSend\n", a.qp.qp_num().get());
    assert_eq!(ask("get all state").unwrap(), own);
    ask("set all rai 7Mb/s").unwrap();
    let rows = table::read(&path).unwrap().unwrap();
    assert_eq!(rows.iter().map(|row| row.qpn).collect::<Vec<_>>(), [a.qp.qp_num()]);
    assert!(ask("get 1").unwrap().contains("0x000001 dcqcn rai 40Mb/s\n"), "{}", ask("get 1").unwrap());
}

#[test]
fn a_table_has_every_queue_pair_with_what_it_sent_of_payload_and_its_responses_too() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp.path_mtu(Mtu::Mtu1024));
    let path = path("table");
    a.device.serve_control(&path).unwrap();
    // More than are looked at at once, and gaps among them.
    let mut others: Vec<_> = (0..100).map(|_| a.pd.create_qp(&a.cq, &a.cq).build().unwrap()).collect();
    others.retain(|qp| qp.qp_num().get() % 3 > 0);
    let read = || table::read(&path).unwrap().unwrap();
    let of_a = |rows: &[Row]| rows.iter().find(|row| row.qpn == a.qp.qp_num()).unwrap().clone();
    let before = of_a(&read());
    assert_eq!((before.law.as_str(), before.state.as_str()), ("dcqcn", "ReadyToSend"));
    assert_eq!((before.allowed, before.packets, before.octets), (None, 0, 0));
    a.qp.post_send(SendWr::write(a.own.slice(0..5000).unwrap(), b.open.remote())).unwrap();
    a.done();
    // The request of a READ has no payload, its responses have.
    a.qp.post_send(SendWr::read(a.own.buffer(0..2000).unwrap(), b.open.remote())).unwrap();
    a.done();
    b.qp.post_send(SendWr::read(b.own.buffer(0..3000).unwrap(), a.open.remote())).unwrap();
    b.done();
    // It would rise again before the reading on a busy machine.
    for (register, value) in [("increase_timer", "1000s"), ("byte_counter", "0"), ("rc", "1Gb/s")] {
        a.qp.set_register(register, value).unwrap();
    }
    let rows = read();
    let now = of_a(&rows);
    assert_eq!((now.octets, now.in_flight, now.cnps), (8000, 0, 0));
    assert_eq!((now.octets, now.packets), (a.qp.counters().octets, a.qp.counters().packets));
    assert_eq!(now.allowed, Some(BitsPerSec::from_gbps(1)));
    assert!(now.at > before.at);
    let mut numbers: Vec<_> = rows.iter().map(|row| row.qpn.get()).collect();
    let mut expected: Vec<_> = others.iter().chain([&a.qp]).map(|qp| qp.qp_num().get()).collect();
    numbers.sort_unstable();
    expected.sort_unstable();
    assert_eq!(numbers, expected);
    // And what `get` tells of one and of all.
    for qp in &others {
        let one = control::ask(&path, &format!("get {}", qp.qp_num().get())).unwrap().unwrap();
        assert!(one.lines().all(|line| line.starts_with(&format!("{:#08x} ", qp.qp_num().get()))), "{one}");
    }
    let all = control::ask(&path, "get all state").unwrap().unwrap();
    assert_eq!(all.lines().count(), expected.len());
}

#[test]
fn no_two_registers_of_a_queue_pair_have_one_name() {
    let wire = MemoryWire::new(1);
    let open = |address: &str| {
        let laws = vec![
            congestion::law("timely,first_rate=1/1", BitsPerSec::from_gbps(100), |path| std::fs::read(path))
                .unwrap(),
        ];
        let config = DeviceConfig { backend: Backend::Memory(wire.clone()), laws, ..DeviceConfig::default() };
        Device::open_with(address.parse().unwrap(), config).unwrap()
    };
    let Pair { a, .. } = connect(&open("10.0.0.1"), &open("10.0.0.2"), |qp| qp);
    let path = path("timely");
    a.device.serve_control(&path).unwrap();
    for (name, rate) in [("rate", "100Gb/s"), ("allowed_rate", "unlimited")] {
        let told = control::ask(&path, &format!("get all {name}")).unwrap().unwrap();
        assert!(told.ends_with(&format!(" timely {name} {rate}\n")) && told.lines().count() == 1, "{told}");
    }
}

#[test]
fn counters_are_told_as_prometheus_reads_them() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp);
    let path = path("counters");
    a.device.serve_control(&path).unwrap();
    a.qp.post_send(SendWr::write_inline(b"one packet", b.open.remote())).unwrap();
    a.done();
    let text = control::ask(&path, "counters").unwrap().unwrap();
    assert!(text.contains("roci_packets_sent_total{device=\"10.0.0.1\"} 1\n"), "{text}");
    assert!(text.contains("roci_cnps_sent_total{device=\"10.0.0.1\"} 0\n"), "{text}");
    assert!(text.contains("roci_bitmaps_refused_total{device=\"10.0.0.1\"} 0\n"), "{text}");
    let qp = a.qp.qp_num().get();
    let row = format!("roci_qp_packets_total{{device=\"10.0.0.1\",qp=\"{qp:#08x}\",law=\"dcqcn\"}} 1\n");
    assert!(text.contains(&row), "{text}");
    assert!(text.contains(&row.replace("qp_packets", "qp_acknowledged")), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(series.starts_with("roci_") && series.ends_with('}'), "{line}");
        assert!(value == "+Inf" || value.parse::<u64>().is_ok(), "{line}");
        let name = series.split('{').next().unwrap();
        assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    let Pair { a, .. } = in_memory(1, |qp| qp);
    let path = path("refused");
    a.device.serve_control(&path).unwrap();
    let qp = a.qp.qp_num().get();
    for request in [
        String::new(),
        "sing".to_owned(),
        "get 0xffffffff".to_owned(),
        format!("get {}", qp ^ 64),
        format!("get {qp} no_such_register"),
        format!("set {qp} rai fast"),
        format!("set {qp} state Error"),
        "x".repeat(10_000),
    ] {
        let answer = control::ask(&path, &request);
        assert!(!matches!(answer, Ok(Ok(_))), "{request}: {answer:?}");
    }
    assert!(control::ask(&path, "get").unwrap().is_ok(), "it goes on");
}

#[test]
fn a_register_that_no_queue_pair_has_is_not_written_to_all() {
    let Pair { a, .. } = in_memory(1, |qp| qp);
    let path = path("nobody");
    a.device.serve_control(&path).unwrap();
    let ask = |request: &str| control::ask(&path, request).unwrap();
    for name in ["NOSUCH", "state"] {
        let why = ask(&format!("set all {name} 1")).unwrap_err();
        let begin = format!("no queue pair has a register `{name}` that can be written; there are ");
        let names: Vec<&str> =
            why.strip_prefix(&begin).unwrap_or_else(|| panic!("{why}")).split(", ").collect();
        assert!(["alpha_timer", "rai", "rc"].iter().all(|name| names.contains(name)), "{why}");
        assert!(["limiter", "state", "packets"].iter().all(|name| !names.contains(name)), "not these: {why}");
    }
    let qp = format!("{:#08x}", a.qp.qp_num().get());
    for (request, begin) in [
        ("get all NOSUCH", "no queue pair has a register `NOSUCH`; there are "),
        (&format!("get {qp} NOSUCH"), "its law has no register `NOSUCH`; there are "),
    ] {
        let why = ask(request).unwrap_err();
        let names: Vec<&str> =
            why.strip_prefix(begin).unwrap_or_else(|| panic!("{why}")).split(", ").collect();
        assert!(["packets", "rai", "state"].iter().all(|name| names.contains(name)), "{why}");
    }
    let device = a.device.clone();
    drop(a);
    for request in ["set all rai 1Mb/s", "get all rai"] {
        assert_eq!(ask(request).unwrap_err(), "there is no queue pair yet, or no longer");
    }
    drop(device);
}

#[test]
fn devices_with_one_path_are_told_apart_and_leave_nothing_behind() {
    let Pair { a, b, .. } = in_memory(1, |qp| qp);
    let path = path("two");
    // What a killed program left behind is in nobody's way.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    a.device.serve_control(&path).unwrap();
    b.device.serve_control(&path).unwrap();
    let second = PathBuf::from(format!("{}.2", path.display()));
    for (path, end) in [(&path, &a), (&second, &b)] {
        let all = control::ask(path, "get").unwrap().unwrap();
        assert!(all.starts_with(&format!("{:#08x} ", end.qp.qp_num().get())), "{all}");
    }
    drop((a, b));
    let gone = || !path.exists() && !second.exists();
    (0..200)
        .find(|_| {
            gone() || {
                std::thread::sleep(std::time::Duration::from_millis(10));
                false
            }
        })
        .unwrap();
}

#[test]
fn a_file_where_the_socket_should_stand_is_left_alone() {
    let Pair { a, .. } = in_memory(1, |qp| qp);
    let path = path("file");
    std::fs::write(&path, "notes").unwrap();
    assert!(a.device.serve_control(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes");
    std::fs::remove_file(&path).unwrap();
}
