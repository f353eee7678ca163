//! The command `roci`.

fn main() {}
