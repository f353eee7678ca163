//! The workloads W1 to W5 of Homa (Montazeri et al., SIGCOMM 2018, figure 1), by the figures in `util/dist.cc` of its
//! implementation for Linux (PlatformLab/HomaModule), which lists up to 842 sizes of each.
//!
//! These sizes follow rules, so that corners and a number of steps between them give the list back: between two corners
//! each size has an equal share of the messages, and the sizes are evenly spaced, or their reciprocals are, or their
//! logarithms. W2, W3 and W4 come back as they are listed but for a few last digits, the others within the spacing of
//! their sizes.
//!
//! Homa draws from the listed sizes alone. The field's flow generators draw straight lines through the points of W3 and
//! W4, which they know as `GoogleRPC2008` and `FbHdp2015`.

use super::{Point, WHOLE};
use roci_units::Bytes;

/// How the sizes between two corners are spaced.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    /// Evenly.
    Even,
    /// Evenly in their logarithms.
    Logarithms,
    /// Evenly in their reciprocals.
    Reciprocals,
}

/// Size, share of messages that are no longer, in parts of [`WHOLE`], steps from the corner before.
type Corner = (u64, u64, u64);

/// The sizes of workload `n`, 1 to 5, and nothing between them; empty for another `n`.
pub(super) fn sizes(n: u8) -> Vec<Point> {
    let mut share = 0;
    let mut points = Vec::new();
    for point in listed(n) {
        points.extend([Point { cumulative: share, ..point }, point]);
        share = point.cumulative;
    }
    points
}

/// Straight lines through the points of workload `n`, 1 to 5; empty for another `n`.
pub(super) fn lines(n: u8) -> Vec<Point> {
    let mut points = listed(n);
    if let Some(&(size, share, _)) = corners(n).0.first() {
        let first = Point { size: Bytes(size), cumulative: 0 };
        points.insert(0, first);
        debug_assert!(share == 0 || points[1].size == first.size);
    }
    points
}

fn corners(n: u8) -> (&'static [Corner], Spacing) {
    match n {
        1 => (&W1, Spacing::Logarithms),
        2 => (&W2, Spacing::Reciprocals),
        3 => (&W3, Spacing::Reciprocals),
        4 => (&W4, Spacing::Logarithms),
        5 => (&W5, Spacing::Even),
        _ => (&[], Spacing::Even),
    }
}

/// The list of workload `n`.
fn listed(n: u8) -> Vec<Point> {
    let (corners, spacing) = corners(n);
    let first = corners.first().filter(|(_, share, _)| *share > 0);
    let mut points: Vec<Point> =
        first.map(|&(size, cumulative, _)| Point { size: Bytes(size), cumulative }).into_iter().collect();
    for pair in corners.windows(2) {
        let [(from, low, _), (to, high, steps)] = [pair[0], pair[1]];
        points.extend((1..=steps).map(|step| Point {
            size: Bytes(spacing.between(from, to, step, steps)),
            cumulative: low + (high - low) * step / steps,
        }));
    }
    points
}

impl Spacing {
    /// The size `step` of `steps` after `from` on the way to `to`.
    #[expect(clippy::cast_precision_loss, reason = "sizes are below 2^53")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two sizes")]
    fn between(self, from: u64, to: u64, step: u64, steps: u64) -> u64 {
        match self {
            Self::Even => from + (to - from) * step / steps,
            Self::Reciprocals => {
                let below = to * steps - step * (to - from);
                (from * to * steps + below / 2) / below
            }
            // `libm` computes the same everywhere.
            Self::Logarithms => {
                let ratio = libm::pow(to as f64 / from as f64, step as f64 / steps as f64);
                (from as f64 * ratio + 0.5) as u64
            }
        }
    }
}

/// A key-value store's requests at Facebook.
const W1: [Corner; 51] = [
    (8, 310_940_000_000, 1),
    (9, 319_310_000_000, 1),
    (10, 327_680_000_000, 1),
    (11, 417_570_000_000, 1),
    (12, 418_490_000_000, 1),
    (13, 421_750_000_000, 1),
    (14, 441_550_000_000, 1),
    (15, 470_000_000_000, 1),
    (18, 478_598_000_000, 5),
    (22, 487_086_000_000, 6),
    (27, 498_751_000_000, 7),
    (33, 512_581_000_000, 7),
    (40, 528_859_000_000, 7),
    (48, 544_959_000_000, 6),
    (59, 566_446_000_000, 7),
    (71, 587_288_000_000, 6),
    (84, 610_401_000_000, 6),
    (100, 635_723_000_000, 6),
    (120, 663_085_000_000, 6),
    (143, 692_195_000_000, 6),
    (170, 722_626_000_000, 6),
    (203, 753_825_000_000, 6),
    (242, 785_131_000_000, 6),
    (289, 815_817_000_000, 6),
    (344, 845_147_000_000, 6),
    (410, 872_441_000_000, 6),
    (489, 897_136_000_000, 6),
    (582, 918_841_000_000, 6),
    (694, 937_362_000_000, 6),
    (827, 952_706_000_000, 6),
    (986, 965_051_000_000, 6),
    (1_175, 974_704_000_000, 6),
    (1_401, 982_049_000_000, 6),
    (1_669, 987_495_000_000, 6),
    (1_989, 991_438_000_000, 6),
    (2_371, 994_229_000_000, 6),
    (2_826, 996_165_000_000, 6),
    (3_367, 997_484_000_000, 6),
    (4_013, 998_368_000_000, 6),
    (4_782, 998_952_000_000, 6),
    (5_699, 999_333_000_000, 6),
    (6_792, 999_578_000_000, 6),
    (8_094, 999_735_000_000, 6),
    (9_646, 999_835_000_000, 6),
    (11_496, 999_897_000_000, 6),
    (13_700, 999_937_000_000, 6),
    (17_309, 999_967_000_000, 8),
    (22_518, 999_984_000_000, 9),
    (30_164, 999_993_000_000, 10),
    (50_000, 999_998_000_000, 18),
    (100_000, 1_000_000_000_000, 24),
];

/// Search at Google.
const W2: [Corner; 17] = [
    (8, 170_107_627_909, 1),
    (32, 189_008_475_454, 1),
    (64, 326_435_928_252, 10),
    (128, 341_703_173_597, 10),
    (256, 463_839_540_642, 10),
    (512, 910_400_619_997, 10),
    (1_024, 958_110_136_514, 10),
    (2_048, 981_010_712_777, 10),
    (4_096, 995_323_561_778, 10),
    (8_192, 998_424_683_031, 10),
    (16_384, 998_901_777_750, 10),
    (32_768, 999_140_325_109, 10),
    (65_536, 999_349_054_281, 10),
    (131_072, 999_870_877_211, 10),
    (262_144, 999_975_241_797, 10),
    (524_288, 999_982_696_460, 10),
    (3_529_904, 1_000_000_000_000, 10),
];

/// All applications of a data centre of Google.
const W3: [Corner; 17] = [
    (8, 64_882_623_002, 1),
    (32, 97_323_934_504, 1),
    (64, 155_270_736_542, 5),
    (128, 351_573_142_510, 6),
    (256, 497_900_763_354, 8),
    (512, 784_921_250_116, 11),
    (1_024, 863_199_568_388, 14),
    (2_048, 908_861_924_105, 18),
    (4_096, 934_954_649_374, 24),
    (8_192, 964_309_064_519, 31),
    (16_384, 984_694_041_115, 41),
    (32_768, 990_401_835_580, 53),
    (65_536, 993_255_726_452, 69),
    (131_072, 997_128_873_150, 90),
    (262_144, 998_453_102_760, 118),
    (524_288, 999_498_229_936, 153),
    (15_158_197, 1_000_000_000_000, 199),
];

/// A Hadoop cluster at Facebook.
const W4: [Corner; 46] = [
    (50, 0, 0),
    (92, 7_400_000_000, 10),
    (217, 14_900_000_000, 10),
    (271, 40_900_000_000, 10),
    (300, 52_000_000_000, 10),
    (326, 137_500_000_000, 10),
    (376, 202_600_000_000, 10),
    (425, 223_000_000_000, 10),
    (480, 263_900_000_000, 10),
    (600, 459_100_000_000, 10),
    (679, 516_700_000_000, 10),
    (737, 552_000_000_000, 10),
    (800, 576_200_000_000, 10),
    (885, 591_200_000_000, 10),
    (1_042, 609_700_000_000, 10),
    (1_277, 628_200_000_000, 10),
    (1_413, 639_400_000_000, 10),
    (1_534, 646_800_000_000, 10),
    (1_664, 667_300_000_000, 10),
    (2_214, 674_700_000_000, 10),
    (5_210, 693_300_000_000, 20),
    (7_830, 708_200_000_000, 10),
    (31_946, 721_200_000_000, 10),
    (36_844, 730_500_000_000, 10),
    (39_973, 739_800_000_000, 10),
    (44_260, 758_400_000_000, 10),
    (47_050, 778_800_000_000, 10),
    (51_046, 816_000_000_000, 10),
    (62_583, 823_400_000_000, 10),
    (70_722, 832_700_000_000, 10),
    (75_180, 842_000_000_000, 10),
    (81_565, 871_700_000_000, 10),
    (102_058, 888_500_000_000, 10),
    (115_331, 897_800_000_000, 10),
    (133_013, 907_000_000_000, 10),
    (156_563, 916_400_000_000, 10),
    (184_284, 925_700_000_000, 10),
    (212_546, 934_900_000_000, 10),
    (240_177, 944_200_000_000, 10),
    (288_520, 953_500_000_000, 10),
    (470_507, 962_800_000_000, 10),
    (736_642, 968_400_000_000, 10),
    (940_700, 972_100_000_000, 10),
    (1_769_244, 981_400_000_000, 10),
    (2_169_118, 987_000_000_000, 10),
    (10_000_000, 1_000_000_000_000, 10),
];

/// Web search, as DCTCP measured it.
const W5: [Corner; 15] = [
    (0, 0, 0),
    (8_580, 150_000_000_000, 6),
    (19_110, 200_000_000_000, 7),
    (27_930, 300_000_000_000, 6),
    (48_510, 400_000_000_000, 14),
    (77_910, 530_000_000_000, 20),
    (195_510, 600_000_000_000, 80),
    (364_560, 621_536_000_000, 115),
    (588_000, 650_000_000_000, 12),
    (980_490, 700_000_000_000, 20),
    (1_470_000, 750_000_000_000, 20),
    (1_959_510, 800_000_000_000, 20),
    (4_899_510, 900_000_000_000, 40),
    (9_801_960, 900_000_000_000, 1),
    (29_400_000, 1_000_000_000_000, 40),
];

const _: () = assert!(WHOLE == 1_000_000_000_000, "shares are written in parts of it");
