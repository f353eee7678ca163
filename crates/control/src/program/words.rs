//! The words of a program's contexts and its parameters, by their names: set, written and read.

use super::csr;
use super::image::Unit;
use super::law::{Programmed, State};
use crate::event::{Class, Event};
use crate::fixed::fraction;
use crate::outcome::{Credit, Outcome};
use crate::register::{Register, SettingError, Value, ValueError};
use crate::sample::Sample;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use roci_units::{BitsPerSec, Bytes, Instant, Ratio, Span};

/// The word of a context that is, by its name, the rate of the pacer in kb/s.
const RATE: &str = "rate";

impl Programmed {
    /// Sets a word of the context of queue pairs that are yet to be made, where the context has one of that name, and
    /// else a parameter of the program. `Open` comes after it.
    ///
    /// # Errors
    /// [`SettingError`], when the program has no such word or parameter, or `text` is no value of one.
    pub fn set_initial(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        self.set_initial_all(&[(name, text)]).map_err(|(_, error)| error)
    }

    /// The same for all of `settings`, whose order does not matter: the program sees them together, so that two parameters that
    /// it compares with each other can both be other ones.
    ///
    /// # Errors
    /// The place among `settings` of the one that it cannot have, and why; nothing has changed then.
    pub fn set_initial_all(&mut self, settings: &[(&str, &str)]) -> Result<(), (usize, SettingError)> {
        let before = (self.initial.clone(), self.parameters.clone());
        let done = self.try_initial_all(settings);
        if done.is_err() {
            (self.initial, self.parameters) = before;
        }
        done
    }

    fn try_initial_all(&mut self, settings: &[(&str, &str)]) -> Result<(), (usize, SettingError)> {
        let mut tuned = Vec::new();
        for (at, (name, text)) in settings.iter().enumerate() {
            if let Some(parameter) = self.parameter(name, text) {
                let (name, value) = parameter.map_err(|error| (at, error))?;
                self.parameters.retain(|(other, _)| *other != name);
                self.parameters.push((name, value));
                tuned.push((at, name));
            } else {
                let word = self.word(name, text).map_err(|error| (at, error))?;
                self.initial.retain(|(at, _)| *at != word.0);
                self.initial.push(word);
            }
        }
        let Some(last) = tuned.last().copied() else { return Ok(()) };
        self.restart().map_err(|why| {
            // The one without which it would have started.
            let does_without = |&(_, name): &(usize, &str)| {
                let others = self.parameters.iter().filter(|(other, _)| *other != name).copied();
                self.image.started_with(&others.collect::<Vec<_>>()).is_ok()
            };
            let (at, name) = tuned.iter().copied().find(does_without).unwrap_or(last);
            (at, SettingError::Refused { name, text: settings[at].1.to_string(), why })
        })
    }

    /// The parameter `name`, and what `text` means there; `None` where there is none of that name.
    fn parameter(&self, name: &str, text: &str) -> Option<Result<(&'static str, u32), SettingError>> {
        if self.image.field(name).is_some() {
            return None;
        }
        let parameter = self.image.parameter(name)?;
        let value = value(text, self.image.unit(name), self.image.signed(name) != Some(false));
        Some(value.map(|value| (parameter.name, value)).map_err(|why| parameter.refuse(text, why)))
    }

    /// Sets a parameter, before a run or during it: the cores start over with it, their memory as the image has it and
    /// what follows from parameters computed anew; contexts stay. `None` where there is none of that name.
    pub(crate) fn set_parameter(&mut self, name: &str, text: &str) -> Option<Result<(), SettingError>> {
        let (name, value) = match self.parameter(name, text)? {
            Ok(parameter) => parameter,
            Err(error) => return Some(Err(error)),
        };
        let before = self.parameters.clone();
        self.parameters.retain(|(other, _)| *other != name);
        self.parameters.push((name, value));
        let done = self.restart();
        if done.is_err() {
            self.parameters = before;
        }
        Some(done.map_err(|why| SettingError::Refused { name, text: text.to_string(), why }))
    }

    /// Makes the cores that begin with the parameters; else why they do not come to wait for an event, and where.
    pub(super) fn restart(&mut self) -> Result<(), String> {
        let started = self.image.started_with(&self.parameters);
        self.started = Some(Box::new(started.map_err(|error| error.to_string())?));
        self.cores = self.fresh_cores(self.cores.pairs());
        Ok(())
    }

    /// Its registers: the words of its context, and its parameters.
    pub fn registers(&self) -> &'static [Register] {
        self.image.registers()
    }

    /// The register `name` as it stands at `now`.
    pub fn get(&self, state: &State, name: &str, now: Instant) -> Option<Value> {
        let Some(field) = self.image.field(name) else { return self.parameter_value(name) };
        let value = self.at(state, &Credit::FREE, now, |state, _| state.block[usize::from(field.word)]);
        Some(shown(value, field.unit, field.signed))
    }

    /// The register `name` of the fallback law, which has taken over.
    pub(crate) fn get_of_fallback(&self, state: &mut State, name: &str, now: Instant) -> Option<Value> {
        self.fallback.get(state.fallen.as_mut()?, name, now)
    }

    /// The parameter `name`; `None` also where a word of the context has that name.
    pub(crate) fn parameter_value(&self, name: &str) -> Option<Value> {
        if self.image.field(name).is_some() {
            return None;
        }
        let set = self.parameters.iter().find(|(set, _)| *set == name).map(|(_, value)| *value);
        let value = set.or_else(|| self.image.parameter_value(name))?;
        Some(shown(value, self.image.unit(name), self.image.signed(name)))
    }

    /// The words of the context as they stand at `now`.
    pub fn context_at(&self, state: &State, now: Instant) -> [u32; csr::CONTEXT_WORDS] {
        self.at(state, &Credit::FREE, now, |state, _| {
            let mut words = [0; csr::CONTEXT_WORDS];
            words.copy_from_slice(state.context());
            words
        })
    }

    /// What `look` finds in `state` and the credit, which is `credit` so far, when the timers have been told that have run
    /// out by `now`, which changes nothing.
    fn at<T>(&self, state: &State, credit: &Credit, now: Instant, look: impl Fn(&State, &Credit) -> T) -> T {
        if state.timers.next() > now || state.fallen.is_some() || state.generation != self.generation {
            return look(state, credit);
        }
        let qpn = state.block[csr::QPN];
        let mut law = self.clone_shallow();
        law.cores = self.cores.that_hear_of(qpn);
        let mut state = state.clone();
        let mut outcome = Outcome::unchanged(*credit, Instant::NEVER);
        let event = Event { class: Class::TIMER, now, qpn, ..Event::default() };
        law.on_event(&mut state, &event, &mut outcome);
        look(&state, &outcome.credit)
    }

    /// Writes a word of the context. The word [`RATE`], while it says at which rate the pacer stands, takes the pacer with it:
    /// the program itself would let it have the new rate with the next event at which it calls `setRate`, which may never
    /// come. Timers by which a program recovers are its own affair, and are not armed by this.
    pub(crate) fn write(
        &self,
        state: &mut State,
        name: &str,
        text: &str,
        outcome: &mut Outcome,
    ) -> Option<Result<(), SettingError>> {
        self.image.field(name)?;
        let (word, value) = match self.word(name, text) {
            Ok(word) => word,
            Err(error) => return Some(Err(error)),
        };
        let before = core::mem::replace(&mut state.block[usize::from(word)], value);
        state.refusal.end();
        if name == RATE && before == outcome.credit.rate_kbps.min(state.link_kbps) {
            outcome.credit.rate_kbps = state.pace(value);
        }
        Some(Ok(()))
    }

    /// What a time series records: the rate that is in force, where the program has ever set one, with `credit` the queue
    /// pair's; once the program has failed, what its fallback law shows. What its words mean is the program's own affair.
    pub fn sample(&self, state: &State, credit: &Credit, now: Instant) -> Sample {
        if let Some(context) = &state.fallen {
            return self.fallback.sample(&mut context.clone(), credit, now).unwrap_or_default();
        }
        self.at(state, credit, now, |state, credit| {
            let rate_kbps =
                if state.sets_rate { credit.rate_kbps.min(state.link_kbps) } else { Sample::NONE };
            Sample { rate_kbps, ..Sample::default() }
        })
    }

    /// The word `name` of the context, and what `text` means there.
    fn word(&self, name: &str, text: &str) -> Result<(u8, u32), SettingError> {
        let Some(field) = self.image.field(name) else {
            let fields = self.image.fields().iter().map(|field| field.name);
            let valid = fields.chain(self.image.parameters().map(|parameter| parameter.name)).collect();
            return Err(SettingError::Key { name: name.to_string(), valid });
        };
        let register = self.registers().iter().find(|register| register.name == name);
        match (value(text, field.unit, field.signed != Some(false)), register) {
            (Ok(value), _) => Ok((field.word, value)),
            (Err(why), Some(register)) => Err(register.refuse(text, why)),
            (Err(_), None) => Err(SettingError::Key { name: name.to_string(), valid: Vec::new() }),
        }
    }
}

/// What a word says, below zero only where its type is known to be signed.
pub(super) fn shown(word: u32, unit: Unit, signed: Option<bool>) -> Value {
    let number = word.cast_signed();
    match unit {
        Unit::Number if number < 0 && signed == Some(true) => Value::Below(number),
        Unit::Number => Value::Count(word),
        Unit::Fraction(bits) => {
            Ratio::checked(word.into(), 1 << bits).map_or(Value::Count(word), Value::Fraction)
        }
        Unit::Time => Value::Time(Span::from_nanos(word.into())),
        Unit::Rate => Value::Rate(BitsPerSec::from_kbps(word.into())),
        Unit::Octets => Value::Octets(Bytes(word.into())),
    }
}

/// A number of 32 bits, as `unit` says what it is of. A whole number without a unit is one of nanoseconds, kb/s or octets; a
/// word of no unit takes all of these, each with its own, and a fraction in 16.16. A fraction alone is taken where one
/// is meant, and the least there is for one that is smaller and not zero. One that is `signed` takes a number below zero.
fn value(text: &str, unit: Unit, signed: bool) -> Result<u32, ValueError> {
    let text = text.trim();
    if let Unit::Fraction(bits) = unit {
        let ratio = text.parse::<Ratio>()?;
        let fixed = ratio.fixed(bits.into()).max((ratio != Ratio::ZERO).into());
        return u32::try_from(fixed).map_err(|_| ValueError::Range);
    }
    if let Ok(number) = text.parse::<i64>() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "two's complement is meant"
        )]
        return match number {
            -0x8000_0000..0 if signed => Ok(number as u32),
            0..=0xffff_ffff => Ok(number as u32),
            _ => Err(ValueError::Range),
        };
    }
    let number = match unit {
        Unit::Time => text.parse::<Span>()?.as_ps() / 1_000,
        Unit::Rate => kbps(text.parse()?)?.into(),
        Unit::Octets => text.parse::<Bytes>()?.0,
        Unit::Number | Unit::Fraction(_) => of_any_unit(text)?,
    };
    u32::try_from(number).map_err(|_| ValueError::Range)
}

/// A rate in kb/s, unless it is more than a word holds.
fn kbps(rate: BitsPerSec) -> Result<u32, ValueError> {
    Some(rate.as_kbps()).filter(|kbps| *kbps < u32::MAX).ok_or(ValueError::Range)
}

/// What a word of no unit takes `text` for.
fn of_any_unit(text: &str) -> Result<u64, ValueError> {
    if let Ok(ratio) = text.parse::<Ratio>() {
        return Ok(fraction(ratio).into());
    }
    if let Ok(rate) = text.parse::<BitsPerSec>() {
        return Ok(kbps(rate)?.into());
    }
    match text.parse::<Span>() {
        Ok(span) => Ok(span.as_ps() / 1_000),
        Err(_) => Ok(text.parse::<Bytes>()?.0),
    }
}
