//! The registers of a law as one table: what each is called, how it is read and how it is written.

use crate::outcome::Outcome;
use crate::register::{Place, Register, SettingError, Value, ValueError};

/// How a register is read.
pub(crate) enum Get<P, S> {
    /// A parameter.
    Law(fn(&P) -> Value),
    /// A word of the context.
    Context(fn(&P, &S) -> Value),
}

/// How a register is written; nothing changes where the text is refused.
pub(crate) enum Set<P, S> {
    /// A parameter.
    Law(fn(&mut P, &str) -> Result<(), ValueError>),
    /// A word of the context.
    Context(fn(&P, &mut S, &str) -> Result<(), ValueError>),
    /// It can only be read.
    Never,
}

/// One register of the law with parameters `P` and contexts `S`.
pub(crate) struct Key<P, S> {
    register: Register,
    get: Get<P, S>,
    set: Set<P, S>,
}

impl<P, S> Key<P, S> {
    /// A parameter, which can be written before a run and during it.
    pub(crate) const fn parameter(
        register: (&'static str, &'static str, &'static str, &'static str),
        get: fn(&P) -> Value,
        set: fn(&mut P, &str) -> Result<(), ValueError>,
    ) -> Self {
        let register = describe(register, Place::Law, true);
        Self { register, get: Get::Law(get), set: Set::Law(set) }
    }

    /// A word of the context that can be written.
    pub(crate) const fn word(
        register: (&'static str, &'static str, &'static str, &'static str),
        get: fn(&P, &S) -> Value,
        set: fn(&P, &mut S, &str) -> Result<(), ValueError>,
    ) -> Self {
        let register = describe(register, Place::Context, true);
        Self { register, get: Get::Context(get), set: Set::Context(set) }
    }

    /// A word of the context that can only be read.
    pub(crate) const fn shown(
        register: (&'static str, &'static str, &'static str, &'static str),
        get: fn(&P, &S) -> Value,
    ) -> Self {
        let register = describe(register, Place::Context, false);
        Self { register, get: Get::Context(get), set: Set::Never }
    }
}

const fn describe(
    (name, unit, range, doc): (&'static str, &'static str, &'static str, &'static str),
    place: Place,
    writable: bool,
) -> Register {
    Register { name, place, unit, range, writable, doc }
}

/// The registers of a table, in its order.
pub(crate) const fn registers<P, S, const N: usize>(keys: &[Key<P, S>; N]) -> [Register; N] {
    let mut registers = [keys[0].register; N];
    let mut index = 1;
    while index < N {
        registers[index] = keys[index].register;
        index += 1;
    }
    registers
}

/// A law whose registers are a table.
pub(crate) trait Keyed: Sized {
    /// Its parameters.
    type Params: 'static;
    /// Its contexts.
    type State: 'static;

    /// The table.
    fn keys() -> &'static [Key<Self::Params, Self::State>];
    /// The parameters.
    fn params(&self) -> &Self::Params;
    /// The parameters, to be changed; [`Keyed::refresh`] follows.
    fn params_mut(&mut self) -> &mut Self::Params;
    /// Derives anew what follows from the parameters.
    fn refresh(&mut self);
    /// Tells the engine of a context that was written.
    fn answer(&self, state: &Self::State, outcome: &mut Outcome);

    /// The register `name`; a word of a context needs one.
    fn get(&self, state: Option<&Self::State>, name: &str) -> Option<Value> {
        match (&find::<Self>(name)?.get, state) {
            (Get::Law(get), _) => Some(get(self.params())),
            (Get::Context(get), Some(state)) => Some(get(self.params(), state)),
            (Get::Context(_), None) => None,
        }
    }

    /// Writes the parameter `name`; `None` where there is no such parameter.
    fn set(&mut self, name: &str, text: &str) -> Option<Result<(), SettingError>> {
        let key = find::<Self>(name)?;
        let Set::Law(set) = key.set else { return None };
        let done = set(self.params_mut(), text).map_err(|why| key.register.refuse(text, why));
        self.refresh();
        Some(done)
    }

    /// Writes the word `name` of a context; `None` where there is no such word.
    fn write(
        &self,
        state: &mut Self::State,
        name: &str,
        text: &str,
        outcome: &mut Outcome,
    ) -> Option<Result<(), SettingError>> {
        let key = find::<Self>(name)?;
        match key.set {
            Set::Law(_) => None,
            Set::Never => Some(Err(SettingError::ReadOnly { name: key.register.name })),
            Set::Context(set) => {
                let done = set(self.params(), state, text).map_err(|why| key.register.refuse(text, why));
                self.answer(state, outcome);
                Some(done)
            }
        }
    }
}

/// Makes the law `$law` of the module's `Params`, `State` and `KEYS` [`Keyed`], with what a written context tells the
/// engine.
macro_rules! keyed {
    ($law:ty, |$this:ident, $state:ident, $outcome:ident| $answer:expr) => {
        impl $crate::keys::Keyed for $law {
            type Params = Params;
            type State = State;

            fn keys() -> &'static [$crate::keys::Key<Params, State>] {
                &KEYS
            }

            fn params(&self) -> &Params {
                &self.params
            }

            fn params_mut(&mut self) -> &mut Params {
                &mut self.params
            }

            fn refresh(&mut self) {
                self.derive();
            }

            fn answer(&self, $state: &State, $outcome: &mut $crate::outcome::Outcome) {
                let $this = self;
                $answer;
            }
        }
    };
}
pub(crate) use keyed;

fn find<L: Keyed>(name: &str) -> Option<&'static Key<L::Params, L::State>> {
    L::keys().iter().find(|key| key.register.name == name)
}
