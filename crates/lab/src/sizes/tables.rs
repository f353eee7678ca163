//! The distributions that have a name, as the field's public traffic generators publish them.

use super::{Point, Sizes, WHOLE, homa};
use roci_units::Bytes;

/// One percent of all flows.
const PERCENT: u64 = WHOLE / 100;

/// The names that [`Sizes::named`] knows, each with others that stand for the same.
pub const NAMES: [(&str, &[&str]); 15] = [
    ("web-search", &["web-search-distribution"]),
    ("fb-hdp", &["fb-hdp-distribution", "facebook-hadoop"]),
    ("ali-storage-2019", &["ali-storage"]),
    ("cache-follower", &[]),
    ("solar-2022", &["solar"]),
    ("data-mining", &["mining"]),
    ("web-server", &[]),
    ("search", &[]),
    ("google-rpc-2008", &["google-rpc"]),
    ("fb-hdp-2015", &[]),
    ("homa-w1", &["w1"]),
    ("homa-w2", &["w2"]),
    ("homa-w3", &["w3"]),
    ("homa-w4", &["w4"]),
    ("homa-w5", &["w5"]),
];

/// A name that no distribution has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown size distribution {0:?}; use one of {list} (capitals, - and _ make no difference), a size, or a file of \"size percent\" lines", list = listed())]
pub struct UnknownSizes(pub String);

/// All names, those that stand for the same in brackets behind it.
pub(super) fn listed() -> String {
    let one = |(name, others): &(&str, &[&str])| match others {
        [] => (*name).to_owned(),
        others => format!("{name} ({})", others.join(", ")),
    };
    NAMES.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A name without what makes no difference.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

pub(super) fn find(name: &str) -> Result<Sizes, UnknownSizes> {
    let wanted = plain(name);
    let is_it = |(known, others): &&(&str, &[&str])| {
        std::iter::once(known).chain(*others).any(|other| plain(other) == wanted)
    };
    let known = NAMES.iter().find(is_it).map_or("", |(known, _)| known);
    let points: &[(u64, u64)] = match known {
        "web-search" => &WEB_SEARCH,
        "fb-hdp" => &FB_HDP,
        "ali-storage-2019" => &ALI_STORAGE_2019,
        "cache-follower" => &CACHE_FOLLOWER,
        "solar-2022" => &SOLAR_2022,
        "data-mining" => &DATA_MINING,
        "web-server" => &WEB_SERVER,
        "search" => &SEARCH,
        "google-rpc-2008" => return Ok(of(known, homa::lines(3))),
        "fb-hdp-2015" => return Ok(of(known, homa::lines(4))),
        "homa-w1" => return Ok(of(known, homa::sizes(1))),
        "homa-w2" => return Ok(of(known, homa::sizes(2))),
        "homa-w3" => return Ok(of(known, homa::sizes(3))),
        "homa-w4" => return Ok(of(known, homa::sizes(4))),
        "homa-w5" => return Ok(of(known, homa::sizes(5))),
        _ => return Err(UnknownSizes(name.to_owned())),
    };
    let point = |&(size, cumulative)| Point { size: Bytes(size), cumulative };
    Ok(of(known, points.iter().map(point).collect()))
}

fn of(name: &str, points: Vec<Point>) -> Sizes {
    Sizes { name: name.to_owned(), points }
}

const fn percent(whole: u64) -> u64 {
    whole * PERCENT
}

/// `hundredths` of a percent.
const fn hundredths(hundredths: u64) -> u64 {
    hundredths * (PERCENT / 100)
}

/// HPCC's `WebSearch_distribution`, after the search traffic measured for DCTCP.
const WEB_SEARCH: [(u64, u64); 12] = [
    (0, 0),
    (10_000, percent(15)),
    (20_000, percent(20)),
    (30_000, percent(30)),
    (50_000, percent(40)),
    (80_000, percent(53)),
    (200_000, percent(60)),
    (1_000_000, percent(70)),
    (2_000_000, percent(80)),
    (5_000_000, percent(90)),
    (10_000_000, percent(97)),
    (30_000_000, percent(100)),
];

/// HPCC's `FbHdp_distribution`: a Hadoop cluster.
const FB_HDP: [(u64, u64); 20] = [
    (0, 0),
    (100, percent(1)),
    (200, percent(2)),
    (300, percent(5)),
    (350, percent(15)),
    (400, percent(20)),
    (500, percent(30)),
    (600, percent(40)),
    (700, percent(50)),
    (1_000, percent(60)),
    (2_000, percent(67)),
    (7_000, percent(70)),
    (30_000, percent(72)),
    (50_000, percent(82)),
    (80_000, percent(87)),
    (120_000, percent(90)),
    (300_000, percent(95)),
    (1_000_000, hundredths(97_50)),
    (2_000_000, percent(99)),
    (10_000_000, percent(100)),
];

/// `AliStorage2019` of the HPCC programs: block storage.
const ALI_STORAGE_2019: [(u64, u64); 9] = [
    (0, 0),
    (4_000, hundredths(22_93)),
    (8_000, hundredths(69_21)),
    (16_000, hundredths(80_61)),
    (32_000, hundredths(90_47)),
    (64_000, hundredths(93_53)),
    (128_000, hundredths(96_77)),
    (256_000, hundredths(97_53)),
    (2_000_000, percent(100)),
];

/// `Cache_Follower` of SRNIC's simulation: a cache tier; one flow in a hundred has exactly 70 octets.
const CACHE_FOLLOWER: [(u64, u64); 21] = [
    (70, 0),
    (70, percent(1)),
    (150, percent(4)),
    (300, percent(8)),
    (350, percent(19)),
    (450, percent(20)),
    (500, percent(28)),
    (600, percent(30)),
    (700, percent(35)),
    (1_100, percent(40)),
    (2_000, percent(42)),
    (10_000, percent(48)),
    (30_000, percent(50)),
    (100_000, percent(52)),
    (200_000, percent(60)),
    (400_000, percent(68)),
    (600_000, percent(70)),
    (1_500_000, hundredths(70_10)),
    (2_000_000, percent(80)),
    (2_400_000, percent(90)),
    (3_000_000, percent(100)),
];

/// `Solar2022` of the ConWeave programs: block storage in blocks of 4, 16 and 64 KiB.
const SOLAR_2022: [(u64, u64); 8] = [
    (0, 0),
    (4_095, PERCENT / 1_000),
    (4_096, percent(30)),
    (16_383, percent(35)),
    (16_384, percent(50)),
    (65_535, percent(60)),
    (65_536, percent(95)),
    (262_144, percent(100)),
];

/// The data-mining traffic of the ConWeave programs' `mining`.
const DATA_MINING: [(u64, u64); 7] = [
    (100, 0),
    (10_000, percent(80)),
    (152_522, hundredths(83_46)),
    (390_541, percent(90)),
    // 95.3846 %: often printed as 95.38, which would raise the mean by 2 KB.
    (3_223_542, 953_846 * (WHOLE / 1_000_000)),
    (100_000_000, percent(99)),
    (1_000_000_000, percent(100)),
];

/// The web-server traffic of the ConWeave programs' `webserver`; eight flows in a hundred have exactly 300 octets.
const WEB_SERVER: [(u64, u64); 13] = [
    (150, 0),
    (300, percent(12)),
    (300, percent(20)),
    (600, percent(20)),
    (1_000, percent(30)),
    (2_000, percent(40)),
    (3_100, percent(50)),
    (6_000, percent(60)),
    (20_000, percent(71)),
    (60_000, percent(80)),
    (150_000, percent(82)),
    (300_000, percent(90)),
    (500_000, percent(100)),
];

/// The ConWeave programs' `search`: as web-search, but no flow is shorter than 9000 octets.
const SEARCH: [(u64, u64); 12] = [
    (9_000, 0),
    (9_000, percent(15)),
    (18_582, percent(20)),
    (28_140, percent(30)),
    (38_913, percent(40)),
    (77_468, percent(53)),
    (200_000, percent(60)),
    (1_000_000, percent(70)),
    (2_000_000, percent(80)),
    (5_000_000, percent(90)),
    (10_000_000, percent(97)),
    (30_000_000, percent(100)),
];
