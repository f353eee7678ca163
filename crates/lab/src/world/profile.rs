//! What the queue pairs of a scenario have in common, by host.

use crate::scenario::Scenario;
use roci_fabric::packet::HostId;
use roci_transport::{Deferred, QpConfig, Service};
use roci_units::Span;

/// Attributes of queue pairs.
pub(super) struct Profiles {
    /// What holds for all.
    common: QpConfig,
    /// The priority of data.
    pub(super) priority: u8,
    hosts: Vec<HostProfile>,
}

struct HostProfile {
    mtu: u16,
    deferred: Deferred,
    key: u32,
}

impl Profiles {
    /// Those of `scenario`. `keys` are the keys of the region that each host has registered.
    pub(super) fn new(scenario: &Scenario, keys: &[u32]) -> Self {
        let transport = &scenario.transport;
        let common = QpConfig {
            service: transport.service,
            tells_writes: true,
            recovery: transport.recovery,
            layout: transport.layout,
            timeout: transport.timeout,
            retry: transport.retry,
            rnr_retry: transport.rnr_retry,
            min_rnr_timer: transport.min_rnr_timer,
            ack_every: transport.ack_every,
            ring: transport.ring,
            max_rd_atomic: transport.max_rd_atomic,
            max_dest_rd_atomic: transport.max_rd_atomic,
            max_in_flight: transport.max_in_flight,
            initial_window: transport.initial_window,
            ..QpConfig::default()
        };
        let hosts = scenario.topology.graph.hosts.iter().zip(keys);
        let hosts = hosts.map(|(name, &key)| {
            let nic = scenario.nic.config_of(name);
            HostProfile { mtu: nic.mtu, deferred: nic.model.deferred(), key }
        });
        Self { common, priority: scenario.switch.classes.data, hosts: hosts.collect() }
    }

    /// The attributes of a queue pair on `host`.
    pub(super) fn qp(&self, host: HostId) -> QpConfig {
        QpConfig { deferred: self.host(host).deferred, ..self.common }
    }

    /// The service of queue pairs.
    pub(super) fn service(&self) -> Service {
        self.common.service
    }

    /// The local ACK timeout; of unreliable connections, how long messages are waited for.
    pub(super) fn timeout(&self) -> Span {
        self.common.timeout
    }

    /// The payload of a full packet between two hosts.
    pub(super) fn mtu(&self, a: HostId, b: HostId) -> u16 {
        self.host(a).mtu.min(self.host(b).mtu)
    }

    /// The key of the region that `host` has registered: all of its memory.
    pub(super) fn key(&self, host: HostId) -> u32 {
        self.host(host).key
    }

    fn host(&self, host: HostId) -> &HostProfile {
        &self.hosts[usize::from(host.0)]
    }
}
