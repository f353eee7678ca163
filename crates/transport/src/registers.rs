//! A law's registers, context and samples, as the world outside reads and writes them.

use crate::engine::Engine;
use crate::laws::Laws;
use crate::qp::{Qp, Standing};
use crate::queue::NONE;
use roci_control::program::Fault;
use roci_control::{Context, Credit, Law, Outcome, Place, Programmed, Sample, SettingError, Value};
use roci_units::{Instant, Qpn};

impl Engine {
    /// Reads a register of a queue pair's law. `None` where there is none of that name.
    pub fn control_get(&mut self, qpn: Qpn, register: &str, now: Instant) -> Option<Value> {
        let slot = self.place(qpn)?;
        let Laws { laws, states, .. } = &mut self.laws;
        match states.get_mut(self.qps[slot].common.law as usize) {
            Some(state) => laws[usize::from(state.law)].get(&mut state.context, register, now),
            None => {
                let law = &laws[usize::from(self.profiles[usize::from(self.qps[slot].common.profile)].law)];
                law.get(&mut law.connect(self.config.link.as_kbps()).0, register, now)
            }
        }
    }

    /// Writes a register of a queue pair's law. A parameter is written for this queue pair alone, which from then on
    /// runs a law of its own; where the law limits the port, for the port. [`set_parameter`](Self::set_parameter) writes it for all.
    ///
    /// # Errors
    /// [`SettingError`] from the law, or `None` where there is no such queue pair, or no room for another law.
    pub fn control_set(
        &mut self,
        qpn: Qpn,
        register: &str,
        text: &str,
        now: Instant,
    ) -> Result<(), Option<SettingError>> {
        let slot = self.place(qpn).ok_or(None)?;
        self.begin_law(now, slot);
        let credit = self.credit(slot);
        let shared = self.profile(slot).law;
        let index = self.qps[slot].common.law;
        let mut outcome = Outcome::unchanged(credit, self.laws.wake(index));
        let Laws { laws, states, ports, .. } = &mut self.laws;
        let Some(state) = states.get_mut(index as usize) else {
            return laws[usize::from(shared)].set(register, text).map_err(Some);
        };
        let law = &mut laws[usize::from(state.law)];
        let parameter = law.registers().iter().any(|it| it.name == register && it.place == Place::Law);
        if parameter {
            law.sample(&mut state.context, &credit, now);
        }
        if parameter && state.law == shared && state.port().is_none() {
            let number = u16::try_from(laws.len()).map_err(|_| None)?;
            let mut own = laws[usize::from(shared)].apart(shared);
            own.write(&mut state.context, register, text, now, &mut outcome).map_err(Some)?;
            laws.push(own);
            ports.push(NONE);
            state.law = number;
        } else {
            law.write(&mut state.context, register, text, now, &mut outcome).map_err(Some)?;
        }
        self.apply(now, slot, &outcome);
        // What was refused for want of what has been written may go now.
        if !self.awaits_first(slot) {
            self.qps[slot].requester.standing.clear(Standing::PARKED);
        }
        self.arm(now, slot);
        Ok(())
    }

    /// Writes a parameter of a law for all that run it, but for those with a law [of their own](Self::control_set). What counts by itself
    /// as time goes by, as DCQCN's alpha, is brought to `now` by the old value first, whether or not anybody looked at it meanwhile.
    ///
    /// # Errors
    /// [`SettingError`] from the law, or `None` where there is no such law.
    pub fn set_parameter(
        &mut self,
        law: u16,
        register: &str,
        text: &str,
        now: Instant,
    ) -> Result<(), Option<SettingError>> {
        let Laws { laws, states, .. } = &mut self.laws;
        let shared = laws.get_mut(usize::from(law)).ok_or(None)?;
        for state in states.iter_mut().filter(|state| state.law == law) {
            shared.sample(&mut state.context, &Credit::FREE, now);
        }
        shared.set(register, text).map_err(Some)
    }

    /// Whether a queue pair runs a law of its own, since something was [written](Self::control_set) for it alone.
    pub fn has_own_law(&self, qpn: Qpn) -> bool {
        let Some(slot) = self.place(qpn) else { return false };
        let state = self.laws.states.get(self.qps[slot].common.law as usize);
        state.is_some_and(|state| state.law != self.profile(slot).law)
    }

    /// The program that a queue pair runs, whether or not it has failed there.
    pub fn program(&self, qpn: Qpn) -> Option<&Programmed> {
        let slot = self.place(qpn)?;
        let state = self.laws.states.get(self.qps[slot].common.law as usize);
        match self.laws.law(state.map_or(self.profile(slot).law, |state| state.law))? {
            Law::Program(law) => Some(law),
            _ => None,
        }
    }

    /// Whether the program of a queue pair has failed, so that its fallback law is in force.
    pub fn has_fallen(&self, qpn: Qpn) -> bool {
        let state = self.place(qpn).and_then(|slot| self.laws.states.get(self.qps[slot].common.law as usize));
        state.is_some_and(|state| matches!(&state.context, Context::Program(program) if program.has_fallen()))
    }

    /// Why the program of a queue pair has failed, and the law that has taken over; `None` where it has not.
    pub fn fallen(&self, qpn: Qpn) -> Option<(&Fault, &Law)> {
        let slot = self.place(qpn)?;
        let state = self.laws.states.get(self.qps[slot].common.law as usize)?;
        match (self.laws.law(state.law)?, &state.context) {
            (Law::Program(law), Context::Program(program)) => Some((program.fault()?, law.fallback())),
            _ => None,
        }
    }

    /// Since when a queue pair's program has answered each packet with LoopBack that it was asked for, with nothing in flight.
    pub fn refused_since(&self, qpn: Qpn) -> Option<Instant> {
        let slot = self.place(qpn)?;
        let state = self.laws.states.get(self.qps[slot].common.law as usize)?;
        let Qp { requester, .. } = &self.qps[slot];
        match &state.context {
            Context::Program(program) if requester.una == requester.high => program.refused_since(),
            _ => None,
        }
    }

    /// Calls `each` with the name and value of every word of the context of a queue pair that runs a program, by the names of
    /// the image that is in force, below zero where its type is signed; none where the program has failed.
    pub fn program_context(&self, qpn: Qpn, now: Instant, mut each: impl FnMut(&'static str, i64)) {
        let Some(slot) = self.place(qpn) else { return };
        let Some(state) = self.laws.states.get(self.qps[slot].common.law as usize) else { return };
        if let (Law::Program(law), Context::Program(context)) =
            (&self.laws.laws[usize::from(state.law)], &state.context)
            && !context.has_fallen()
        {
            let words = law.context_at(context, now);
            for field in law.image().fields() {
                each(field.name, field.read(words[usize::from(field.word)]));
            }
        }
    }

    /// What a time series records of a queue pair's law.
    pub fn sample(&mut self, qpn: Qpn, now: Instant) -> Option<Sample> {
        let slot = self.place(qpn)?;
        let credit = &self.credit(slot);
        let Laws { laws, states, .. } = &mut self.laws;
        match states.get_mut(self.qps[slot].common.law as usize) {
            Some(state) => laws[usize::from(state.law)].sample(&mut state.context, credit, now),
            None => {
                let law = &laws[usize::from(self.profiles[usize::from(self.qps[slot].common.profile)].law)];
                law.sample(&mut law.connect(self.config.link.as_kbps()).0, credit, now)
            }
        }
    }
}
