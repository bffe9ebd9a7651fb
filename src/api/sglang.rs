//! SGLang's own `generate`, which LMDeploy speaks too. From the servers' sources (sglang 0.5.23, lmdeploy 0.18.0): events
//! without names, `[DONE]` after the last one and after an error. Text Generation Inference has an endpoint of the same
//! path, which never streams and whose body has no `stream`.

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::openai;
use super::question::Ask;
use super::spec::Spec;

pub(crate) static SPEC: Spec = Spec {
    name: "sglang",
    label: "generate",
    path: "/generate",
    places: &[Place::new("/generate", Streams::No)],
    ask: Ask {
        body: r#"{"text":$text,"stream":$stream$limit}"#,
        limit: r#","sampling_params":{"max_new_tokens":$tokens}"#,
        tokens_max: None,
        limits: &["/sampling_params/max_new_tokens"],
    },
    answer: Answer {
        open: &[],
        // Each event has the text since the last one, as SGLang sends it when asked to and LMDeploy always does.
        token: &[Part::data(
            r#"{"text":$text,"meta_info":{"id":"$id","finish_reason":null,"prompt_tokens":$prompt_tokens,"completion_tokens":$index}}"#,
        )],
        close: &[
            Part::data(
                r#"{"text":"","meta_info":{"id":"$id","finish_reason":{"type":"$stop"},"prompt_tokens":$prompt_tokens,"completion_tokens":$tokens}}"#,
            ),
            Part::data("[DONE]"),
        ],
        document: r#"{"text":$text,"meta_info":{"id":"$id","finish_reason":{"type":"$stop"},"prompt_tokens":$prompt_tokens,"completion_tokens":$tokens}}"#,
        reasons: &[("stop", ["stop", "length"])],
    },
    ..openai::BASE
};
