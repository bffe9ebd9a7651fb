//! The `generate_stream` of Text Generation Inference. From its router's source: events without names, the last one has the
//! `generated_text`, an error has an `error_type`.

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::fault::{Closing, Fault, data_event, quoted};
use super::openai;
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;

pub(crate) static SPEC: Spec = Spec {
    name: "tgi",
    label: "generate",
    path: "/generate_stream",
    document_path: Some("/generate"),
    places: &[Place::new("/generate_stream", Streams::Always)],
    ends: &[Sign::Field("/generated_text")],
    errors: &[Sign::Field("/error")],
    after_error: "",
    document,
    event,
    ask: Ask {
        body: r#"{"inputs":$text$limit}"#,
        limit: r#","parameters":{"max_new_tokens":$tokens}"#,
        tokens_max: None,
        limits: &["/parameters/max_new_tokens"],
    },
    answer: Answer {
        open: &[],
        token: &[Part::data(
            r#"{"index":$index,"token":{"id":$index,"text":$text,"logprob":-0.5,"special":false},"generated_text":null,"details":null}"#,
        )],
        close: &[Part::data(
            r#"{"index":$tokens,"token":{"id":2,"text":"","logprob":-0.5,"special":true},"generated_text":$whole,"details":{"finish_reason":"$stop","generated_tokens":$tokens,"seed":null,"input_length":$prompt_tokens}}"#,
        )],
        document: r#"{"generated_text":$text}"#,
        reasons: &[("stop", ["eos_token", "length"])],
    },
    ..openai::BASE
};

fn document(fault: &Fault<'_>) -> String {
    let kind = match fault.status.as_u16() {
        429 | 503 => "overloaded",
        400..500 => "validation",
        _ => "generation",
    };
    let kind = fault.kind.unwrap_or(kind);
    format!(r#"{{"error":{},"error_type":{}}}"#, quoted(fault.message), quoted(kind))
}

fn event(fault: &Fault<'_>, _: Closing) -> String {
    data_event(&document(fault))
}
