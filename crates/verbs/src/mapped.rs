//! Whether the program has the memory that it registers. Nothing pins pages here: what were not there would be found out by the device's
//! thread when a peer's request comes, and end the program by a signal.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Why these octets cannot be registered, to be read or to be written as well; `None` where they can, or where the system does not tell
/// (`/proc/self/maps`, proc(5)).
pub(crate) fn refusal(start: usize, length: usize, is_written: bool) -> Option<&'static str> {
    // What other threads map meanwhile can hide what is beside it for one reading (as neighbours become one).
    let mut said = look(start, length, is_written);
    for _ in 0..2 {
        said = said.and_then(|_| look(start, length, is_written));
    }
    said
}

fn look(start: usize, length: usize, is_written: bool) -> Option<&'static str> {
    let Some(end) = start.checked_add(length) else { return Some("no address is as high as their last") };
    let Ok(maps) = File::open("/proc/self/maps") else { return None };
    let (mut maps, mut line) = (BufReader::new(maps), Vec::new());
    let mut at = start;
    while at < end {
        line.clear();
        match maps.read_until(b'\n', &mut line) {
            Err(_) => return None,
            Ok(0) => return Some("the program has no memory at some of these addresses"),
            Ok(_) => {}
        }
        let (from, to, rights) = mapping(&line)?;
        if to <= at {
            continue;
        }
        if from > at {
            return Some("the program has no memory at some of these addresses");
        }
        if is_written && rights[1] != b'w' {
            return Some("the program itself may not write to some of them");
        }
        if !is_written && rights[0] != b'r' {
            return Some("the program itself may not read some of them");
        }
        at = to;
    }
    None
}

/// From where to where a line's mapping goes, and `rwxp` or dashes.
fn mapping(line: &[u8]) -> Option<(usize, usize, [u8; 4])> {
    let mut words = line.split(|octet| *octet == b' ');
    let (range, rights) = (std::str::from_utf8(words.next()?).ok()?, words.next()?);
    let (from, to) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(from)?, address(to)?, rights.try_into().ok()?))
}
