//! llama.cpp's own completion. From its server's README: events without names, the last one with `"stop":true`.

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::openai;
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;

pub(crate) static SPEC: Spec = Spec {
    name: "llama-cpp",
    label: "completion",
    path: "/completion",
    places: &[Place::new("/completion", Streams::No)],
    ends: &[Sign::Field("/stop")],
    errors: &[Sign::Event("error"), Sign::Field("/error")],
    after_error: "",
    ask: Ask {
        body: r#"{"prompt":$text,"stream":$stream$limit}"#,
        limit: r#","n_predict":$tokens"#,
        tokens_max: None,
        limits: &["/n_predict"],
    },
    answer: Answer {
        open: &[],
        token: &[Part::data(
            r#"{"index":0,"content":$text,"tokens":[],"stop":false,"id_slot":0,"tokens_evaluated":$prompt_tokens}"#,
        )],
        close: &[Part::data(
            r#"{"index":0,"content":"","tokens":[],"id_slot":0,"stop":true,"model":$model,"tokens_predicted":$tokens,"tokens_evaluated":$prompt_tokens,"truncated":false,"stop_type":"$stop","stopping_word":""}"#,
        )],
        document: r#"{"index":0,"content":$text,"tokens":[],"id_slot":0,"stop":true,"model":$model,"tokens_predicted":$tokens,"tokens_evaluated":$prompt_tokens,"truncated":false,"stop_type":"$stop","stopping_word":""}"#,
        reasons: &[("stop", ["eos", "limit"])],
    },
    ..openai::BASE
};
