//! Programs for a core as laws: a `hart` program that is loaded, checked, and run event by event.
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`csr`] | the registers through which a program meets the NIC |

pub mod csr;

#[cfg(test)]
mod tests;
