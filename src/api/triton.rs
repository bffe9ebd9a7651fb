//! Triton's generate extension. From its protocol's document: events without names that end with the body, an error is one
//! text.

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::fault::{Closing, Fault, data_event, quoted};
use super::openai;
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;

pub(crate) static SPEC: Spec = Spec {
    name: "triton",
    label: "generate",
    path: "/v2/models/$model/generate_stream",
    document_path: Some("/v2/models/$model/generate"),
    places: &[
        Place::new("**/v2/models/*/generate_stream", Streams::Always),
        Place::new("**/v2/models/*/versions/*/generate_stream", Streams::Always),
        Place::new("**/v2/models/*/generate", Streams::Never),
        Place::new("**/v2/models/*/versions/*/generate", Streams::Never),
    ],
    near: &["/v2/models/"],
    ends: &[],
    errors: &[Sign::Field("/error")],
    after_error: "",
    document,
    event,
    ask: Ask {
        body: r#"{"text_input":$text,"parameters":{"stream":$stream$limit}}"#,
        limit: r#","max_tokens":$tokens"#,
        tokens_max: None,
        limits: &["/parameters/max_tokens"],
    },
    answer: Answer {
        open: &[],
        token: &[Part::data(r#"{"model_name":$model,"model_version":"1","text_output":$text}"#)],
        close: &[],
        document: r#"{"model_name":$model,"model_version":"1","text_output":$text}"#,
        reasons: &[],
    },
    ..openai::BASE
};

fn document(fault: &Fault<'_>) -> String {
    format!(r#"{{"error":{}}}"#, quoted(fault.message))
}

fn event(fault: &Fault<'_>, _: Closing) -> String {
    data_event(&document(fault))
}
