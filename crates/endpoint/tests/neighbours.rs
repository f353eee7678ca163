//! Connection set-up among several processes at one address: each listens and connects, none is there for the others, and one that is killed
//! takes nothing with it but its own connections.
#![allow(clippy::unwrap_used, reason = "tests")]

use roci_endpoint::cm::{CmError, ConnParam, Connection, ConnectionManager, Listener};
use roci_endpoint::{
    Access, Backend, CompletionQueue, Device, DeviceConfig, MemoryRegion, QueuePair, RecvWr, SendWr,
};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, SystemTime};

const WAIT: Duration = Duration::from_secs(20);
/// What a process is to do, and where.
const ROLE: &str = "ROCI_TEST_NEIGHBOURS_ROLE";
const PORT: u16 = 7300;

fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap()
}

/// A device with its manager.
struct Host {
    device: Device,
    manager: ConnectionManager,
}

/// A queue pair with a receive posted, and once it is connected, its connection.
struct End {
    cq: CompletionQueue,
    qp: QueuePair,
    _region: MemoryRegion,
}

impl Host {
    fn at(address: &str) -> Self {
        Self::by(address, Backend::Udp).unwrap()
    }

    fn by(address: &str, backend: Backend) -> std::io::Result<Self> {
        let config = DeviceConfig { backend, ..DeviceConfig::default() };
        let device = Device::open_with(address.parse().unwrap(), config)?;
        let manager = ConnectionManager::new(&device).unwrap();
        Ok(Self { device, manager })
    }

    fn address(&self) -> IpAddr {
        self.device.address()
    }

    fn end(&self) -> End {
        let (pd, cq) = (self.device.alloc_pd(), self.device.create_cq().unwrap());
        let qp = pd.create_qp(&cq, &cq).build().unwrap();
        let region = pd.reg_mr(vec![0; 1024], Access::LOCAL_WRITE).unwrap();
        for slot in 0..16 {
            qp.post_recv(RecvWr::new(region.buffer(64 * slot..64 * (slot + 1)).unwrap())).unwrap();
        }
        End { cq, qp, _region: region }
    }

    /// Listens at a port that was listened at before: another test may be beginning a process, which has copies of all descriptors until it
    /// is what it is to be.
    fn listen(&self, port: u16) -> Listener {
        let until = now() + WAIT;
        loop {
            match self.manager.listen(port) {
                Ok(listener) => return listener,
                Err(CmError::InUse(_)) if now() < until => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Connects to a port, which somebody may only come to listen at.
    fn connect(&self, to: SocketAddr) -> (Connection, End) {
        let until = now() + WAIT;
        loop {
            let end = self.end();
            match self.manager.connect(&end.qp, to, &ConnParam::default()) {
                Ok(connection) => return (connection, end),
                Err(CmError::Rejected { reason: 8, .. }) if now() < until => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn accept(&self, listener: &Listener) -> (Connection, End) {
        let request = listener.get_request(WAIT).unwrap().expect("somebody connects");
        let end = self.end();
        let connection = request.accept(&end.qp, &ConnParam::default()).unwrap();
        connection.wait_established(WAIT).unwrap();
        (connection, end)
    }
}

impl End {
    fn say(&self) {
        self.qp.post_send(SendWr::send_inline(b"hello")).unwrap();
    }

    /// Waits for this many messages that have been sent or received.
    fn done(&self, count: usize) {
        for _ in 0..count {
            let done = self.cq.wait(WAIT).unwrap();
            assert!(done.is_ok(), "{}", done.status);
        }
    }
}

/// Moves a message in each direction.
fn talk(one: &End, other: &End) {
    for end in [one, other] {
        end.say();
    }
    for end in [one, other] {
        end.done(2);
    }
}

/// Connects one host to another, where somebody listens already.
fn meet(from: &Host, to: &Host, listener: &Listener) -> [(Connection, End); 2] {
    let at = SocketAddr::new(to.address(), listener.port());
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| from.connect(at));
        let accepted = to.accept(listener);
        [asks.join().unwrap(), accepted]
    })
}

/// This very test in a process of its own.
struct Process {
    child: Child,
    tell: ChildStdin,
    said: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn begin(test: &str, role: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(ROLE, role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (tell, said) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, tell, said }
    }

    /// Waits until it says this.
    fn hear(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it says `{word}`");
        }
    }

    fn tell(&mut self) {
        self.tell.write_all(b"go\n").unwrap();
    }

    fn ended(mut self) {
        let mut rest = String::new();
        while self.said.read_line(&mut rest).unwrap() > 0 {}
        assert!(self.child.wait().unwrap().success(), "{rest}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the process: says a word.
fn say(word: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{word}").unwrap();
    out.flush().unwrap();
}

/// In the process: waits to be told to go on.
fn told() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

#[test]
fn a_server_and_a_client_share_an_address_whichever_is_there_first() {
    const TEST: &str = "a_server_and_a_client_share_an_address_whichever_is_there_first";
    match role().as_deref() {
        Some(role) => {
            let (role, address) = role.split_once(' ').unwrap();
            let host = Host::at(address);
            say("there");
            if role == "server" {
                let listener = host.manager.listen(PORT).unwrap();
                for _ in 0..2 {
                    let (connection, end) = host.accept(&listener);
                    end.done(1);
                    end.say();
                    end.done(1);
                    assert!(connection.wait_disconnected(WAIT));
                }
            } else {
                for _ in 0..2 {
                    let (connection, end) = host.connect(SocketAddr::new(host.address(), PORT));
                    end.say();
                    end.done(2);
                    connection.disconnect();
                    assert!(connection.wait_disconnected(WAIT));
                }
            }
        }
        None => {
            for address in ["127.0.5.1", "::1"] {
                for roles in [["server", "client"], ["client", "server"]] {
                    let processes = roles.map(|role| {
                        let mut process = Process::begin(TEST, &format!("{role} {address}"));
                        process.hear("there");
                        process
                    });
                    processes.into_iter().for_each(Process::ended);
                }
            }
        }
    }
}

#[test]
fn ten_processes_at_one_address_that_begin_at_once_all_connect_to_each_other() {
    const TEST: &str = "ten_processes_at_one_address_that_begin_at_once_all_connect_to_each_other";
    const MANY: u16 = 10;
    const ADDRESS: &str = "127.0.5.2";
    if let Some(rank) = role() {
        let rank: u16 = rank.parse().unwrap();
        let host = Host::at(ADDRESS);
        let listener = host.manager.listen(PORT + rank).unwrap();
        let others = (0..MANY).filter(|other| *other != rank);
        let ends: Vec<_> = std::thread::scope(|scope| {
            let accepts = scope.spawn(|| (1..MANY).map(|_| host.accept(&listener)).collect::<Vec<_>>());
            let ports = others.map(|other| SocketAddr::new(host.address(), PORT + other));
            let mut ends: Vec<_> = ports.map(|to| host.connect(to)).collect();
            ends.extend(accepts.join().unwrap());
            ends
        });
        ends.iter().for_each(|(_, end)| end.say());
        ends.iter().for_each(|(_, end)| end.done(2));
        say("heard all");
        // Who leaves first would end connections over which others have yet to hear.
        told();
        return;
    }
    let mut processes: Vec<_> = (0..MANY).map(|rank| Process::begin(TEST, &rank.to_string())).collect();
    processes.iter_mut().for_each(|process| process.hear("heard all"));
    processes.iter_mut().for_each(Process::tell);
    processes.into_iter().for_each(Process::ended);
}

#[test]
fn one_that_is_killed_takes_nothing_with_it_that_others_need() {
    const TEST: &str = "one_that_is_killed_takes_nothing_with_it_that_others_need";
    const ADDRESS: &str = "127.0.5.3";
    if role().is_some() {
        let host = Host::at(ADDRESS);
        let _listener = host.manager.listen(PORT).unwrap();
        say("there");
        told();
        return;
    }
    // The kernel moves the last one into its place, whose packets take a detour from then on.
    for place in [1, 0, 2] {
        let before: Vec<_> = (0..place).map(|_| Host::at(ADDRESS)).collect();
        let mut process = Process::begin(TEST, "neighbour");
        process.hear("there");
        let [one, other] = [(); 2].map(|()| Host::at(ADDRESS));
        let listener = other.listen(PORT + 1);
        assert!(matches!(one.manager.listen(PORT), Err(CmError::InUse(PORT))), "it listens there");
        let [(_here, near), (_there, far)] = meet(&one, &other, &listener);
        talk(&near, &far);
        process.child.kill().unwrap();
        let begin = now();
        for _ in 0..20 {
            let [(connection, near), (accepted, far)] = meet(&one, &other, &listener);
            talk(&near, &far);
            connection.disconnect();
            assert!(accepted.wait_disconnected(WAIT));
        }
        // What waited in the socket of the one that was killed is said again after a second.
        assert!(now() - begin < Duration::from_secs(4), "{:?}", now() - begin);
        process.child.wait().unwrap();
        talk(&near, &far);
        // Its port is free, and whoever comes next has its place.
        let listener = one.listen(PORT);
        let newcomer = Host::at(ADDRESS);
        for from in before.iter().chain([&newcomer, &other]) {
            let [(_, near), (_, far)] = meet(from, &one, &listener);
            talk(&near, &far);
        }
    }
}

#[test]
fn one_that_is_stopped_does_not_keep_others_from_connecting() {
    const TEST: &str = "one_that_is_stopped_does_not_keep_others_from_connecting";
    const ADDRESS: &str = "127.0.5.11";
    if role().is_some() {
        let _host = Host::at(ADDRESS);
        say("there");
        told();
        return;
    }
    let first = Host::at(ADDRESS);
    let mut process = Process::begin(TEST, "stopped");
    process.hear("there");
    let hosts = [(); 6].map(|()| Host::at(ADDRESS));
    let pid = process.child.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    // It gets one request in eight, and as many of those that are said again a second later.
    for (port, host) in (PORT..).zip(&hosts) {
        let listener = host.listen(port);
        let [(connection, near), (accepted, far)] = meet(&first, host, &listener);
        talk(&near, &far);
        connection.disconnect();
        assert!(accepted.wait_disconnected(WAIT));
    }
}

#[test]
fn a_port_is_listened_at_by_one_of_all_at_an_address_and_by_another_when_that_one_is_gone() {
    const TEST: &str =
        "a_port_is_listened_at_by_one_of_all_at_an_address_and_by_another_when_that_one_is_gone";
    const ADDRESS: &str = "127.0.5.4";
    if role().as_deref() == Some("all") {
        let hosts = [(); 8].map(|()| Host::at(ADDRESS));
        for round in 0..50 {
            let heard: Vec<_> = std::thread::scope(|scope| {
                let listens = hosts.iter().map(|host| scope.spawn(|| host.manager.listen(PORT + 1).ok()));
                let listens: Vec<_> = listens.collect();
                listens.into_iter().map(|listens| listens.join().unwrap()).collect()
            });
            assert_eq!(heard.iter().flatten().count(), 1, "round {round}");
        }
        return;
    }
    if role().is_some() {
        let host = Host::at(ADDRESS);
        told();
        let listener = host.manager.listen(PORT);
        say(if listener.is_ok() { "has it" } else { "has it not" });
        told();
        return;
    }
    // All at once, in processes of their own.
    let mut processes: Vec<_> = (0..4).map(|_| Process::begin(TEST, "one")).collect();
    processes.iter_mut().for_each(Process::tell);
    let mut have = 0;
    for process in &mut processes {
        let mut line = String::new();
        while !line.contains("has it") {
            line.clear();
            assert!(process.said.read_line(&mut line).unwrap() > 0);
        }
        have += usize::from(!line.contains("not"));
    }
    assert_eq!(have, 1);
    let host = Host::at(ADDRESS);
    let refused = host.manager.listen(PORT).unwrap_err();
    assert_eq!(refused.to_string(), "port 7300 is listened at already");
    assert!(host.manager.listen(0).is_ok_and(|listener| listener.port() != PORT));
    drop(processes);
    host.listen(PORT);
    // All at once, in devices of one process, which begins no other.
    Process::begin(TEST, "all").ended();
}

#[test]
fn who_ends_a_connection_with_one_that_was_killed_is_answered_by_its_neighbours() {
    const TEST: &str = "who_ends_a_connection_with_one_that_was_killed_is_answered_by_its_neighbours";
    const ADDRESS: &str = "127.0.5.5";
    if role().is_some() {
        let host = Host::at(ADDRESS);
        let listener = host.manager.listen(PORT).unwrap();
        let _accepted = host.accept(&listener);
        told();
        return;
    }
    let process = Process::begin(TEST, "killed");
    let (_neighbour, host) = (Host::at(ADDRESS), Host::at("127.0.5.6"));
    let (connection, _end) = host.connect(SocketAddr::new(ADDRESS.parse().unwrap(), PORT));
    drop(process);
    connection.disconnect();
    // It would be said again for eight seconds.
    assert!(connection.wait_disconnected(Duration::from_secs(4)));
}

#[test]
fn who_gives_up_before_it_has_an_answer_is_heard_by_whom_it_asked() {
    let hosts = [(); 4].map(|()| Host::at("127.0.5.7"));
    for asked in &hosts {
        let listener = asked.listen(PORT);
        for asking in &hosts {
            let end = asking.end();
            let to = SocketAddr::new(asked.address(), PORT);
            let request = asking.manager.request(&end.qp, to, &ConnParam::default()).unwrap();
            let heard = listener.get_request(WAIT).unwrap().unwrap();
            let seen = asked.manager.wait_news(0, Duration::ZERO);
            drop(request);
            // Else it would be forgotten after nine seconds.
            assert!(asked.manager.wait_news(seen, Duration::from_secs(4)) > seen);
            let late = heard.accept(&asked.end().qp, &ConnParam::default());
            assert!(matches!(late, Err(CmError::Gone)), "{late:?}");
        }
    }
}

#[test]
fn nobody_listens_at_a_port_is_told_by_whoever_is_asked() {
    let hosts = [(); 4].map(|()| Host::at("127.0.5.8"));
    // One without connection set-up gets half of the requests.
    let alone = "127.0.5.9".parse().unwrap();
    let (first, plain) = (Host::at("127.0.5.9"), Device::open(alone).unwrap());
    let begin = now();
    let at_plain = std::iter::repeat_n((&first, plain.address()), 20);
    for (from, to) in hosts.iter().map(|host| (host, host.address())).chain(at_plain) {
        let told = from.manager.connect(&from.end().qp, SocketAddr::new(to, PORT), &ConnParam::default());
        assert!(matches!(told, Err(CmError::Rejected { reason: 8, .. })), "{told:?}");
    }
    // 0.3 s each; and one second more where a request was not answered.
    assert!(now() - begin < Duration::from_secs(12));
}

#[test]
fn raw_and_udp_sockets_at_one_address_connect_to_each_other() {
    for address in ["127.0.5.10", "::1"] {
        for kinds in [[Backend::Raw, Backend::Udp, Backend::Raw], [Backend::Udp, Backend::Raw, Backend::Udp]]
        {
            let hosts = kinds.map(|kind| Host::by(address, kind));
            if let Some(Err(error)) = hosts.iter().find(|host| host.is_err()) {
                // Raw sockets need CAP_NET_RAW.
                assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
                return;
            }
            let hosts = hosts.map(Result::unwrap);
            for (to, port) in hosts.iter().zip(PORT + 100..) {
                let listener = to.listen(port);
                for from in &hosts {
                    let [(connection, near), (accepted, far)] = meet(from, to, &listener);
                    talk(&near, &far);
                    connection.disconnect();
                    assert!(accepted.wait_disconnected(WAIT));
                    let nobody = SocketAddr::new(to.address(), PORT + 99);
                    let told = from.manager.connect(&from.end().qp, nobody, &ConnParam::default());
                    assert!(matches!(told, Err(CmError::Rejected { reason: 8, .. })), "{told:?}");
                }
            }
        }
    }
}
