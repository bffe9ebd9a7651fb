//! What tells an event from the others: its data, its name, or a field in it. Read by the byte machine (`head`), which
//! looks for it in the first bytes of a line, and by whoever decodes whole events.

/// A sign in an event. A new kind of sign concerns everyone who reads them, so that the list is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The event's data is this text and no other.
    Data(&'static str),
    /// The event has this name, or its data is a JSON object whose topmost `type` is this.
    Event(&'static str),
    /// The event's data is a JSON document in which this place, a JSON pointer, is there and neither `null` nor `false`.
    Field(&'static str),
}
