//! The keys of `[machine]`.

use super::{Key, Section, key, section};

const KEYS: &[Key] = &[
    key("cores", "a whole number, 1 to 1024", "8", "Cores."),
    key(
        "threads_per_core",
        "a whole number, 1 to 8",
        "2",
        "Hardware threads of a core. The first threads have a core each; then they share.",
    ),
    key(
        "shared_speed",
        "a share above 0 and at most 1",
        "`\"5/8\"`",
        "The speed of a thread while another of its core is busy, over that of one alone; what it waits for single lines takes as long.",
    ),
    key(
        "cache",
        "a size, 4KiB to 4GiB, a multiple of 64B times `ways`",
        "`\"12MiB\"`",
        "The last-level cache. Lines have 64 octets.",
    ),
    key("ways", "a whole number, 1 to 64", "12", "Its ways."),
    key(
        "io_ways",
        "a whole number, 0 up to `ways`",
        "2",
        "Of these, how many a NIC's write may take where its line is not in the cache (DDIO); 0: it goes to memory.",
    ),
    key("hit", "a time above zero", "`\"25ns\"`", "How long a core waits for a line from the cache."),
    key("miss", "a time above zero", "`\"90ns\"`", "How long it waits for a line from idle memory."),
    key(
        "fill_buffers",
        "a whole number, 1 to 1024",
        "12",
        "Lines that a core waits for at once where it knows their addresses.",
    ),
    key(
        "memory_rate",
        "a rate above zero, such as `\"683Gb/s\"`",
        "`\"682.7Gb/s\"`",
        "What all channels of the memory carry together.",
    ),
    key(
        "iio_entries",
        "a whole number, 1 to 65535",
        "93",
        "Lines that the buffer between PCIe and memory has room for.",
    ),
    key("iio_time", "a time above zero", "`\"65ns\"`", "How long a line stands there where nothing waits."),
    key(
        "hostcc",
        "`true`, `false` or a whole number, 1 up to `iio_entries`",
        "`false`",
        "hostCC: what arrives is marked CE while so many lines stand there, as a moving average; `true` is 70. The \
         congestion control then does with the marks what it does with those of switches.",
    ),
];

/// Machines that answer requests.
pub static MACHINE: Section = section("machine", KEYS);
