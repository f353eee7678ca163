//! How the two ends of a test meet: what is told before it, over TCP or RDMA-CM, and who is shown out.

use super::channel::{Channel, Door, MESSAGE_MAX, Messages, News, Tcp};
use super::handshake::{Key, VERSION_LEN, judge_version, mtu_from_text, mtu_text, version};
use super::session::{CYCLE, FLIGHT, Place, Session, shares_flight};
use super::terms::{self, Terms};
use super::{Connection, Event, Metric, Options, PerfError, Verb, Watch, lobby, named, path};
use crate::addresses::{addresses_of_host_from, first_address, toward};
use crate::bridge::Telemetry;
use crate::clock::Clock;
use crate::cm::{self, CmError, ConnParam, ConnectionManager, Listener};
use crate::control;
use crate::device::{Device, DeviceConfig, Mtu, Progress, ProtectionDomain};
use crate::io::sys::mtu_of;
use crate::memory::MemoryRegion;
use crate::queue_pair::QueuePair;
use crate::work::RecvWr;
use roci_control::Law;
use roci_transport::{Access, Recovery, Status};
use roci_wire::Layout;
use roci_wire::cm::reason;
use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a test looks for what comes before it sleeps. Four tests that looked for 5 ms shared two cores less fairly than the path
/// that they had (`interop/fairness`): pacing waits for its turn on a core.
const SPIN: Duration = Duration::from_micros(100);
/// How long a client waits for its server to end the connections.
const PARTING: Duration = Duration::from_millis(200);
/// The length of a cache line, which perftest wants to know.
const LINE: u32 = 64;

/// Runs a test to its end.
///
/// # Errors
/// [`PerfError`] says why it did not come to its end: at the latest a retry time after the peer was lost.
pub fn run(options: &Options, watch: &dyn Watch) -> Result<(), PerfError> {
    options.judge()?;
    // The device of a server that is not told of one comes only once a client has come.
    control::check_variable().map_err(PerfError::Control)?;
    if let Some(host) = &options.host {
        path::judge(host, options)?;
    }
    if options.rdma_cm { over_cm(options, watch) } else { over_tcp(options, watch) }
}

/// Two ends that know all of each other that the data need.
struct Ready<'a> {
    place: Place<'a>,
    qps: Vec<QueuePair>,
    connection: Connection,
}

impl<'a> Ready<'a> {
    fn begin(self, channel: &'a mut dyn Channel, watch: &'a dyn Watch) -> Session<'a> {
        let Self { place, qps, connection } = self;
        channel.acquaintance().patience = None;
        watch.event(Event::Connected(&connection));
        let (sent, arrived, heard) = (0, None, Cell::default());
        let [is_unrated, is_beyond, is_short] = <[Cell<bool>; 3]>::default();
        let options = place.options;
        Session {
            options,
            watch,
            qps,
            place,
            connection,
            channel,
            sent,
            arrived,
            heard,
            is_unrated,
            is_beyond,
            is_short,
        }
    }
}

/// What is told of somebody with whom a server has come to nothing before the test, and waits on for another.
///
/// # Errors
/// What ends the server: an error of ours, or of a client that has told a queue pair, or terms, and was given another test. It is
/// most likely the one that was meant.
fn stranger(error: PerfError, is_client: bool) -> Result<String, PerfError> {
    match error {
        PerfError::Silent => Ok("said no more".to_owned()),
        PerfError::Completion { status: Status::TransportRetryCounterExceeded, .. } => {
            Ok("answered no more".to_owned())
        }
        PerfError::Left if !is_client => Ok("left before it told a queue pair".to_owned()),
        PerfError::Peer(deed) if !is_client => Ok(deed),
        PerfError::Completion { .. } | PerfError::Refused(_) if !is_client => {
            Ok("said what cannot be heard".to_owned())
        }
        error => Err(error),
    }
}

/// With queue pairs that are told over TCP.
fn over_tcp(options: &Options, watch: &dyn Watch) -> Result<(), PerfError> {
    let (mut channel, ready) = match &options.host {
        Some(host) => {
            let mut channel = Tcp::connect(host, options, watch)?;
            let ready = introduce(&mut channel, None, options)?;
            (channel, ready)
        }
        None => {
            // As perftest does: what is wrong with it shows before anybody has come.
            let device = options.device.map(|address| open(address, options)).transpose()?;
            let door = Door::open(options, watch)?;
            loop {
                let (mut channel, from) = door.client()?;
                match introduce(&mut channel, device.as_ref(), options) {
                    Ok(ready) => break (channel, ready),
                    Err(error) => {
                        lobby::report(from, &stranger(error, channel.acquaintance().is_client)?, watch);
                    }
                }
            }
        }
    };
    ready.begin(&mut channel, watch).run()
}

/// All that is told over TCP before the test. The device of a server may be `known`.
fn introduce<'a>(
    channel: &mut Tcp<'_>,
    known: Option<&Device>,
    options: &'a Options,
) -> Result<Ready<'a>, PerfError> {
    let mut device = match (known, options.device) {
        (Some(device), _) => device.clone(),
        (None, Some(address)) => open(address, options)?,
        (None, None) => open(channel.local()?, options)?,
    };
    let active = match (channel.local(), channel.peer()) {
        (Ok(ours), Ok(peer)) => path::active(&device, ours, peer, options.layout()),
        // Who has gone already is missed by what is heard next.
        _ => device.active_mtu(),
    };
    let Agreed { version, mtu, laws } = agree(channel, active, options)?;

    // The client tells its first queue pair before it knows ours; by then a server can still go to another device.
    let early = if channel.is_client() { None } else { Some(channel.hear_key()?) };
    if let Some(peer) = early.map(|key| key.peer())
        && peer.is_ipv4() != device.address().is_ipv4()
    {
        if options.device.is_some() {
            return Err(elsewhere(peer, device.address()));
        }
        device = open(toward(SocketAddr::new(peer, options.port)).map_err(named)?, options)?;
    }
    let place = Place::new(&device, options, mtu)?;
    let qps = place.queue_pairs()?;
    let local = place.keys(&qps);
    let remote = acquaint(channel, options, early, &local, |remote| {
        // The rounds that follow tell keys again: an end with more queue pairs would take those for further ones.
        if (1..remote.len()).any(|index| remote[..index].iter().any(|key| key.qpn == remote[index].qpn)) {
            return Err(otherwise("told one queue pair twice"));
        }
        for (qp, key) in qps.iter().zip(remote) {
            place.connect(qp, key)?;
        }
        Ok(())
    })?;
    let connection = Connection { device: device.address(), mtu, version, laws, local, remote };
    Ok(Ready { place, qps, connection })
}

/// With queue pairs that RDMA-CM connects. The first carries what is told, the others the data.
fn over_cm(options: &Options, watch: &dyn Watch) -> Result<(), PerfError> {
    let (mut end, mut first) = match &options.host {
        Some(host) => reach(host, options, watch).map(|(end, channel)| (end, Some(channel)))?,
        None => (End::open(options, None, watch)?, None),
    };
    let is_client = end.to.is_some();
    let (mut channel, (ready, connections)) = loop {
        let met = match first.take() {
            Some(channel) => Some(channel),
            None => end.channel()?,
        };
        let Some(mut channel) = met else {
            if watch.stopped() {
                return Err(PerfError::Stopped);
            }
            continue;
        };
        let from = channel.peer();
        match introduce_by_cm(&mut channel, &end.device, options, |qp, param| {
            end.meet(qp, param, Some(from.ip()))
        }) {
            Ok(met) => break (channel, met),
            Err(_) if watch.stopped() => return Err(PerfError::Stopped),
            Err(error) if !is_client => {
                lobby::report(from, &stranger(error, channel.acquaintance().is_client)?, watch);
            }
            Err(error) => return Err(error),
        }
    };
    // Who comes now hears at once that nobody listens.
    end.listener = None;
    let mut session = ready.begin(&mut channel, watch);
    let done = session.run();
    if is_client && done.is_ok() {
        // The server ends them. What it says may be lost, and it is waited for once, however many they are.
        let clock = Clock::new();
        for connection in &connections {
            connection.wait_disconnected(PARTING.saturating_sub(clock.passed()));
        }
    }
    for connection in connections {
        connection.disconnect();
    }
    done
}

/// A client's end, and its connection with the server, at the first of the host's addresses at which there is one.
fn reach<'a>(
    host: &str,
    options: &'a Options,
    watch: &'a dyn Watch,
) -> Result<(End<'a>, Messages<'a>), PerfError> {
    let unreachable = |error| PerfError::Unreachable(host.to_owned(), options.port, error);
    let all = addresses_of_host_from(options.device, host, options.port).map_err(unreachable)?;
    one_of(&all, |to| {
        let end = End::open(options, Some(to), watch)?;
        let channel = end.channel()?.ok_or(PerfError::Left)?;
        Ok((end, channel))
    })
}

/// Tries one address after the other. Where none does, it is told why of the last that was asked, or else of the last: of two
/// addresses one often leads nowhere.
fn one_of<T>(
    all: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> Result<T, PerfError>,
) -> Result<T, PerfError> {
    let was_asked = |error: &PerfError| matches!(error, PerfError::Connect(_));
    let mut failure = PerfError::Left;
    for &to in all {
        match attempt(to) {
            Err(error) if !matches!(error, PerfError::Stopped) => {
                if was_asked(&error) || !was_asked(&failure) {
                    failure = error;
                }
            }
            done => return done,
        }
    }
    Err(failure)
}

/// What an end has to connect queue pairs by RDMA-CM.
struct End<'a> {
    options: &'a Options,
    watch: &'a dyn Watch,
    /// Of a client: where its server is.
    to: Option<SocketAddr>,
    /// Of a server.
    listener: Option<Listener>,
    /// What is heard comes here.
    region: MemoryRegion,
    pd: ProtectionDomain,
    manager: ConnectionManager,
    device: Device,
}

impl<'a> End<'a> {
    fn open(options: &'a Options, to: Option<SocketAddr>, watch: &'a dyn Watch) -> Result<Self, PerfError> {
        let address = match (options.device, to) {
            (Some(address), _) => address,
            (None, Some(to)) => toward(to).map_err(named)?,
            (None, None) => first_address()?,
        };
        let device = open(address, options)?;
        let manager = ConnectionManager::new(&device)?;
        let pd = device.alloc_pd();
        let region = pd.reg_mr(vec![0; 16 * MESSAGE_MAX], Access::LOCAL_WRITE)?;
        let listener = if to.is_none() { Some(manager.listen(options.port)?) } else { None };
        if let Some(listener) = &listener {
            watch.event(Event::Waiting(Some(SocketAddr::new(address, listener.port()))));
        }
        Ok(Self { options, watch, to, listener, region, pd, manager, device })
    }

    /// Connects `qp`: of a server with whoever comes, or with `peer` once one has come; `None` where it came to nothing after all.
    fn meet(
        &self,
        qp: &QueuePair,
        param: &ConnParam,
        peer: Option<IpAddr>,
    ) -> Result<Option<cm::Connection>, PerfError> {
        match (&self.listener, self.to) {
            (Some(listener), _) => accept(listener, qp, param, peer, self.options.patience, self.watch),
            (None, Some(to)) => connect(&self.manager, qp, to, param, peer.is_some(), self.watch).map(Some),
            (None, None) => Err(PerfError::Left),
        }
    }

    /// The connection over which the ends talk.
    fn channel(&self) -> Result<Option<Messages<'a>>, PerfError> {
        let cq = self.device.create_cq()?;
        // What the data's law wants, packets of a few words do not bring.
        let qp = self.pd.create_qp(&cq, &cq).law(0).build()?;
        for slot in 0..16 {
            let range = slot * MESSAGE_MAX..(slot + 1) * MESSAGE_MAX;
            qp.post_recv(RecvWr::new(self.region.buffer(range)?))?;
        }
        // No READs, and as patient as the data.
        let told = ConnParam { responder_resources: 0, initiator_depth: 0, ..parameters(self.options, None) };
        let Some(control) = self.meet(&qp, &told, None)? else { return Ok(None) };
        let mut channel = Messages::new(control, qp, cq, self.to.is_some(), self.watch);
        if self.to.is_none() {
            channel.acquaintance().patience = Some(self.options.patience);
        }
        Ok(Some(channel))
    }
}

/// All that is told over a connection of RDMA-CM before the test, and those of the data.
fn introduce_by_cm<'a>(
    channel: &mut Messages<'_>,
    device: &Device,
    options: &'a Options,
    meet: impl Fn(&QueuePair, &ConnParam) -> Result<Option<cm::Connection>, PerfError>,
) -> Result<(Ready<'a>, Vec<cm::Connection>), PerfError> {
    let active = path::active(device, device.address(), channel.peer(), options.layout());
    let Agreed { version, mtu, laws } = agree(channel, active, options)?;
    let place = Place::new(device, options, mtu)?;
    channel.exchange_key(&Key::NONE)?;
    let qps = place.queue_pairs()?;
    let param = parameters(options, Some(mtu));
    let meet = |qp| meet(qp, &param)?.ok_or(PerfError::Silent);
    let connections = qps.iter().map(meet).collect::<Result<Vec<_>, _>>()?;
    channel.exchange_key(&Key::NONE)?;
    let local = place.keys(&qps);
    let remote = acquaint(channel, options, None, &local, |_| Ok(()))?;
    let connection = Connection { device: device.address(), mtu, version, laws, local, remote };
    Ok((Ready { place, qps, connection }, connections))
}

/// What the connections of the data are to be like.
fn parameters(options: &Options, mtu: Option<Mtu>) -> ConnParam {
    let reads = matches!(options.test.verb, Verb::Read | Verb::Atomic { .. });
    let depth = if reads { options.outstanding_reads } else { 0 };
    ConnParam {
        responder_resources: depth,
        initiator_depth: depth,
        retry_count: options.retry_count,
        ack_timeout: Some(options.qp_timeout),
        path_mtu: mtu.or(options.mtu),
        ..ConnParam::default()
    }
}

/// Connects a queue pair. A server that is between two connections may reject for a while.
fn connect(
    manager: &ConnectionManager,
    qp: &QueuePair,
    to: SocketAddr,
    param: &ConnParam,
    is_met: bool,
    watch: &dyn Watch,
) -> Result<cm::Connection, PerfError> {
    let mut attempts = 20;
    loop {
        let mut asked = manager.request(qp, to, param)?;
        let answer = loop {
            match asked.wait(qp, Duration::from_millis(50)) {
                Ok(Some(connection)) => return Ok(connection),
                Ok(None) if watch.stopped() => return Err(PerfError::Stopped),
                Ok(None) => {}
                Err(error) => break error,
            }
        };
        attempts -= 1;
        if attempts == 0 || !may_change(&answer, is_met) {
            return Err(answer.into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Why a server rejects for now: it is with somebody else, or still has what was before.
const PASSING: [u16; 5] =
    [reason::NO_QP, reason::NO_RESOURCES, reason::TIMEOUT, reason::STALE_CONNECTION, reason::CONSUMER];

/// What can be done about a connection that cannot be made.
fn remedy_of(error: &CmError) -> String {
    match error {
        CmError::Mtu { most, .. } => {
            format!(" (a client of ours asks for less, another is given `-m {}`)", most.octets())
        }
        _ => String::new(),
    }
}

/// Whether a server that has answered so may answer otherwise soon. One that `is_met` has perhaps closed its door, as perftest's
/// does between the first connection and those of the data; else nobody is there, or it is busy.
fn may_change(answer: &CmError, is_met: bool) -> bool {
    match answer {
        CmError::Rejected { reason: reason::INVALID_SERVICE, .. } => is_met,
        CmError::Rejected { reason, .. } => PASSING.contains(reason),
        _ => false,
    }
}

/// Waits for somebody to connect, or for `peer`, who is to do so within `patience`; `None` where it came to nothing after all, with
/// `qp` used up. A request that cannot be accepted, or is another's, is refused and no reason to end; while anybody may come, who
/// does so in vain is reported.
fn accept(
    listener: &Listener,
    qp: &QueuePair,
    param: &ConnParam,
    peer: Option<IpAddr>,
    patience: Duration,
    watch: &dyn Watch,
) -> Result<Option<cm::Connection>, PerfError> {
    let clock = Clock::new();
    loop {
        if let Some(request) = listener.get_request(Duration::from_millis(50))?
            && peer.is_none_or(|peer| peer == request.peer().ip())
        {
            let from = request.peer();
            let deed = match request.accept(qp, param) {
                Ok(connection) => match connection.met(&|| watch.stopped()) {
                    None if peer.is_none() && !watch.stopped() => {
                        let deed = "asked for a connection and took none";
                        lobby::report(from, deed, watch);
                        return Ok(None);
                    }
                    met => return Ok(met),
                },
                Err(error) => {
                    format!("asked for a connection that cannot be made: {error}{}", remedy_of(&error))
                }
            };
            if peer.is_none() {
                lobby::report(from, &deed, watch);
            }
        }
        if watch.stopped() {
            return Err(PerfError::Stopped);
        }
        if peer.is_some() && clock.passed() >= patience {
            return Err(PerfError::Silent);
        }
    }
}

/// What the device of a test is like.
fn device_config(options: &Options) -> DeviceConfig {
    let progress = Progress::Thread { spin: SPIN };
    let mut dscp = options.tos >> 2;
    let mut int_dscp = Telemetry::DSCP;
    if options.has_telemetry() && dscp != 0 {
        // By it a switch knows which packets have room for telemetry, and no others are to have it.
        (dscp, int_dscp) = (0, dscp);
    }
    let read_room = shares_flight(options).then_some(FLIGHT);
    let mut config = DeviceConfig {
        progress,
        link: options.link,
        hop_rates: options.hop_rates.clone(),
        dscp,
        int_dscp,
        read_room,
        ..DeviceConfig::default()
    };
    match &options.law {
        Some(Law::None) => config.laws.clear(),
        Some(law) => config.laws = vec![law.clone()],
        None => config.laws = Law::from_settings("dcqcn", &[], options.link).into_iter().collect(),
    }
    config
}

/// Opens the device of a test, whose link is to take the path MTU that was asked for.
fn open(address: IpAddr, options: &Options) -> Result<Device, PerfError> {
    let mut config = device_config(options);
    if options.layout() != Layout::Standard {
        config.mtu = mtu_of(address).map(|link| path::largest(link, options.layout()));
    }
    let device = Device::open_with(address, config);
    let device = device.map_err(|error| PerfError::Device(address, error))?;
    own_mtu(device.active_mtu(), options)?;
    Ok(device)
}

/// The path MTU that this end would have.
fn own_mtu(active: Mtu, options: &Options) -> Result<Mtu, PerfError> {
    match options.mtu {
        Some(mtu) if mtu > active => {
            let (mtu, active) = (mtu.octets(), active.octets());
            Err(PerfError::Options(format!("the link takes no MTU of {mtu}, at most {active}")))
        }
        mtu => Ok(mtu.unwrap_or(active)),
    }
}

/// What perftest's protocol does not compare, and shows only by what is said where something else is due.
pub(super) fn otherwise(what: &str) -> PerfError {
    PerfError::Peer(format!("{what}: are the test, -s or -a, -n or -D, -q, -b and -R the same at both ends?"))
}

pub(super) fn elsewhere(peer: IpAddr, ours: IpAddr) -> PerfError {
    PerfError::Peer(format!("has its device at {peer}, which cannot be reached from ours at {ours}"))
}

/// What both were told, of two of ours.
///
/// Gives what the laws of ours and of the peer are.
fn compare(channel: &mut dyn Channel, options: &Options) -> Result<[String; 2], PerfError> {
    let ours = Terms::of(options);
    let heard = channel.exchange(&ours.to_octets())?;
    let theirs = Terms::from_octets(&heard)
        .ok_or_else(|| PerfError::Peer("told no terms of a test that we know".to_owned()))?;
    let (client, server) = if channel.is_client() { (ours, theirs) } else { (theirs, ours) };
    let judged = Terms::compare(&client, &server);
    if judged.is_err() && !channel.is_client() {
        // What a server tells by RDMA-CM would be lost if it went before its client had it.
        let mut patience = 100;
        while patience > 0 && channel.news() != News::Gone {
            patience -= 1;
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let law = terms::law_of(options);
    judged.map(|()| [law.to_string(), theirs.law().to_owned()]).map_err(|error| {
        // A program's file is known at its own end alone.
        terms::named(error, &law, channel.is_client())
    })
}

/// What the ends have told each other before they make queue pairs.
struct Agreed {
    version: String,
    mtu: Mtu,
    laws: Option<[String; 2]>,
}

/// Versions, what both were told, page and line sizes, and the smaller MTU.
fn agree(channel: &mut dyn Channel, active: Mtu, options: &Options) -> Result<Agreed, PerfError> {
    let mut said = version();
    terms::mark(&mut said);
    let heard = channel.exchange(&said)?;
    debug_assert_eq!(heard.len(), VERSION_LEN);
    let version = judge_version(&heard).map_err(|version| match version.is_empty() {
        true => PerfError::Peer("said nothing where its version was due".to_owned()),
        false => PerfError::Peer(format!("is of version {version:?}; 5.70 and newer are understood")),
    })?;
    if terms::is_another_release(&heard) {
        return Err(PerfError::Peer("is another release of roci: two ends of ours are of one".to_owned()));
    }
    let is_ours = terms::is_marked(&heard);
    if !is_ours && options.layout() != Layout::Standard {
        let (what, option) = match options.recovery {
            Recovery::GoBackN => (format!("words of a law ({})", terms::law_of(options)), "--control"),
            recovery => (format!("recovery `{}`", recovery.name()), "--recovery"),
        };
        return Err(PerfError::Peer(format!(
            "is not ours, and RoCEv2 as others speak it has no {what}: leave {option} out"
        )));
    }
    let laws = is_ours.then(|| compare(channel, options)).transpose()?;
    channel.exchange(&u32::try_from(CYCLE).unwrap_or(4096).to_be_bytes())?;
    channel.exchange(&LINE.to_be_bytes())?;
    let ours = own_mtu(active, options)?;
    let heard = channel.exchange(&mtu_text(ours))?;
    let theirs = mtu_from_text(&heard).ok_or_else(|| PerfError::Peer("told no MTU".to_owned()))?;
    Ok(Agreed { version, mtu: ours.min(theirs), laws })
}

/// The rounds of keys before the data, and the connecting between them. The order is that of each of perftest's
/// programs; every key that is heard stands for the queue pair whose turn it is.
fn acquaint(
    channel: &mut dyn Channel,
    options: &Options,
    mut early: Option<Key>,
    local: &[Key],
    connect: impl FnOnce(&[Key]) -> Result<(), PerfError>,
) -> Result<Vec<Key>, PerfError> {
    let mut exchange = |channel: &mut dyn Channel, key: &Key| match early.take() {
        Some(heard) => channel.tell_key(key).map(|()| heard),
        None => channel.exchange_key(key),
    };
    let two_sided = options.test.verb == Verb::Send;
    if options.test.metric == Metric::Latency && !two_sided {
        exchange(channel, &local[0])?;
    }
    let remote = local.iter().map(|key| exchange(channel, key)).collect::<Result<Vec<_>, _>>()?;
    connect(&remote)?;
    if two_sided {
        exchange(channel, &local[0])?;
    }
    for key in local {
        exchange(channel, key)?;
    }
    if !two_sided {
        exchange(channel, &local[0])?;
    }
    Ok(remote)
}

#[cfg(test)]
mod tests {
    use super::super::Test;
    use super::*;

    #[test]
    fn a_path_mtu_is_the_links_or_a_smaller_one_that_is_asked_for() {
        let test = Test { metric: Metric::Bandwidth, verb: Verb::Write };
        let own = |mtu| own_mtu(Mtu::Mtu1024, &Options { mtu, ..Options::new(test) });
        assert_eq!(own(None).unwrap(), Mtu::Mtu1024);
        assert_eq!(own(Some(Mtu::Mtu256)).unwrap(), Mtu::Mtu256);
        let why = own(Some(Mtu::Mtu4096)).unwrap_err();
        assert!(matches!(why, PerfError::Options(_)), "{why}");
        assert_eq!(why.to_string(), "the link takes no MTU of 4096, at most 1024");
    }

    #[test]
    fn a_client_asks_again_only_where_the_answer_may_change() {
        let rejected =
            |reason| CmError::Rejected { peer: ([10, 0, 0, 2], 7).into(), reason, private_data: Vec::new() };
        assert!(may_change(&rejected(reason::CONSUMER), false));
        assert!(
            [false, true].map(|is_met| may_change(&rejected(reason::INVALID_SERVICE), is_met))
                == [false, true]
        );
        let of_mtu = rejected(reason::INVALID_MTU);
        assert!(!may_change(&of_mtu, false) && !may_change(&of_mtu, true));
        let told = PerfError::from(of_mtu).to_string();
        assert!(told.contains("rejected the connection: invalid path MTU (reason 26); "), "{told}");
        assert!(told.contains("-m"), "{told}");
        let larger = CmError::Mtu { asked: Some(Mtu::Mtu4096), most: Mtu::Mtu1024 };
        assert_eq!(remedy_of(&larger), " (a client of ours asks for less, another is given `-m 1024`)");
    }

    #[test]
    fn the_addresses_of_a_host_are_tried_until_one_does_and_who_was_asked_is_told_of_else() {
        let all = ["[::1]:7", "10.0.0.1:7", "[fd00::1]:7"].map(|at| at.parse().unwrap());
        let silent = |to| PerfError::from(CmError::Unreachable(to));
        let nowhere = || PerfError::from(std::io::Error::from(std::io::ErrorKind::NetworkUnreachable));
        let mut tried = Vec::new();
        let done = one_of(&all, |to| {
            tried.push(to);
            if to.is_ipv4() { Ok(to) } else { Err(nowhere()) }
        });
        assert_eq!((done.unwrap(), tried.len()), (all[1], 2));
        let failed = one_of(&all, |to| Err::<(), _>(if to.is_ipv4() { silent(to) } else { nowhere() }));
        assert!(matches!(failed, Err(PerfError::Connect(CmError::Unreachable(to))) if to == all[1]));
        let failed = one_of(&all, |_| Err::<(), _>(nowhere()));
        assert!(matches!(failed, Err(PerfError::Io(_))), "{failed:?}");
        tried.clear();
        let stopped = one_of(&all, |to| {
            tried.push(to);
            Err::<(), _>(PerfError::Stopped)
        });
        assert!(matches!(stopped, Err(PerfError::Stopped)) && tried.len() == 1);
    }

    #[test]
    fn many_queue_pairs_read_no_more_at_once_than_they_write_unless_each_has_a_window_of_its_own() {
        let room = |queue_pairs, window| {
            let test = Test { metric: Metric::Bandwidth, verb: Verb::Read };
            let options = Options { queue_pairs, window, ..Options::new(test) };
            device_config(&options).read_room
        };
        assert_eq!([room(1, None), room(2, None), room(2, Some(65536))], [None, Some(FLIGHT), None]);
    }
}
