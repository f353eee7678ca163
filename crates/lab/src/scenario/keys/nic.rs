//! The keys of `[nic]`.

use super::{HOSTS, RATE, Section, key, section};

/// The NICs of the hosts.
pub static NIC: Section = Section {
    path: "nic",
    keys: &[key("on", "a list of tables", "none", "Other values for some hosts.")],
    also: Some(&NIC_EACH),
};

/// What may differ from host to host.
pub static NIC_EACH: Section = section(
    "nic",
    &[
        key(
            "model",
            "`\"ideal\"`, `\"delaying\"`, the name of a preset that `roci nic list` shows, such as `\"srnic\"` or `\"swcc\"`, or that of a file ending in `.toml`",
            "`\"ideal\"`",
            "The NIC's architecture. `ideal` takes no time; `delaying` returns everything that can be deferred after a random 0 to 5 µs; the others are made of parts, which `roci nic show` prints and [NICs](nics.md) explains.",
        ),
        key(
            "with",
            "a table, such as `{ context = { entries = \"all\" } }`",
            "none",
            "Other values for parts of the NIC; `roci nic show` lists their keys.",
        ),
        key(
            "mtu",
            "a whole number, 1 to 4096",
            "`1024`",
            "Octets of payload in a full packet. Real queue pairs have one of IBTA's path MTUs, 256, 512, 1024, 2048 or 4096; any other \
             simulates a transport with segments of its own, and a line on stderr says so.",
        ),
        key(
            "rx_fifo",
            "a size, 16KB to 4GB",
            "unlimited",
            "The receive buffer. A NIC that it fills sends PAUSE; with `switch.pfc` on it must hold what still arrives after that.",
        ),
        key("rx_rate", RATE, "the link's", "How fast the NIC empties its receive buffer."),
        key(
            "ets",
            "as `switch.ets`",
            "`false`: every priority is strict",
            "How priorities share the host's own port, as `switch.ets` has it for switches. Not with `model = \"delaying\"`.",
        ),
    ],
);

/// Other values for some hosts.
pub static NIC_ON: Section = Section {
    path: "nic.on",
    keys: &[key("hosts", HOSTS, "required", "The hosts meant.")],
    also: Some(&NIC_EACH),
};
