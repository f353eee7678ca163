use super::*;
use proptest::prelude::*;

#[test]
fn named_means_are_the_published_ones() {
    for (name, mean) in [
        ("web-search", 1_711_250),
        ("fb-hdp", 120_421),
        ("ali-storage-2019", 40_870),
        ("cache-follower", 712_570),
        ("solar-2022", 39_424),
        ("data-mining", 7_487_884),
        ("web-server", 66_121),
        ("search", 1_710_004),
        ("fb-hdp-2015", 121_849),
    ] {
        let sizes = Sizes::named(name).unwrap();
        assert_eq!(sizes.mean(), Bytes(mean), "{name}");
        assert_eq!(sizes.name(), name);
    }
}

#[test]
fn every_listed_name_is_a_valid_distribution() {
    for (name, others) in NAMES {
        let sizes = Sizes::named(name).unwrap();
        for other in others {
            assert_eq!(Sizes::named(other).unwrap(), sizes, "{other}");
        }
        assert_eq!(Sizes::from_points(name, sizes.points.clone()), Ok(sizes));
    }
}

#[test]
fn the_files_own_names_are_understood() {
    for (alias, name) in [
        ("WebSearch", "web-search"),
        ("WebSearch_distribution", "web-search"),
        ("FbHdp", "fb-hdp"),
        ("AliStorage2019", "ali-storage-2019"),
        ("Cache_Follower", "cache-follower"),
        ("cachefollower", "cache-follower"),
        ("Solar2022", "solar-2022"),
        ("mining", "data-mining"),
        ("webserver", "web-server"),
    ] {
        assert_eq!(Sizes::named(alias).unwrap().name(), name);
    }
}

#[test]
fn the_key_lists_every_name_and_what_else_stands_for_it() {
    let sizes = crate::scenario::keys::POISSON.keys.iter().find(|key| key.name == "sizes").unwrap();
    assert!(sizes.means.contains(&tables::listed()), "{}", tables::listed());
}

#[test]
fn a_name_without_a_table_is_refused_with_those_that_have_one() {
    for name in ["homa-w6", "no-such"] {
        let message = Sizes::named(name).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
        let mut known = NAMES.iter().flat_map(|(known, others)| std::iter::once(known).chain(*others));
        assert!(known.all(|known| message.contains(known)), "{message}");
    }
}

#[test]
fn workloads_of_homa_have_the_means_and_percentiles_of_its_tables() {
    for (name, [mean, median, tail]) in [
        ("homa-w1", [189, 27, 1_876]),
        ("homa-w2", [442, 269, 3_151]),
        ("homa-w3", [2_928, 268, 31_013]),
        ("homa-w4", [127_797, 662, 3_430_822]),
        ("homa-w5", [2_564_690, 72_030, 27_440_490]),
        ("google-rpc-2008", [2_892, 257, 30_614]),
    ] {
        let sizes = Sizes::named(name).unwrap();
        let at = |percent: u64| sizes.sample(u64::try_from((u128::from(percent) << 64) / 100).unwrap()).0;
        for (have, want) in [(sizes.mean().0, mean), (at(50), median), (at(99), tail)] {
            assert!(have.abs_diff(want) * 50 <= want + 50, "{name}: {have}, not {want}");
        }
    }
    // Homa draws from its list alone.
    let w2 = Sizes::named("w2").unwrap();
    assert!((0..200u64).all(|n| matches!(w2.sample(n << 56).0, 8 | 32..=34 | 36 | 38 | 40 | 43..)));
}

#[test]
fn the_inverse_runs_through_the_points() {
    let sizes = Sizes::named("web-search").unwrap();
    let share = |percent: u64| u64::try_from((u128::from(percent) << 64) / 100).unwrap() + 1;
    assert_eq!(sizes.sample(share(15)), Bytes(10_000));
    assert_eq!(sizes.sample(share(85)), Bytes(3_500_000));
    assert_eq!(sizes.sample(0), Bytes(1));
    assert_eq!(sizes.sample(u64::MAX), Bytes(30_000_000));
}

#[test]
fn a_jump_gives_one_size_and_a_level_stretch_gives_none() {
    let sizes = Sizes::named("web-server").unwrap();
    let of_percent = |percent: u64| {
        let random = u64::try_from((u128::from(percent) << 64) / 100).unwrap();
        sizes.sample(random + (1 << 40))
    };
    assert_eq!(of_percent(12), Bytes(300));
    assert_eq!(of_percent(19), Bytes(300));
    assert!(of_percent(20) >= Bytes(600));
}

#[test]
fn evenly_spread_samples_have_the_stated_mean() {
    for (name, _) in NAMES {
        let sizes = Sizes::named(name).unwrap();
        let count = 1_000_000u64;
        let step = u64::MAX / count;
        let sum: u64 = (0..count).map(|i| sizes.sample(i * step + step / 2).0).sum();
        let (got, want) = (sum / count, sizes.mean().0);
        // Where sizes are far apart, a sample more or less of the largest shows.
        let coarse = sizes.points.last().unwrap().size.0 / count;
        assert!(got.abs_diff(want) <= want / 10_000 + coarse + 1, "{name}: {got} against {want}");
    }
}

#[test]
fn percent_and_fractions_are_read_alike() {
    let percent =
        Sizes::read("x", "# comment\n100 0\n\n10000 80\n 390541.0,90.5 # more\n1000000 100\n").unwrap();
    let fractions = Sizes::read("x", "100 0\n10000 0.8\n390541 .905\n1000000 1.0\n").unwrap();
    assert_eq!(percent, fractions);
}

#[test]
fn a_first_share_above_zero_is_a_jump() {
    let sizes = Sizes::read("x", "70 50\n170 100").unwrap();
    assert_eq!(sizes.mean(), Bytes(95));
    assert_eq!(sizes.sample(u64::MAX / 4), Bytes(70));
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    for (text, message) in [
        ("", "no points"),
        ("0 0\n10K 15\n", "line 2: \"10K 15\" is not"),
        ("0 0\n10 15 3\n", "line 2:"),
        ("0 0\n-10 15\n", "line 2:"),
        ("0 0\n10\n", "line 2:"),
        ("0 0\n10 nan\n", "line 2:"),
        ("0 0\n\n20 50\n10 100", "line 4: the size falls from 20B to 10B"),
        ("0 0\n10 50\n20 40\n", "line 3: the cumulative share falls"),
        ("0 0\n10 50\n20 99\n", "100 percent"),
        ("0 0\n2000000000000 100\n", "line 2: a size of 2000GB"),
        ("0 0\n0 100\n", "all sizes are zero"),
    ] {
        let error = Sizes::read("x", text).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?} gave {error:?}");
    }
}

proptest! {
    #[test]
    fn samples_never_fall_and_stay_in_range(
        mut corners in prop::collection::vec((0u64..1 << 40, 0u64..=WHOLE), 1..20),
        mut randoms in prop::collection::vec(any::<u64>(), 2..50),
    ) {
        let mut shares: Vec<u64> = corners.iter().map(|c| c.1).collect();
        corners.sort_unstable();
        shares.sort_unstable();
        let mut points: Vec<Point> =
            corners.iter().zip(shares).map(|(c, cumulative)| Point { size: Bytes(c.0 + 1), cumulative }).collect();
        points.last_mut().unwrap().cumulative = WHOLE;
        let (low, high) = (points[0].size, points[points.len() - 1].size);
        let sizes = Sizes::from_points("x", points).unwrap();
        randoms.sort_unstable();
        let drawn: Vec<Bytes> = randoms.iter().map(|&r| sizes.sample(r)).collect();
        prop_assert!(drawn.is_sorted());
        prop_assert!(drawn[0] >= low && drawn[drawn.len() - 1] <= high);
        prop_assert!(sizes.mean() >= low && sizes.mean() <= high);
    }

    #[test]
    fn no_text_panics(text in "[0-9. \n#,a-]{0,60}") {
        let _ = Sizes::read("x", &text);
    }
}
