//! Which ranks a process group has: by a file of ASTRA-sim's, or by what PyTorch notes in a trace.

use serde_json::Value;
use std::collections::BTreeMap;

/// Groups by their names, with their ranks in the order of the list.
pub(super) type Groups = BTreeMap<String, Vec<u32>>;

/// Reads a file such as ASTRA-sim's `comm_group.json`: `{"1": [0, 1], "2": [2, 3]}`.
pub(super) fn of_file(text: &str) -> Result<Groups, String> {
    const FORM: &str = "write {\"1\": [0, 1], \"2\": [2, 3]}: the ranks of each group, by its name";
    let Value::Object(object) = serde_json::from_str(text).map_err(|error| format!("{error}; {FORM}"))?
    else {
        return Err(format!("it is no list of groups; {FORM}"));
    };
    let group = |(name, value): (String, Value)| match ranks(&value) {
        Some(ranks) => Ok((name, ranks)),
        None => Err(format!("group `{name}` has no list of ranks; {FORM}")),
    };
    object.into_iter().map(group).collect()
}

/// Adds the groups of a node's inputs, `["[{\"pg_name\": \"1\", \"ranks\": [0, 1]}]"]`; those without a list have all ranks. Other inputs,
/// and such as nobody can read, have none: who names a group then is told that it is not there.
pub(super) fn of_inputs(values: &str, groups: &mut Groups) {
    let Some(list) =
        values.find("[{").zip(values.rfind("}]")).and_then(|(begin, end)| values.get(begin..end + 2))
    else {
        return;
    };
    let Ok(Value::Array(list)) = serde_json::from_str(list) else { return };
    for group in list {
        let name = match group.get("pg_name") {
            Some(Value::String(name)) => name.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => continue,
        };
        if let Some(ranks) = group.get("ranks").and_then(ranks) {
            groups.insert(name, ranks);
        }
    }
}

fn ranks(value: &Value) -> Option<Vec<u32>> {
    value.as_array()?.iter().map(|rank| u32::try_from(rank.as_u64()?).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(of: &[(&str, &[u32])]) -> Groups {
        of.iter().map(|(name, ranks)| ((*name).to_owned(), ranks.to_vec())).collect()
    }

    #[test]
    fn a_file_lists_the_ranks_of_each_group() {
        let read = of_file("{\"1\": [0, 2], \"2\": [3, 1]}").map_err(|error| error.clone());
        assert_eq!(read, Ok(groups(&[("1", &[0, 2]), ("2", &[3, 1])])));
        for wrong in ["", "[]", "{\"1\": 3}", "{\"1\": [-1]}", "{\"1\": [4294967296]}"] {
            let told = of_file(wrong).expect_err("no groups");
            assert!(told.contains("write {\"1\": [0, 1]"), "{told}");
        }
    }

    #[test]
    fn pytorch_lists_groups_in_the_inputs_of_a_node() {
        let mut read = Groups::new();
        let inputs = "['[{\"pg_name\": \"0\", \"ranks\": []}, {\"pg_name\": \"3\", \"pg_desc\": \"tp\", \"ranks\": [4, 5]}]']";
        of_inputs(inputs, &mut read);
        assert_eq!(read, groups(&[("0", &[]), ("3", &[4, 5])]));
        for other in ["", "[{]}", "}][{", "[{}]", "[{\"pg_name\": []}]", "[1, 2]", "é[{é}]"] {
            of_inputs(other, &mut read);
        }
        assert_eq!(read.len(), 2);
    }
}
