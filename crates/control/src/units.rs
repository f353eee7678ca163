//! Words that several laws' registers share.

use crate::register::Value;
use roci_units::{BitsPerSec, Bytes, Span};

/// The range of a rate.
pub(crate) const RATES: &str = "1Kb/s to 4.29Tb/s";
/// The range of a share.
pub(crate) const PORTION: &str = "above 0, at most 1";

/// A rate, to be printed.
pub(crate) const fn rate(kbps: u32) -> Value {
    Value::Rate(BitsPerSec::from_kbps(kbps as u64))
}

/// A time, to be printed.
pub(crate) const fn time(span: Span) -> Value {
    Value::Time(span)
}

/// Octets, to be printed.
pub(crate) const fn octets_of(octets: u32) -> Value {
    Value::Octets(Bytes(octets as u64))
}

/// The register of a full packet's payload, for laws that count in packets.
pub(crate) const MSS: (&str, &str, &str, &str) = (
    "mss",
    "octets",
    "1B to 4096B",
    "Payload octets of a full packet; a scenario's `nic.mtu` unless it is set here.",
);
