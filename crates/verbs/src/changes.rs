//! What is wrong with a change of a queue pair that is refused, in the words of verbs.h.

use crate::abi::{self, attr_mask as mask, qp_state as state};
use libc::{c_int, c_uint};

/// Attributes by the names that programs have for them, behind `IBV_QP_`.
const NAMES: [(c_int, &str); 21] = [
    (mask::STATE, "STATE"),
    (mask::CUR_STATE, "CUR_STATE"),
    (mask::EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"),
    (mask::ACCESS_FLAGS, "ACCESS_FLAGS"),
    (mask::PKEY_INDEX, "PKEY_INDEX"),
    (mask::PORT, "PORT"),
    (mask::QKEY, "QKEY"),
    (mask::AV, "AV"),
    (mask::PATH_MTU, "PATH_MTU"),
    (mask::TIMEOUT, "TIMEOUT"),
    (mask::RETRY_CNT, "RETRY_CNT"),
    (mask::RNR_RETRY, "RNR_RETRY"),
    (mask::RQ_PSN, "RQ_PSN"),
    (mask::MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"),
    (mask::ALT_PATH, "ALT_PATH"),
    (mask::MIN_RNR_TIMER, "MIN_RNR_TIMER"),
    (mask::SQ_PSN, "SQ_PSN"),
    (mask::MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"),
    (mask::CAP, "CAP"),
    (mask::DEST_QPN, "DEST_QPN"),
    (mask::RATE_LIMIT, "RATE_LIMIT"),
];

/// The attributes in `what`.
fn names(what: c_int) -> String {
    let mut rest = what;
    let mut named: Vec<String> = Vec::new();
    for (bit, name) in NAMES {
        if what & bit != 0 {
            named.push(format!("IBV_QP_{name}"));
            rest &= !bit;
        }
    }
    if rest != 0 {
        named.push(format!("bits {rest:#x}"));
    }
    named.join(" | ")
}

/// A state by its name.
fn named(state: c_uint) -> String {
    match state {
        state::RESET => "RESET".to_owned(),
        state::INIT => "INIT".to_owned(),
        state::RTR => "RTR".to_owned(),
        state::RTS => "RTS".to_owned(),
        state::SQD => "SQD".to_owned(),
        state::ERR => "ERR".to_owned(),
        other => format!("state {other}"),
    }
}

/// From `from` to `to` there is no change.
pub(crate) fn no_way(from: c_uint, to: c_uint) -> String {
    if from == to {
        return format!("a queue pair in {} has no attributes that could be changed", named(from));
    }
    format!(
        "no queue pair goes from {} to {}: the way is RESET, INIT, RTR, RTS, and from anywhere to RESET or ERR",
        named(from),
        named(to)
    )
}

/// What is wrong with `what` and `attr` in a change from `from` to `to`, which takes those that are `needed` and may take those that are
/// `allowed`; `None`: nothing.
pub(crate) fn misfit(
    (from, to): (c_uint, c_uint),
    (needed, allowed): (c_int, c_int),
    what: c_int,
    attr: &abi::QpAttr,
) -> Option<String> {
    let (lacking, beyond) = (needed & !what, what & !(needed | allowed | mask::STATE));
    let has = |bit| what & bit != 0;
    let (from, to) = (named(from), named(to));
    if lacking != 0 {
        Some(format!("a queue pair that goes from {from} to {to} wants {} as well", names(lacking)))
    } else if beyond != 0 {
        Some(format!("a queue pair that goes from {from} to {to} takes no {}", names(beyond)))
    } else if has(mask::CUR_STATE) && named(attr.cur_qp_state) != from {
        Some(format!("the queue pair is in {from}, and IBV_QP_CUR_STATE says {}", named(attr.cur_qp_state)))
    } else if has(mask::PORT) && attr.port_num != 1 {
        Some(format!("a device has one port, 1, and none of number {}", attr.port_num))
    } else if has(mask::PKEY_INDEX) && attr.pkey_index != 0 {
        Some(format!("a port has one key of partitions, index 0, and none of index {}", attr.pkey_index))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_is_refused_is_told_by_the_names_of_verbs() {
        let needed = mask::PKEY_INDEX | mask::PORT | mask::ACCESS_FLAGS;
        let told = |what, attr: &abi::QpAttr| misfit((state::RESET, state::INIT), (needed, 0), what, attr);
        let right = abi::QpAttr { port_num: 1, ..abi::QpAttr::default() };
        let all = mask::STATE | needed;
        assert_eq!(told(all, &right), None);
        let lacks =
            "a queue pair that goes from RESET to INIT wants IBV_QP_ACCESS_FLAGS | IBV_QP_PORT as well";
        assert_eq!(told(mask::STATE | mask::PKEY_INDEX, &right).as_deref(), Some(lacks));
        let beyond = "a queue pair that goes from RESET to INIT takes no IBV_QP_AV | bits 0x40000000";
        assert_eq!(told(all | mask::AV | 1 << 30, &right).as_deref(), Some(beyond));
        let port = "a device has one port, 1, and none of number 0";
        assert_eq!(told(all, &abi::QpAttr::default()).as_deref(), Some(port));
        assert!(no_way(state::RESET, state::RTR).starts_with("no queue pair goes from RESET to RTR: "));
        assert!(no_way(state::RTR, state::RTR).starts_with("a queue pair in RTR has no attributes"));
    }
}
