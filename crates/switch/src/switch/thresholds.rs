//! What a switch goes by that may change while it works.

use super::{Switch, share_of};
use crate::config::{ConfigError, SwitchConfig};
use crate::port::Port;
use crate::red::Red;
use roci_units::BitsPerSec;

impl Switch {
    /// Sets the marking of one port; `None` turns it off.
    ///
    /// # Errors
    /// When the line makes no sense, or there are already 255 different ones.
    pub fn set_marking<L>(&mut self, port: &mut Port<L>, red: Option<Red>) -> Result<(), ConfigError> {
        let Some(red) = red else {
            port.red = 0;
            return Ok(());
        };
        if !red.is_valid() {
            return Err(ConfigError::Marking);
        }
        let known = self.red.iter().chain(&self.more_reds).position(|known| *known == red);
        let place = known.unwrap_or_else(|| match self.red {
            None => {
                self.red = Some(red);
                0
            }
            Some(_) => {
                self.more_reds.push(red);
                self.more_reds.len()
            }
        });
        port.red = u8::try_from(place + 1).map_err(|_| ConfigError::Marking)?;
        Ok(())
    }

    /// Goes by the thresholds of `config` from now on: where its ports, which have `rates`, mark, α of both kinds, and how far below their
    /// threshold paused neighbours may go on. What is kept aside of the buffer, and all else, stays as it was built.
    ///
    /// # Errors
    /// When a marking line makes no sense, or there are more than 255 different ones.
    pub fn set_thresholds<L>(
        &mut self,
        ports: &mut [Port<L>],
        config: &SwitchConfig,
        rates: impl Iterator<Item = BitsPerSec>,
    ) -> Result<(), ConfigError> {
        self.share = share_of(config.alpha);
        if let Some(pfc) = &config.pfc {
            self.pfc_share = share_of(pfc.alpha);
            self.resume = u32::try_from(pfc.resume.0).unwrap_or(u32::MAX);
        }
        // Lines that no port goes by any more make room for others.
        self.red = None;
        self.more_reds.clear();
        ports[self.first_port as usize..].iter_mut().zip(rates).try_for_each(|(port, rate)| {
            port.doublings = config.pfc.as_ref().map_or(0, |pfc| pfc.doublings(rate));
            self.set_marking(port, config.marking_at(rate))
        })
    }
}
