//! What the path to the peer carries, as far as this host's routes tell: known before anything is sent over it.

use super::{Options, PerfError};
use crate::addresses::{addresses_of_host_from, path_mtu};
use crate::device::{Device, Mtu};
use crate::io::sys;
use roci_wire::{Layout, Opcode};
use std::net::{IpAddr, SocketAddr};

/// Refuses a path MTU that the path to none of the addresses of `host` carries, before its server is asked for anything.
pub(super) fn judge(host: &str, options: &Options) -> Result<(), PerfError> {
    let Some(asked) = options.mtu else { return Ok(()) };
    // Of a host without addresses it is told where one is looked for.
    let all = addresses_of_host_from(options.device, host, options.port).unwrap_or_default();
    let octets = |to: &SocketAddr| match options.device {
        // Over TCP the ends may talk by another network than the data's.
        Some(device) if !options.rdma_cm => sys::mtu_of(device),
        Some(device) => path_mtu(Some(device), *to).ok(),
        None => path_mtu(None, *to).ok(),
    };
    all.iter().filter_map(octets).max().map_or(Ok(()), |octets| within(asked, host, octets, options.layout()))
}

/// Octets that the headers of a layout have more than those of the standard one.
fn more(layout: Layout) -> u32 {
    let most = |layout: Layout| layout.extension_len(Opcode::WRITE_ONLY_IMMEDIATE);
    u32::try_from(most(layout) - most(Layout::Standard)).unwrap_or(u32::MAX)
}

/// The largest path MTU whose packets, in that layout, have room in IP datagrams of so many octets.
pub(super) fn largest(octets: u32, layout: Layout) -> Mtu {
    Mtu::within(octets.saturating_sub(more(layout)))
}

/// Whether IP datagrams of so many octets have room for packets of a path MTU in that layout.
fn within(asked: Mtu, host: &str, octets: u32, layout: Layout) -> Result<(), PerfError> {
    let most = largest(octets, layout);
    if asked <= most {
        return Ok(());
    }
    let needed = u32::from(asked.octets()) + Mtu::AROUND + more(layout);
    let [asked, most] = [asked, most].map(Mtu::octets);
    Err(PerfError::Options(format!(
        "the path to {host} takes no MTU of {asked}, at most {most}: its IP datagrams have up to {octets} octets, and {needed} are needed"
    )))
}

/// The largest path MTU from `device` to the peer at `to`, with which the ends talk over an address of the host that is `ours`.
pub(super) fn active(device: &Device, ours: IpAddr, to: SocketAddr, layout: Layout) -> Mtu {
    let active = device.active_mtu();
    if ours != device.address() {
        // The data go by another network, to a device that has not been told yet.
        return active;
    }
    path_mtu(Some(ours), to).map_or(active, |octets| active.min(largest(octets, layout)))
}

#[cfg(test)]
mod tests {
    use super::super::{Metric, Test, Verb};
    use super::*;
    use roci_wire::Cc;

    #[test]
    fn a_path_mtu_beyond_the_path_is_refused_with_what_it_takes_and_others_are_not() {
        for fits in [(Mtu::Mtu1024, 1500), (Mtu::Mtu4096, 4180), (Mtu::Mtu4096, 65536), (Mtu::Mtu256, 100)] {
            assert!(within(fits.0, "host", fits.1, Layout::Standard).is_ok(), "{fits:?}");
        }
        let why = within(Mtu::Mtu4096, "10.0.0.2", 1500, Layout::Standard).unwrap_err();
        assert!(matches!(why, PerfError::Options(_)), "{why}");
        assert_eq!(
            why.to_string(),
            "the path to 10.0.0.2 takes no MTU of 4096, at most 1024: its IP datagrams have up to 1500 octets, and 4180 are needed"
        );
        assert!(within(Mtu::Mtu2048, "host", 2131, Layout::Standard).is_err());
    }

    #[test]
    fn packets_with_room_for_telemetry_go_through_the_path_as_well() {
        let telemetry = Layout::Cc(Cc::new(false, true, 0).unwrap());
        let of = |layout| [1500, 4180, 4224].map(|octets| largest(octets, layout));
        assert_eq!(of(Layout::Standard), [Mtu::Mtu1024, Mtu::Mtu4096, Mtu::Mtu4096]);
        assert_eq!(of(telemetry), [Mtu::Mtu1024, Mtu::Mtu2048, Mtu::Mtu4096]);
        let why = within(Mtu::Mtu4096, "host", 4180, telemetry).unwrap_err().to_string();
        assert!(why.contains("4224 are needed"), "{why}");
    }

    #[test]
    fn what_is_known_of_no_path_refuses_nothing() {
        let test = Test { metric: Metric::Bandwidth, verb: Verb::Write };
        for host in ["127.0.0.1", "no such host"] {
            for mtu in [None, Some(Mtu::Mtu1024)] {
                assert!(judge(host, &Options { mtu, ..Options::new(test) }).is_ok(), "{host}");
            }
        }
    }
}
