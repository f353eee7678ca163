//! What a program keeps in the memory of a core from one event to the next. It is no queue pair's: all that run on the core share it.

use roci_control::program::keeps_beside;
use roci_hart::{Bounds, Core, Program, Region};
use std::fmt;

/// What one side keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The variables that events write, with their octets, in the order of their addresses.
    pub variables: Vec<(String, u32)>,
    /// Whether it has stores whose place is not proved, which may write any of the rest.
    pub strays: bool,
    /// Whether it may keep something in a local variable that outlives its loop.
    pub locals: bool,
}

impl Kept {
    /// What a side keeps of which `bounds` were proved, and whose core `waits` for its first event.
    pub(super) fn of(program: &Program, bounds: &Bounds, waits: &Core) -> Self {
        let memory = &program.machine().memory;
        let data = |address| memory.holds(address, 1) == Some(Region::Data);
        let written = |start: u32, end: u32| {
            bounds.data_stores.values().any(|&(first, behind)| first < end && start < behind)
        };
        let symbols =
            program.symbols().iter().filter(|one| !one.is_function && one.size > 0 && data(one.address));
        let variables = symbols.filter(|one| written(one.address, one.address.saturating_add(one.size)));
        let variables: Vec<_> = variables.map(|one| (one.name.clone(), one.size)).collect();
        let named = |&(first, behind): &(u32, u32)| {
            program
                .symbols()
                .iter()
                .any(|one| one.address < behind && first < one.address.saturating_add(one.size))
        };
        let unnamed = !bounds.data_stores.values().all(named);
        let strays = unnamed || !bounds.stray_stores.is_empty();
        // What libgcc looks up are tables of its own.
        let tables = |address| is_of_libgcc(program, address);
        let locals = variables.is_empty() && !strays && keeps_beside(waits, &tables);
        Self { variables, strays, locals }
    }

    /// Whether nothing of one event is there at the next.
    pub fn is_nothing(&self) -> bool {
        self.variables.is_empty() && !self.strays && !self.locals
    }
}

impl fmt::Display for Kept {
    /// `keeps nothing but contexts from one event to the next`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return f.write_str("keeps nothing but contexts from one event to the next");
        }
        f.write_str("all queue pairs of a core share ")?;
        let variables = self.variables.iter().map(|(name, octets)| format!("{name} ({octets} B)"));
        let strays = self.strays.then(|| "whatever stores reach that are not proved".to_owned());
        let locals = self.locals.then(|| "perhaps local variables that outlive its loop".to_owned());
        f.write_str(&variables.chain(strays).chain(locals).collect::<Vec<_>>().join(", "))?;
        f.write_str(": what is one queue pair's belongs in QPContext")
    }
}

/// Whether the code at `address` is a function of libgcc's: their names begin so, and no program's do.
pub(super) fn is_of_libgcc(program: &Program, address: u32) -> bool {
    program.locate(address).function.is_some_and(|(name, _)| name.starts_with("__"))
}
