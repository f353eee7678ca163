//! Settings that are each in order and go badly together: what a user should know of them.

use super::{Control, Routing, Switch, Transport};
use roci_transport::Recovery;

/// A note for each such pair.
pub(super) fn notes<'a>(
    switch: &Switch,
    transport: &Transport,
    controls: impl Iterator<Item = &'a Control>,
) -> Vec<String> {
    let sprayed = matches!(switch.routing, Routing::Spray);
    let trims = switch.config.trim.is_some();
    let mut notes = Vec::new();
    let mut note = |applies: bool, text: String| notes.extend(applies.then_some(text));
    note(
        transport.recovery == Recovery::Ndp && !trims,
        "`transport.recovery = \"ndp\"` hears of a loss by the header that is left of a packet, and no switch cuts payloads off: \
         each loss costs a timeout. Set `switch.trimming = true`"
            .to_owned(),
    );
    note(
        trims && transport.recovery != Recovery::Ndp,
        "`switch.trimming` tells of losses only with `transport.recovery = \"ndp\"`; others take a header without its payload for \
         nothing, and it takes the room of data"
            .to_owned(),
    );
    note(
        sprayed && transport.recovery == Recovery::GoBackN,
        "`transport.recovery = \"go-back-n\"` takes packets for lost that others overtake, as they do with `switch.routing = \
         \"spray\"`. Set `transport.recovery = \"irn\"`, or another that keeps what comes out of order"
            .to_owned(),
    );
    let mut laws: Vec<&Control> = controls.collect();
    laws.sort_by(|a, b| a.law.value.cmp(&b.law.value));
    laws.dedup_by(|a, b| a.law.value == b.law.value);
    for control in laws {
        let law = control.law.value.as_str();
        note(
            sprayed && control.wants_telemetry(),
            format!(
                "`{law}` compares what a link told with what it told before, and with `switch.routing = \"spray\"` the packets of \
                 a flow go by different links: it compares one with another. Set `switch.routing = \"ecmp\"`"
            ),
        );
        note(
            switch.config.ecn.is_none() && matches!(law, "dctcp" | "nscc"),
            format!("`{law}` slows down for marks, and `switch.ecn` is off: set `switch.ecn = true`"),
        );
    }
    notes
}
