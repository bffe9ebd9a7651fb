//! Event streams of which nothing more is known: a page's `EventSource`, MCP's standalone stream, anyone's own. They have
//! no path, no terminator and no error event, so that nothing is ever written into them but neutral heartbeats.

use super::answer::{Answer, Part};
use super::openai;
use super::question::Ask;
use super::spec::Spec;

pub(crate) static SPEC: Spec = Spec {
    name: "events",
    label: "events",
    path: "/events",
    ends: &[],
    errors: &[],
    after_error: "",
    event: |_, _| String::new(),
    ask: Ask { body: "", limit: "", tokens_max: None, limits: &[] },
    answer: Answer {
        open: &[],
        token: &[Part::data("$plain")],
        close: &[Part::named("end", "$tokens")],
        document: "",
        reasons: &[],
    },
    ..openai::BASE
};
