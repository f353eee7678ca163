//! `[nic]`: the NICs of the hosts.

use super::keys;
use super::read::Table;
use super::source::{Located, ScenarioError};
use roci_units::{BitsPerSec, Bytes};

/// All that a scenario says of NICs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nic {
    /// What holds for every host that no rule is about.
    pub config: NicConfig,
    /// `[[nic.on]]`, in the order of the text: the last that is about a host decides.
    pub rules: Vec<NicRule>,
}

/// Other values for some hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct NicRule {
    /// The hosts meant, by name; at least one.
    pub hosts: Vec<Located<String>>,
    /// What holds for them.
    pub config: NicConfig,
}

/// A NIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// Its architecture.
    pub model: NicModel,
    /// Octets of payload in a full packet, 1 to 4096. Between two hosts the smaller holds.
    pub mtu: u16,
    /// The receive buffer; `None`: unlimited.
    pub rx_fifo: Option<Bytes>,
    /// How fast it empties its receive buffer; `None`: as fast as the link.
    pub rx_rate: Option<BitsPerSec>,
}

/// The architectures that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NicModel {
    /// Takes no time.
    #[default]
    Ideal,
    /// Returns everything that can be deferred after a random 0 to 5 µs.
    Delaying,
}

impl Default for NicConfig {
    fn default() -> Self {
        Self { model: NicModel::Ideal, mtu: 1024, rx_fifo: None, rx_rate: None }
    }
}

impl Nic {
    /// What holds for the host `name`.
    pub fn config_of(&self, name: &str) -> &NicConfig {
        let meant = |rule: &&NicRule| rule.hosts.iter().any(|host| host.value == name);
        self.rules.iter().rfind(meant).map_or(&self.config, |rule| &rule.config)
    }

    /// Reads `[nic]`.
    pub(super) fn read(table: Option<Table<'_>>) -> Result<Self, ScenarioError> {
        let Some(table) = table else { return Ok(Self::default()) };
        let config = config(table, &NicConfig::default())?;
        let mut rules = Vec::new();
        for rule in table.tables("on", &keys::NIC_ON)? {
            let hosts = rule.require("hosts", rule.texts("hosts")?)?;
            if hosts.is_empty() {
                return Err(rule.refuse("hosts", "this list of hosts is empty", "name at least one host"));
            }
            rules.push(NicRule { hosts, config: self::config(rule, &config)? });
        }
        Ok(Self { config, rules })
    }
}

/// The NIC that `table` describes; what it leaves out is as in `base`.
fn config(table: Table<'_>, base: &NicConfig) -> Result<NicConfig, ScenarioError> {
    let models = [("ideal", NicModel::Ideal), ("delaying", NicModel::Delaying)];
    let mtu = table.number("mtu", 1..=4096)?.and_then(|mtu| u16::try_from(mtu).ok());
    Ok(NicConfig {
        model: table.word("model", &models)?.unwrap_or(base.model),
        mtu: mtu.unwrap_or(base.mtu),
        rx_fifo: table.bytes("rx_fifo", 16_000..=4_000_000_000)?.or(base.rx_fifo),
        rx_rate: table.rate("rx_rate")?.or(base.rx_rate),
    })
}
