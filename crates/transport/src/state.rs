//! The states of a queue pair and the ways between them (IBTA Vol 1 §10.3.1).

/// Where a queue pair stands.
///
/// SQE, the state of a send queue alone in error, is left out: it belongs to unreliable services, and a datagram of
/// ours cannot fail once it was accepted by `post_send`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QpState {
    /// Made, and good for nothing yet.
    Reset,
    /// Receives can be posted, nothing is received.
    Init,
    /// RTR: requests are received and answered.
    ReadyToReceive,
    /// RTS: requests are sent as well.
    #[default]
    ReadyToSend,
    /// SQD: requests that have begun are finished, new ones wait.
    SendQueueDrained,
    /// Everything posted is flushed.
    Error,
}

impl QpState {
    /// All states, in the order of a connection's life.
    pub const ALL: [Self; 6] = [
        Self::Reset,
        Self::Init,
        Self::ReadyToReceive,
        Self::ReadyToSend,
        Self::SendQueueDrained,
        Self::Error,
    ];

    /// The state after `change`, or `None` where the standard knows no such way (IBTA Vol 1 figure 124).
    pub const fn after(self, change: Transition) -> Option<Self> {
        use Transition as T;
        match (self, change) {
            (_, T::Reset) => Some(Self::Reset),
            (Self::Reset, T::Fail) => None,
            (_, T::Fail) => Some(Self::Error),
            (Self::Reset | Self::Init, T::Initialize) => Some(Self::Init),
            (Self::Init, T::Receive) => Some(Self::ReadyToReceive),
            (Self::ReadyToReceive | Self::ReadyToSend | Self::SendQueueDrained, T::Send) => {
                Some(Self::ReadyToSend)
            }
            (Self::ReadyToSend | Self::SendQueueDrained, T::Drain) => Some(Self::SendQueueDrained),
            _ => None,
        }
    }

    /// The ways that lead on from here.
    pub fn ways(self) -> impl Iterator<Item = Transition> {
        Transition::ALL.into_iter().filter(move |way| self.after(*way).is_some())
    }

    /// Whether packets of the peer's requests are dealt with.
    pub const fn receives(self) -> bool {
        matches!(self, Self::ReadyToReceive | Self::ReadyToSend | Self::SendQueueDrained)
    }

    /// Whether requests are sent, at least those that have begun.
    pub const fn sends(self) -> bool {
        matches!(self, Self::ReadyToSend | Self::SendQueueDrained)
    }
}

/// What changes a queue pair's state: the application's wish, or a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transition {
    /// Forget everything.
    Reset,
    /// To INIT.
    Initialize,
    /// To RTR.
    Receive,
    /// To RTS.
    Send,
    /// To SQD.
    Drain,
    /// To the error state.
    Fail,
}

impl Transition {
    /// All transitions.
    pub const ALL: [Self; 6] =
        [Self::Reset, Self::Initialize, Self::Receive, Self::Send, Self::Drain, Self::Fail];
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::String};

    #[test]
    fn every_pair_of_state_and_transition_is_decided() {
        let mut table = String::new();
        for state in QpState::ALL {
            for change in Transition::ALL {
                let next = state.after(change).map_or("-".into(), |next| format!("{next:?}"));
                table += &format!("{:<17} {:<10} {next}\n", format!("{state:?}"), format!("{change:?}"));
            }
        }
        insta::assert_snapshot!(table);
    }
}
