use super::*;
use crate::scenario::Scenario;
use std::sync::atomic::{AtomicU32, Ordering};

/// Two hosts and a third behind the next switch.
const TOPOLOGY: &str =
    "5 2 4\n3 4\n0 3 25Gbps 1us 0\n1 3 25Gbps 1us 0\n2 4 25Gbps 1us 0\n3 4 100Gbps 2us 0\n";
const FLOWS: &str = "2\n0 2 3 100 100000 2.0\n1 2 3 100 50000 2.00001\n";
const MAPS: &str = "KMAX_MAP 2 25000000000 400 100000000000 1600\nKMIN_MAP 2 25000000000 100 100000000000 400\n\
                    PMAX_MAP 2 25000000000 0.2 100000000000 0.2\n";

/// A folder with the three files, as the simulator has them: all in `mix`, and paths from the folder above.
struct Files(PathBuf);

impl Files {
    fn new(config: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("roci-import-{}-{number}", std::process::id()));
        let mix = folder.join("mix");
        std::fs::create_dir_all(&mix).unwrap();
        let files = "TOPOLOGY_FILE mix/topology.txt\nFLOW_FILE mix/flow.txt\n";
        std::fs::write(mix.join("config.txt"), format!("{files}{config}")).unwrap();
        std::fs::write(mix.join("topology.txt"), TOPOLOGY).unwrap();
        std::fs::write(mix.join("flow.txt"), FLOWS).unwrap();
        Self(mix)
    }

    fn import(&self) -> Result<Imported, ConfigError> {
        import(&self.0.join("config.txt"), &self.0)
    }

    /// What comes of it, which is a scenario.
    fn scenario(&self) -> Imported {
        let imported = self.import().unwrap();
        let path = self.0.join("config.toml");
        std::fs::write(&path, &imported.scenario).unwrap();
        if let Err(error) = Scenario::load(&path, &[]) {
            panic!("{error}\n{}", imported.scenario);
        }
        imported
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = self.0.parent().map(std::fs::remove_dir_all);
    }
}

fn refused(config: &str) -> String {
    Files::new(config).import().unwrap_err().to_string()
}

#[test]
fn a_configuration_of_each_law_is_a_scenario() {
    let common = "ENABLE_QCN 1\nUSE_DYNAMIC_PFC_THRESHOLD 1\nPACKET_PAYLOAD_SIZE 1000\nSIMULATOR_STOP_TIME 4.00\n\
                  ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nCLAMP_TARGET_RATE 0\nRP_TIMER 300\n\
                  EWMA_GAIN 0.00390625\nFAST_RECOVERY_TIMES 1\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\nMIN_RATE 1000Mb/s\n\
                  DCTCP_RATE_AI 615Mb/s\nERROR_RATE_PER_LINK 0.0000\nL2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\n\
                  L2_BACK_TO_ZERO 0\nGLOBAL_T 1\nVAR_WIN 1\nFAST_REACT 1\nU_TARGET 0.95\nMI_THRESH 0\nINT_MULTI 1\n\
                  MULTI_RATE 0\nSAMPLE_FEEDBACK 0\nRATE_BOUND 1\nACK_HIGH_PRIO 0\nLINK_DOWN 0 0 0\nBUFFER_SIZE 32\n";
    for (mode, window) in [(1, 0), (3, 1), (7, 1), (8, 1)] {
        let config = format!("{common}{MAPS}CC_MODE {mode}\nHAS_WIN {window}\n");
        insta::assert_snapshot!(format!("mode_{mode}"), Files::new(&config).scenario().scenario);
    }
}

#[test]
fn all_that_can_be_left_out_has_a_default() {
    let Imported { scenario, notes } = Files::new("").scenario();
    let law = "law = \"dcqcn\", preset = \"hpcc\", alpha_timer = \"55us\", decrease_interval = \"4us\", threshold = 5";
    assert!(scenario.contains(law) && scenario.contains("stop = \"3.01s\""), "{scenario}");
    let missing = "Missing: EWMA_GAIN, RP_TIMER, RATE_AI, RATE_HAI;";
    assert!(notes.iter().any(|note| note.starts_with(missing)), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("No KMIN_MAP")), "{notes:?}");
}

#[test]
fn a_link_that_goes_down_and_packets_that_are_lost_are_faults() {
    let Imported { scenario, .. } =
        Files::new("LINK_DOWN 150 3 4\nERROR_RATE_PER_LINK 0.001\nENABLE_QCN 0\n").scenario();
    let faults = scenario.split("[faults]\n").nth(1).unwrap();
    assert_eq!(
        faults,
        "loss = 0.001\ndetect = \"0s\"\n[[faults.on]]\nlink = \"s3-s4\"\nfrom = \"2000150us\"\ndown = true\n"
    );
    assert!(scenario.contains("ecn = false"), "{scenario}");
}

#[test]
fn thresholds_that_are_not_in_proportion_are_those_of_switches() {
    let maps = "KMAX_MAP 2 25000000000 400 100000000000 400\nKMIN_MAP 2 25000000000 100 100000000000 100\n\
                PMAX_MAP 2 25000000000 0.2 100000000000 0.1\n";
    let Imported { scenario, notes } = Files::new(maps).scenario();
    assert!(scenario.contains("pmax = 0.2, rate = \"25Gb/s\""), "{scenario}");
    let faster = scenario.split("[[switch.on]]\n").nth(1).unwrap();
    assert!(faster.starts_with("rate = \"100Gb/s\"\necn = { kmin = \"100KB\""), "{faster}");
    assert!(notes.iter().any(|note| note.contains("not in proportion")), "{notes:?}");
}

#[test]
fn what_is_not_carried_over_is_told() {
    let config = "HAS_WIN 1\nVAR_WIN 1\nL2_BACK_TO_ZERO 1\nPACKET_PAYLOAD_SIZE 9000\nLB_MODE 9 # ConWeave\n";
    let Imported { scenario, notes } = Files::new(config).scenario();
    let keys = ["VAR_WIN", "L2_BACK_TO_ZERO", "PACKET_PAYLOAD_SIZE", "Not read: LB_MODE (line 7)"];
    for key in keys {
        assert!(notes.iter().any(|note| note.starts_with(key)), "{key}: {notes:?}");
        assert!(scenario.contains(&format!("# {key}")), "{key}: {scenario}");
    }
}

#[test]
fn a_window_of_hpcc_that_keeps_its_size_keeps_it() {
    let keeps = |config: &str| {
        let Imported { scenario, notes } = Files::new(&format!("CC_MODE 3\n{config}")).scenario();
        assert!(!notes.iter().any(|note| note.contains("VAR_WIN")), "{notes:?}");
        scenario.contains("fixed_window = true")
    };
    assert!(keeps("HAS_WIN 1\nVAR_WIN 0\n"));
    assert!(!keeps("HAS_WIN 1\nVAR_WIN 1\n"));
    assert!(!keeps("HAS_WIN 0\n"));
}

#[test]
fn faster_ports_than_the_first_host_s_pause_later() {
    let Imported { scenario, .. } = Files::new("CC_MODE 1\n").scenario();
    assert!(scenario.contains("pfc = { alpha = \"1/8\", rate = \"25Gb/s\", "), "{scenario}");
}

#[test]
fn what_changes_a_run_of_hpcc_and_a_scenario_does_not_say_is_told() {
    let config = "CC_MODE 3\nHAS_WIN 0\nSAMPLE_FEEDBACK 1\nRATE_BOUND 0\nL2_ACK_INTERVAL 4000\nMULTI_RATE 1\nFAST_REACT 0\n";
    let Imported { scenario, notes } = Files::new(config).scenario();
    for key in ["HAS_WIN", "SAMPLE_FEEDBACK", "RATE_BOUND", "L2_ACK_INTERVAL", "MULTI_RATE", "FAST_REACT"] {
        assert!(notes.iter().any(|note| note.starts_with(key)), "{key}: {notes:?}");
    }
    assert!(
        !scenario.contains("ack_every"),
        "it counts octets, and packets behind the first are all answered"
    );
}

#[test]
fn priority_groups_of_flows_are_lossless_and_marks_are_told_among_them() {
    let files = Files::new("RATE_AI 50000000\n");
    let of = |flows: &str| {
        std::fs::write(files.0.join("flow.txt"), flows).unwrap();
        files.scenario()
    };
    let Imported { scenario, notes } = of("2\n0 2 5 100 100000 2.0\n1 2 5 100 50000 2.00001\n0 2 4 1 1 3\n");
    assert!(scenario.contains("classes = { data = 5, ack = 5, cnp = 5, pause = [5] }"), "{scenario}");
    assert!(!notes.iter().any(|note| note.contains("priority group")), "{notes:?}");
    assert!(scenario.contains("rai = \"50Mb/s\""), "a bare number is one of bit/s: {scenario}");
    let Imported { scenario, notes } = of("# flows\n2\n0 2 3 100 100000 2.0\n1 2 0 100 50000 2.00001\n");
    assert!(scenario.contains("pause = [3]"), "{scenario}");
    assert_eq!(notes.iter().filter(|note| note.contains("priority group")).count(), 2, "{notes:?}");
}

#[test]
fn the_window_is_what_the_longest_path_carries_in_its_round_trip() {
    // 4 us each way and 1000 octets on 25, 100 and 25 Gb/s: 8.72 us, in which 25 Gb/s carry 27,250 octets.
    let Imported { scenario, .. } = Files::new("CC_MODE 1\nHAS_WIN 1\n").scenario();
    assert!(scenario.contains("max_in_flight = 28    # HAS_WIN: 27250 octets"), "{scenario}");
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_to_do() {
    assert!(refused("CC_MODE 10\n").starts_with("line 3: CC_MODE 10 is not known; take 1 (DCQCN), 3 (HPCC)"));
    assert!(refused("BUFFER_SIZE big\n").starts_with("line 3: BUFFER_SIZE: \"big\" is no whole number"));
    assert!(refused("RATE_AI fast\n").starts_with("line 3: RATE_AI fast: "));
    assert!(refused("PACKET_PAYLOAD_SIZE 0\n").starts_with("line 3: PACKET_PAYLOAD_SIZE 0"));
    assert!(
        refused("KMAX_MAP 2 25000000000 400\n")
            .starts_with("line 3: KMAX_MAP counts \"2\" rates, and 2 values")
    );
    let maps = "KMAX_MAP 1 25000000000 400\nKMIN_MAP 1 25000000000 100\nPMAX_MAP 1 25000000000 0.2\n";
    assert!(
        refused(maps).starts_with("KMIN_MAP has nothing for 100Gb/s, which a link has"),
        "{}",
        refused(maps)
    );
    assert!(
        refused("FLOW_FILE mix/none.txt\n").starts_with("line 3: FLOW_FILE: there is no mix/none.txt here")
    );
    let files = Files::new("");
    std::fs::write(files.0.join("flow.txt"), "1\n0 7 3 100 1 2.0\n").unwrap();
    let told = files.import().unwrap_err().to_string();
    assert!(told.contains("flow.txt: line 2: node 7 is not a host"), "{told}");
}
