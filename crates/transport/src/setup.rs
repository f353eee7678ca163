//! Making, changing and ending queue pairs.

use crate::agent::PortAgent;
use crate::config::{Change, QpConfig, QpError, Recovery, Service};
use crate::credit::Pacer;
use crate::engine::{Engine, FIRST_QPN, PLACE_BITS, TIMER_ACK, TIMER_SEND, direct};
use crate::incidents::Incident;
use crate::laws::{Begun, User};
use crate::qp::{Common, Facts, Notes, Profile, Qp, Requester, Responder, Standing};
use crate::queue::{NONE, SendWork};
use crate::state::{QpState, Transition};
use crate::timer::TimerId;
use crate::work::{Completion, CompletionKind, Status, Tail};
use alloc::vec::Vec;
use roci_control::{Class, Credit};
use roci_units::{Instant, Psn, Qpn};
use roci_wire::{Layout, rnr_timer};

/// What [`query`](Engine::query) tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpStatus {
    /// The state.
    pub state: QpState,
    /// Whether it is in SQD and a request that had begun has not ended (`sq_draining` of `ibv_query_qp`). In SQD and not so: it is drained.
    pub sq_draining: bool,
    /// The peer's queue pair.
    pub peer: Qpn,
    /// Where the peer is.
    pub path: u64,
    /// The PSN of the next new packet that we send.
    pub send_psn: Psn,
    /// The PSN of the next packet that we expect.
    pub receive_psn: Psn,
    /// Octets of payload sent and not acknowledged.
    pub in_flight: u32,
    /// Packets acknowledged since the queue pair was made, modulo 2³²; where nobody acknowledges, sent.
    pub acknowledged: u32,
    /// The rate of its pacer in kb/s, the window and the tokens that the law gives it.
    pub credit: Credit,
    /// The recovery program's congestion window in packets, of requests or else of READ responses; `None` where it owns
    /// none, and before the first packet.
    pub congestion_window: Option<u32>,
}

/// What a queue pair's packets have met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data packets sent, retransmissions included.
    pub packets: u32,
    /// Data packets sent again.
    pub retransmitted: u32,
    /// Of those, packets that had been sent again before in the same loss; go-back-N and NDP forget a loss once all is sent again.
    pub repeated: u32,
    /// Local ACK timeouts.
    pub timeouts: u32,
    /// NAKs for a sequence received, selective ones included.
    pub naks: u32,
    /// Messages of an unreliable connection that came in part, or that nothing could take, and were dropped.
    pub dropped: u32,
    /// Messages of an unreliable connection that came whole and were taken, each counted once.
    pub taken: u32,
    /// Those that were taken once more, as the network had doubled them and the first of them lay at most 1024 packets back.
    pub doubled: u32,
    /// RNR NAKs received.
    pub rnr: u32,
    /// CNPs received.
    pub cnps: u32,
    /// Data packets received with CE.
    pub ecn_marked: u32,
    /// Events that a deferred law never heard of, because too many waited for it.
    pub unheard: u32,
}

impl Engine {
    /// Makes a queue pair, in the state that `config` says.
    ///
    /// # Errors
    /// [`QpError`] says which attribute does not do.
    pub fn create_qp(&mut self, config: QpConfig) -> Result<Qpn, QpError> {
        self.check(&config)?;
        let slot =
            self.vacant.last().copied().unwrap_or_else(|| u32::try_from(self.qps.len()).unwrap_or(NONE));
        let qpn = match config.qpn {
            Some(qpn) if self.place(qpn).is_some() => return Err(QpError::InUse(qpn)),
            Some(qpn) => qpn,
            None => self.draw_qpn(slot),
        };
        let profile = self.share(Profile::new(&config, self.kept.packets()))?;
        self.vacant.pop();
        let place = slot as usize;
        let generation = self.qps.get(place).map_or(0, |qp| qp.common.generation);
        let user = User { slot, qpn: qpn.get(), now: config.created };
        let Begun { index: law, credit, priority, traces } = if config.deferred.law {
            self.laws.begin(&self.config, config.law, user)
        } else {
            self.laws.connect(&self.config, config.law, user)
        };
        let settings = self.profiles[usize::from(profile)];
        let mut requester = Requester::new(config.send_psn, &settings, config.priority, credit);
        requester.pacer = Pacer::new(self.config.pacing_burst);
        requester.pacer.set_rate(Instant::ZERO, credit.rate_kbps);
        if self.laws.limits(law) {
            requester.notes.set(Notes::LAW_CREDIT);
        }
        if config.state.sends() {
            requester.notes.set(Notes::SENDS);
        }
        if traces.meets(Class::MESSAGE) {
            requester.priority = 7;
        }
        requester.priority = priority.map_or(requester.priority, |priority| priority.min(7));
        let responder = Responder::new(config.receive_psn, config.recovery);
        let mut facts = Facts::ALIVE;
        facts.put(Facts::COUNTS, self.laws.counts(law));
        facts.put(Facts::PACED, credit.rate_kbps != Credit::UNLIMITED);
        facts.put(Facts::MARKS, settings.marks_deadlines());
        let common = Common {
            path: config.path,
            qpn,
            peer: config.peer,
            head: NONE,
            tail: NONE,
            base: config.send_psn.get(),
            aside: NONE,
            law,
            hears: traces,
            msn: 0,
            packets: 0,
            cnps: 0,
            ecn_marked: 0,
            profile,
            generation,
            state: config.state,
            facts,
            asks_every: settings.asks_every_at(credit.rate_kbps, credit.window),
            run: 0,
        };
        let qp = Qp { requester, common, responder };
        if place == self.qps.len() {
            push_lean(&mut self.qps, qp);
        } else {
            self.qps[place] = qp;
        }
        if direct(qpn) != Some(place) {
            self.elsewhere.get_or_insert_default().insert(qpn.get(), slot);
        }
        self.schedule.prepare(slot + 1, config.priority);
        self.timers.prepare(slot + 1);
        Ok(qpn)
    }

    fn check(&self, config: &QpConfig) -> Result<(), QpError> {
        let ranges = [
            ((1..=4096).contains(&config.mtu), "mtu"),
            ((1..=15).contains(&config.ring), "ring"),
            (config.retry <= 7, "retry"),
            (config.rnr_retry <= 7, "rnr_retry"),
            (config.ack_every >= 1, "ack_every"),
            (config.initial_window >= 1, "initial_window"),
            (config.priority <= 7, "priority"),
        ];
        if let Some((_, name)) = ranges.iter().find(|(fits, _)| !fits) {
            return Err(QpError::Range(name));
        }
        if self.laws.law(config.law).is_none() {
            return Err(QpError::Missing("law"));
        }
        if config.srq.is_some_and(|srq| srq.0 as usize >= self.shared.len()) {
            return Err(QpError::Missing("shared receive queue"));
        }
        if config.service == Service::Uc {
            return self.check_unreliable(config);
        }
        let selective = config.recovery.keeps_out_of_order();
        match config.layout {
            layout if (layout == Layout::Ndp) != (config.recovery == Recovery::Ndp) => {
                Err(QpError::Conflict("NDP's recovery and layout need each other"))
            }
            Layout::Homa if !matches!(config.recovery, Recovery::GoBackN | Recovery::Irn) => {
                Err(QpError::Conflict(
                    "layout homa needs recovery go-back-n or irn: its packets say nothing of windows, nor which were trimmed",
                ))
            }
            Layout::Irn | Layout::Srnic | Layout::Ndp | Layout::Homa => Ok(()),
            Layout::Standard | Layout::Cc(_) if !selective => Ok(()),
            Layout::Standard | Layout::Cc(_) => Err(QpError::Conflict(
                "selective repeat needs layout irn or srnic: the standard one does not say where a packet \
                                       out of order goes, nor which packet drew a NAK",
            )),
        }
    }

    /// What an unreliable connection cannot have.
    fn check_unreliable(&self, config: &QpConfig) -> Result<(), QpError> {
        if config.layout != Layout::Standard {
            return Err(QpError::Conflict("an unreliable connection has the standard layout"));
        }
        if config.recovery != Recovery::GoBackN {
            return Err(QpError::Conflict(
                "an unreliable connection sends nothing again, and has no recovery",
            ));
        }
        if self.laws.law(config.law).is_some_and(|law| !config.service.has_answers_for(law)) {
            return Err(QpError::Conflict(
                "nobody acknowledges the packets of an unreliable connection, and its law needs acknowledgements or grants: \
                 dcqcn and none need neither",
            ));
        }
        Ok(())
    }

    /// The number of a profile with these attributes: one that has them, one that nobody has any more, or a new one. Peers have a say in
    /// some attributes, so that those who come and go must not use them up.
    fn share(&mut self, profile: Profile) -> Result<u16, QpError> {
        let known = self.profiles.iter().rposition(|known| *known == profile);
        let index = known.or_else(|| self.vacant_profile()).unwrap_or(self.profiles.len());
        let number = u16::try_from(index)
            .map_err(|_| QpError::Conflict("more than 65536 different sets of attributes"))?;
        match self.profiles.get_mut(index) {
            Some(place) => *place = profile,
            None => self.profiles.push(profile),
        }
        Ok(number)
    }

    /// A profile that no queue pair has. Who has which is looked at only before there would be more of them than there is room for:
    /// a count for each would take a host's octets, and this all queue pairs' numbers, once for each doubling.
    fn vacant_profile(&mut self) -> Option<usize> {
        const VACANT: u16 = 0;
        let is_vacant = |profile: &Profile| profile.mtu == VACANT;
        let found = self.profiles.iter().position(is_vacant);
        if found.is_some() || self.profiles.len() < self.profiles.capacity() {
            return found;
        }
        let mut is_had = alloc::vec![false; self.profiles.len()];
        let alive = self.qps.iter().filter(|qp| qp.common.facts.has(Facts::ALIVE));
        alive.for_each(|qp| is_had[usize::from(qp.common.profile)] = true);
        for (profile, _) in self.profiles.iter_mut().zip(is_had).filter(|(_, is_had)| !is_had) {
            profile.mtu = VACANT;
        }
        self.profiles.iter().position(is_vacant)
    }

    /// A free number that tells its place, with upper bits that cannot be guessed without the seed.
    fn draw_qpn(&mut self, slot: u32) -> Qpn {
        let low = slot + FIRST_QPN;
        loop {
            self.draws += 1;
            let high =
                scramble(self.config.seed.wrapping_add(self.draws.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            #[expect(clippy::cast_possible_truncation, reason = "the upper bits are meant")]
            let qpn = Qpn::new((high as u32) << PLACE_BITS | low);
            if self.place(qpn).is_none() && qpn.get() >= FIRST_QPN {
                return qpn;
            }
        }
    }

    /// Changes a queue pair's attributes, and then its state.
    ///
    /// # Errors
    /// [`QpError`] says what does not do; nothing has changed then.
    pub fn modify_qp(&mut self, now: Instant, qpn: Qpn, change: &Change) -> Result<(), QpError> {
        let slot = self.find(qpn)?;
        let state = self.qps[slot].common.state;
        let next = match change.transition {
            None => state,
            Some(way) => state.after(way).ok_or(QpError::Transition(state, way))?,
        };
        let mut profile = *self.profile(slot);
        if profile.service == Service::Uc && change.is_of_answers() {
            return Err(QpError::Conflict(
                "an unreliable connection has no timeout, retries, READs or atomics",
            ));
        }
        for (value, kept) in [
            (change.retry, &mut profile.retry),
            (change.rnr_retry, &mut profile.rnr_retry),
            (change.max_rd_atomic, &mut profile.max_rd_atomic),
            (change.max_dest_rd_atomic, &mut profile.max_dest_rd_atomic),
        ] {
            *kept = value.unwrap_or(*kept);
        }
        profile.timeout = change.timeout.unwrap_or(profile.timeout);
        profile.rnr_timer = change.min_rnr_timer.map_or(profile.rnr_timer, rnr_timer);
        profile.q_key = change.q_key.unwrap_or(profile.q_key);
        profile.set_mtu(change.mtu.unwrap_or(profile.mtu));
        let early = matches!(state, QpState::Reset | QpState::Init);
        if profile.retry > 7 || profile.rnr_retry > 7 || !(1..=4096).contains(&profile.mtu) {
            return Err(QpError::Range("retry, rnr_retry or mtu"));
        }
        if !early && (change.mtu.is_some() || change.receive_psn.is_some()) {
            return Err(QpError::Conflict("mtu and receive_psn are set before RTR"));
        }
        if state.sends() && change.send_psn.is_some() {
            return Err(QpError::Conflict("send_psn is set before RTS"));
        }
        self.end_run(slot);
        self.qps[slot].common.profile = self.share(profile)?;
        if change.retry.is_some() || change.rnr_retry.is_some() {
            let requester = &mut self.qps[slot].requester;
            (requester.retries, requester.rnr_retries) = (profile.retry, profile.rnr_retry);
        }
        let Qp { requester, common, .. } = &mut self.qps[slot];
        common.asks_every = profile.asks_every_at(requester.pacer.rate_kbps(), requester.window);
        common.peer = change.peer.unwrap_or(common.peer);
        let before = common.path;
        common.path = change.path.unwrap_or(before);
        if let Some(psn) = change.send_psn {
            common.base = psn.get();
            let requester = &mut self.qps[slot].requester;
            (requester.una, requester.high) = (psn.get(), psn.get());
        }
        if let Some(psn) = change.receive_psn {
            self.qps[slot].responder.expect(psn, profile.recovery);
        }
        if self.qps[slot].common.path != before {
            self.move_flight(now, slot);
        }
        if let Some(way) = change.transition {
            self.enter(now, slot, way, next);
        }
        Ok(())
    }

    /// What a change of state brings with it.
    fn enter(&mut self, now: Instant, slot: usize, way: Transition, next: QpState) {
        match way {
            Transition::Reset => {
                self.forget(slot);
                self.reconnect(now, slot);
            }
            Transition::Fail => self.fail(now, slot, Status::WorkRequestFlushed),
            Transition::Receive => self.await_first(slot),
            Transition::Send if self.state(slot) == QpState::ReadyToReceive => {
                self.qps[slot].requester.standing.clear(Standing::PARKED);
            }
            _ => {}
        }
        self.qps[slot].common.state = next;
        let requester = &mut self.qps[slot].requester;
        if next.sends() {
            requester.notes.set(Notes::SENDS);
        } else {
            requester.notes.clear(Notes::SENDS);
        }
        self.arm(now, slot);
    }

    /// Ends a queue pair. What was posted is dropped without completions, as verbs do.
    ///
    /// # Errors
    /// When there is no such queue pair.
    pub fn destroy_qp(&mut self, qpn: Qpn) -> Result<(), QpError> {
        let slot = self.find(qpn)?;
        self.forget(slot);
        let common = &mut self.qps[slot].common;
        common.facts.clear(Facts::ALIVE);
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let place = slot as u32;
        self.laws.disconnect(common.law, place);
        (common.law, common.hears) = (NONE, Class::NONE);
        self.regions.forget_queue_pair(common.qpn);
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.remove(&qpn.get());
        }
        self.vacant.push(place);
        Ok(())
    }

    /// Brings a queue pair back to where `create_qp` left it, in RESET.
    fn forget(&mut self, slot: usize) {
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let place = slot as u32;
        self.schedule.remove(place);
        self.schedule.set_left(place, None);
        self.timers.cancel(TimerId { qp: place, kind: TIMER_SEND });
        self.timers.cancel(TimerId { qp: place, kind: TIMER_ACK });
        self.end_recovery(slot);
        self.end_keeping(slot, false);
        if let Some(agent) = &mut self.agent {
            agent.forget(self.qps[slot].common.qpn);
        }
        self.end_reading(slot);
        self.end_responding(slot);
        self.leave_read_rooms(slot, None);
        self.leave_flight(slot);
        let common = &mut self.qps[slot].common;
        common.generation = common.generation.wrapping_add(1);
        common.state = QpState::Reset;
        common.msn = 0;
        let mut work = common.head;
        (common.head, common.tail) = (NONE, NONE);
        if common.aside != NONE {
            self.forget_events(slot);
            let common = &mut self.qps[slot].common;
            self.asides.give_back(common.aside);
            common.aside = NONE;
        }
        while work != NONE {
            let next = self.sends.get(work).next;
            self.sends.remove(work);
            work = next;
        }
        let responder = &mut self.qps[slot].responder;
        while let Some(recv) = responder.queue.take(&self.recvs) {
            self.recvs.remove(recv);
        }
        if responder.recv != NONE {
            self.recvs.remove(responder.recv);
        }
        if responder.reads != NONE {
            self.reads.give_back(responder.reads);
        }
        let profile = self.profiles[usize::from(self.qps[slot].common.profile)];
        let base = Psn::new(self.qps[slot].common.base);
        let old = &self.qps[slot].requester;
        let (priority, pacer, window) = (old.priority, old.pacer, old.window);
        let law_credit = old.notes.has(Notes::LAW_CREDIT);
        let mut requester = Requester::new(base, &profile, priority, Credit { window, ..Credit::FREE });
        requester.pacer = pacer;
        if law_credit {
            requester.notes.set(Notes::LAW_CREDIT);
        }
        self.qps[slot].requester = requester;
        self.qps[slot].responder = Responder::new(Psn::new(0), profile.recovery);
    }

    /// Lets the queue pair's law begin anew: a connection that was made again knows nothing of the path's load.
    fn reconnect(&mut self, now: Instant, slot: usize) {
        if let Some(next) = self.laws.notices.get_mut(slot) {
            *next = Instant::ZERO;
        }
        let Some(state) = self.laws.states.get(self.qps[slot].common.law as usize) else { return };
        self.renew_law(now, slot, state.law);
    }

    /// The queue pair's law is `number` from now on, and knows nothing of it yet.
    pub(crate) fn renew_law(&mut self, now: Instant, slot: usize, number: u16) {
        self.end_run(slot);
        let Common { law: old, qpn, .. } = self.qps[slot].common;
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let user = User { slot: slot as u32, qpn: qpn.get(), now };
        self.laws.disconnect(old, user.slot);
        let Begun { index: law, credit, priority, traces: hears } =
            self.laws.begin(&self.config, number, user);
        let limits = self.laws.limits(law);
        let usual = if hears.meets(Class::MESSAGE) { 7 } else { self.profile(slot).priority };
        let Qp { requester, common, .. } = &mut self.qps[slot];
        (common.law, common.hears) = (law, hears);
        common.facts.put(Facts::COUNTS, self.laws.counts(law));
        common.facts.put(Facts::PACED, credit.rate_kbps != Credit::UNLIMITED);
        let profile = &self.profiles[usize::from(common.profile)];
        requester.window = profile.window(credit.window);
        requester.priority = priority.map_or(usual, |own| own.min(7));
        requester.pacer.set_rate(now, Credit::UNLIMITED);
        requester.pacer.set_rate(now, credit.rate_kbps);
        common.asks_every = profile.asks_every_at(credit.rate_kbps, credit.window);
        if limits {
            requester.notes.set(Notes::LAW_CREDIT);
        } else {
            requester.notes.clear(Notes::LAW_CREDIT);
        }
        if requester.notes.has(Notes::SEND_TIMER) && !requester.standing.has(Standing::HELD) {
            let eligible = requester.pacer.eligible_at();
            self.set_send_timer(slot, eligible);
        }
    }

    /// Whether there is such a queue pair.
    #[inline]
    pub fn has_queue_pair(&self, qpn: Qpn) -> bool {
        self.place(qpn).is_some()
    }

    /// A queue pair's state and where it stands.
    ///
    /// # Errors
    /// When there is no such queue pair.
    #[inline]
    pub fn query(&self, qpn: Qpn) -> Result<QpStatus, QpError> {
        let slot = self.find(qpn)?;
        let (common, requester) = (&self.qps[slot].common, &self.qps[slot].requester);
        Ok(QpStatus {
            state: common.state,
            sq_draining: common.state == QpState::SendQueueDrained && self.has_begun(qpn),
            peer: common.peer,
            path: common.path,
            send_psn: Psn::new(requester.high),
            receive_psn: Psn::new(self.qps[slot].responder.expected),
            in_flight: if self.profile(slot).service == Service::Rc { requester.in_flight } else { 0 },
            acknowledged: requester.una.wrapping_sub(common.base),
            credit: self.credit(slot),
            congestion_window: self.congestion_window(slot),
        })
    }

    /// Packets of READ data that have arrived in order since the queue pair was made, modulo 2³², where the responses are
    /// acknowledged on their own; `None` where they share the sequences of requests, so that
    /// [`QpStatus::acknowledged`] counts them.
    pub fn responses(&self, qpn: Qpn) -> Option<u32> {
        let slot = self.place(qpn).filter(|&slot| self.profile(slot).separate_reads())?;
        Some(self.responses_in_order(slot))
    }

    /// What a queue pair's packets have met; all zero where there is no such queue pair.
    #[inline]
    pub fn counters(&self, qpn: Qpn) -> Counters {
        let Some(slot) = self.place(qpn) else { return Counters::default() };
        let common = &self.qps[slot].common;
        let trouble = self.asides.get(common.aside);
        let refused = trouble.map_or(0, |aside| aside.naks);
        let unanswered = self.profile(slot).service == Service::Uc;
        let (naks, dropped) = if unanswered { (0, refused) } else { (refused, 0) };
        let doubled = trouble.and_then(|aside| Some(aside.taken.as_ref()?.doubled)).unwrap_or(0);
        let taken = if unanswered { self.qps[slot].responder.msn.wrapping_sub(doubled) } else { 0 };
        Counters {
            packets: common.packets,
            retransmitted: trouble.map_or(0, |aside| aside.retransmitted),
            repeated: trouble.map_or(0, |aside| aside.repeated),
            timeouts: trouble.map_or(0, |aside| aside.timeouts),
            naks,
            dropped,
            taken,
            doubled,
            rnr: trouble.map_or(0, |aside| aside.rnr),
            unheard: trouble.map_or(0, |aside| aside.unheard),
            cnps: common.cnps,
            ecn_marked: common.ecn_marked,
        }
    }

    /// Puts a queue pair into the error state: the oldest send request ends with `status`, all else as flushed.
    pub(crate) fn fail(&mut self, now: Instant, slot: usize, status: Status) {
        self.fail_by(now, slot, self.qps[slot].common.head, status);
    }

    /// The same where the request `guilty` ends with `status`.
    pub(crate) fn fail_by(&mut self, now: Instant, slot: usize, guilty: u32, status: Status) {
        if self.state(slot) != QpState::Error {
            self.end_whole_messages(slot);
        }
        self.fail_refusing(now, slot, guilty, status);
    }

    /// The same where a request of the peer is refused: no message that came behind it ends well.
    pub(crate) fn fail_refusing(&mut self, now: Instant, slot: usize, guilty: u32, status: Status) {
        let common = &mut self.qps[slot].common;
        if common.state == QpState::Error {
            return;
        }
        common.state = QpState::Error;
        let qpn = common.qpn;
        let mut work = common.head;
        (common.head, common.tail) = (NONE, NONE);
        self.tell_incident(Incident::Failed(qpn));
        let mut is_guilty = false;
        while work != NONE {
            let SendWork { id, kind, next, .. } = *self.sends.get(work);
            is_guilty |= work == guilty;
            // Of a READ in pieces the last tells.
            if !self.sends.get(work).continues() {
                let status = if is_guilty { status } else { Status::WorkRequestFlushed };
                self.tell_sender(slot, Completion { status, ..flushed(id, qpn, kind.completion()) });
                is_guilty = false;
            }
            self.sends.remove(work);
            work = next;
        }
        let current = core::mem::replace(&mut self.qps[slot].responder.recv, NONE);
        if current != NONE {
            self.flush_recv(slot, current);
        }
        // Those taken for messages that came early were posted before those that still stand in the queue.
        self.end_keeping(slot, true);
        while let Some(recv) = self.qps[slot].responder.queue.take(&self.recvs) {
            self.flush_recv(slot, recv);
        }
        #[expect(clippy::cast_possible_truncation, reason = "places are below 2²⁴")]
        let place = slot as u32;
        self.schedule.remove(place);
        self.schedule.set_left(place, None);
        self.timers.cancel(TimerId { qp: place, kind: TIMER_SEND });
        self.timers.cancel(TimerId { qp: place, kind: TIMER_ACK });
        self.end_run(slot);
        let Qp { requester, common, .. } = &mut self.qps[slot];
        requester.current = NONE;
        // What was not acknowledged is not: the count begins so much later.
        common.base = common.base.wrapping_add(requester.high.wrapping_sub(requester.una));
        requester.una = requester.high;
        requester.in_flight = 0;
        requester.reads = 0;
        if requester.notes.has(Notes::SEND_TIMER) {
            requester.standing.clear(Standing::HELD);
        }
        requester
            .notes
            .clear(Notes::SENDS.with(Notes::RESPONSES).with(Notes::SEND_TIMER).with(Notes::ACK_TIMER));
        requester.standing.clear(Standing::OFFERED.with(Standing::RECOVERY_OUT).with(Standing::RNR_WAIT));
        self.end_recovery(slot);
        self.stop_reading(slot);
        self.leave_read_rooms(slot, None);
        if let Some(agent) = &mut self.agent {
            agent.forget(qpn);
        }
        self.leave_flight(slot);
        self.end_responses(now, slot);
    }

    pub(crate) fn flush_recv(&mut self, slot: usize, recv: u32) {
        let id = self.recvs.get(recv).request.id;
        self.recvs.remove(recv);
        let qpn = self.qps[slot].common.qpn;
        self.tell_receiver(slot, flushed(id, qpn, CompletionKind::Recv));
    }
}

/// The completion of a request that was never carried out.
pub(crate) const fn flushed(id: u64, qpn: Qpn, kind: CompletionKind) -> Completion {
    Completion {
        id,
        qpn,
        kind,
        status: Status::WorkRequestFlushed,
        length: 0,
        tail: Tail::Plain,
        solicited: false,
        original: 0,
        source: None,
    }
}

/// Appends to a slab that grows by a sixteenth, not twofold: many queue pairs must not cost double.
fn push_lean<T>(slab: &mut Vec<T>, value: T) {
    if slab.len() == slab.capacity() {
        slab.reserve_exact(if slab.len() < 16 { 2 } else { slab.len() / 64 });
    }
    slab.push(value);
}

/// SplitMix64's finaliser.
const fn scramble(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EngineConfig;
    use crate::qp::BITMAP_PACKETS;
    use roci_units::Span;

    #[test]
    fn attributes_that_no_queue_pair_has_any_more_leave_room_for_others() {
        let mut engine = Engine::new(EngineConfig::default());
        let stays = engine.create_qp(QpConfig::default()).unwrap();
        for q_key in 1..1_000 {
            let qpn = engine.create_qp(QpConfig { q_key, ..QpConfig::default() }).unwrap();
            let timeout = Some(Span::from_micros(q_key.into()));
            engine.modify_qp(Instant::ZERO, qpn, &Change { timeout, ..Change::default() }).unwrap();
            engine.destroy_qp(qpn).unwrap();
        }
        assert!(engine.profiles.len() <= 4, "{}", engine.profiles.len());
        let other = engine.create_qp(QpConfig { q_key: 7, retry: 3, ..QpConfig::default() }).unwrap();
        let profile = |qpn| *engine.profile(engine.place(qpn).unwrap());
        assert_eq!(profile(stays), Profile::new(&QpConfig::default(), BITMAP_PACKETS));
        assert_eq!((profile(other).q_key, profile(other).retry), (7, 3));
    }
}
