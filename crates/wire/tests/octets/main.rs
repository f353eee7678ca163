//! Octets: what is emitted is parsed, what is parsed is emitted, and what is neither is refused with a value.

mod drawn;
mod hostile;
mod identity;
mod page;
mod vectors;
