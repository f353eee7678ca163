//! What is so or not of a queue pair and its two sides: sets of one-bit facts.

/// A set of one-bit facts.
macro_rules! bits {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $bit:ident = $value:expr,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name(u8);
        impl $name {
            $($(#[$doc])* pub(crate) const $bit: Self = Self($value);)*
            /// None of them.
            #[allow(dead_code, reason = "not every set needs it")]
            pub(crate) const EMPTY: Self = Self(0);
            #[inline]
            pub(crate) const fn has(self, other: Self) -> bool { self.0 & other.0 == other.0 }
            #[allow(dead_code, reason = "not every set needs it")]
            #[inline]
            pub(crate) const fn meets(self, other: Self) -> bool { self.0 & other.0 != 0 }
            #[allow(dead_code, reason = "not every set needs it")]
            #[inline]
            pub(crate) const fn within(self, other: Self) -> bool { self.0 & !other.0 == 0 }
            #[allow(dead_code, reason = "not every set needs it")]
            #[inline]
            pub(crate) const fn bits(self) -> u8 { self.0 }
            #[inline]
            pub(crate) const fn set(&mut self, other: Self) { self.0 |= other.0 }
            #[inline]
            pub(crate) const fn clear(&mut self, other: Self) { self.0 &= !other.0 }
            /// Both sets.
            #[must_use]
            pub(crate) const fn with(self, other: Self) -> Self { Self(self.0 | other.0) }
        }
    };
}

bits! {
    /// Why a queue pair's sender stands where it stands.
    Standing {
        /// The law is out, and it decides on each packet that is sent.
        LAW_DECIDES = 1,
        /// Its head is offered and not yet settled.
        OFFERED = 2,
        /// It was declined until something is received.
        PARKED = 4,
        /// It was declined until the send timer fires.
        HELD = 8,
        /// It was declined until its law's timer.
        AWAITS_LAW = 16,
        /// The receiver was not ready: requests wait for the acknowledgement timer.
        RNR_WAIT = 32,
        /// The law is out with a deferred event.
        LAW_OUT = 64,
        /// A recovery decision is out.
        RECOVERY_OUT = 128,
    }
}

bits! {
    /// Smaller facts of a requester.
    Notes {
        /// The send timer is in the wheel.
        SEND_TIMER = 1,
        /// The acknowledgement timer is in the wheel.
        ACK_TIMER = 2,
        /// Something is marked to be sent again.
        RESENDS = 4,
        /// The law deals tokens, or paces the whole port: it is asked before anything is sent.
        LAW_CREDIT = 8,
        /// The last segment was a response, so a request is next.
        RESPONDED = 16,
        /// There was a loss: the fixed stage of delivery keeps the window.
        RECOVERING = 32,
        /// READ responses are ready to go.
        RESPONSES = 64,
        /// The state lets requests be sent.
        SENDS = 128,
    }
}

bits! {
    /// Smaller facts of a responder.
    Duties {
        /// A gap was answered by a NAK; nothing more until it is filled.
        NAKED = 1,
        /// A packet with CE arrived since the last acknowledgement.
        MARKED = 2,
        /// READ responses or an atomic's result have still to go.
        RESPONDING = 4,
        /// A reply waits until the responses before it are gone.
        OWES = 8,
        /// In the middle of a SEND.
        SENDING = 16,
        /// In the middle of a WRITE.
        WRITING = 32,
        /// The queue pair has failed by a request that it refused: the responses before it and the NAK still go.
        DRAINING = 64,
        /// On an unreliable connection: what comes before the first packet of a message is of one that is dropped.
        DROPPING = 128,
    }
}

bits! {
    /// What is so or not of a queue pair as a whole.
    Facts {
        /// The place is taken.
        ALIVE = 1,
        /// The law's state counts the octets or the times of what is sent.
        COUNTS = 2,
        /// The last packet that is staged, or of the run, is also the last that the program lets go which owns the window.
        SHUTS = 4,
        /// It has a rate.
        PACED = 8,
        /// The recovery program owns the window, and has heard last that all is in order: of acknowledgements in order of one
        /// packet each, from where its window begins up to `una`, it hears later. Whoever looks at its window, or moves
        /// `una` by more, [has it hear](crate::recovery::hear) of them first.
        HEARS_LATER = 16,
        /// The deadline is one of few packets in flight (IRN's RTO_low). If more are when it comes, it is
        /// [put off](Qp::put_off).
        SOON = 32,
        /// The timer runs, and as it was started nothing in flight had asked for an acknowledgement: whoever asks starts it again.
        UNASKED = 64,
        /// Its deadlines may be [`SOON`](Self::SOON) or [`UNASKED`](Self::UNASKED). One test for both: two
        /// cost an acknowledgement a third of a nanosecond more.
        MARKS = 128,
    }
}

impl Facts {
    /// Whether the recovery program may hear later of an acknowledgement of one packet: that only opens the window further, and what
    /// is let through already ends before the window does.
    #[inline]
    pub(crate) const fn lets_wait(self) -> bool {
        self.0 & (Self::HEARS_LATER.0 | Self::SHUTS.0) == Self::HEARS_LATER.0
    }

    /// Says whether `fact` is so.
    #[inline]
    pub(crate) const fn put(&mut self, fact: Self, is: bool) {
        if is {
            self.set(fact);
        } else {
            self.clear(fact);
        }
    }
}
