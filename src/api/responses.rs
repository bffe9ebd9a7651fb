//! OpenAI's Responses: every event has a name, its `type` and a number. From the API's reference (streaming events).

use super::answer::{Answer, Part};
use super::endpoint::{Place, Streams};
use super::fault::{Closing, Fault, quoted, quoted_or_null};
use super::openai;
use super::question::Ask;
use super::sign::Sign;
use super::spec::Spec;

pub(crate) static SPEC: Spec = Spec {
    name: "responses",
    label: "response",
    path: "/v1/responses",
    places: &[
        Place::new("**/v1/responses", Streams::No),
        Place::new("/responses", Streams::No),
        Place::new("**/v3/responses", Streams::No),
        Place::new("**/openai/responses", Streams::No),
    ],
    near: &["/v1/responses", "/openai/responses"],
    ends: &[Sign::Event("response.incomplete"), Sign::Event("response.completed")],
    failed_ends: &[Sign::Event("response.failed")],
    errors: &[Sign::Event("error")],
    is_numbered: true,
    after_error: "", // the event that ends a failed stream is numbered too: see `event`
    event,
    ask: Ask {
        body: r#"{"model":$model,"stream":$stream,"input":$text$limit}"#,
        limit: r#","max_output_tokens":$tokens"#,
        tokens_max: None,
        limits: &["/max_output_tokens"],
    },
    answer: Answer {
        open: &[
            Part::named(
                "response.created",
                r#"{"type":"response.created","sequence_number":$number,"response":{"id":"resp_$id","object":"response","created_at":$created,"status":"in_progress","error":null,"incomplete_details":null,"model":$model,"output":[],"usage":null}}"#,
            ),
            Part::named(
                "response.in_progress",
                r#"{"type":"response.in_progress","sequence_number":$number,"response":{"id":"resp_$id","object":"response","created_at":$created,"status":"in_progress","error":null,"incomplete_details":null,"model":$model,"output":[],"usage":null}}"#,
            ),
            Part::named(
                "response.output_item.added",
                r#"{"type":"response.output_item.added","sequence_number":$number,"output_index":0,"item":{"id":"msg_$id","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
            ),
            Part::named(
                "response.content_part.added",
                r#"{"type":"response.content_part.added","sequence_number":$number,"item_id":"msg_$id","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
            ),
        ],
        token: &[Part::named(
            "response.output_text.delta",
            r#"{"type":"response.output_text.delta","sequence_number":$number,"item_id":"msg_$id","output_index":0,"content_index":0,"delta":$text,"logprobs":[]}"#,
        )],
        close: &[
            Part::named(
                "response.output_text.done",
                r#"{"type":"response.output_text.done","sequence_number":$number,"item_id":"msg_$id","output_index":0,"content_index":0,"text":$whole,"logprobs":[]}"#,
            ),
            Part::named(
                "response.content_part.done",
                r#"{"type":"response.content_part.done","sequence_number":$number,"item_id":"msg_$id","output_index":0,"content_index":0,"part":{"type":"output_text","text":$whole,"annotations":[]}}"#,
            ),
            Part::named(
                "response.output_item.done",
                r#"{"type":"response.output_item.done","sequence_number":$number,"output_index":0,"item":{"id":"msg_$id","type":"message","status":"$stop","role":"assistant","content":[{"type":"output_text","text":$whole,"annotations":[]}]}}"#,
            ),
            Part::named(
                "response.$stop",
                r#"{"type":"response.$stop","sequence_number":$number,"response":{"id":"resp_$id","object":"response","created_at":$created,"status":"$stop","error":null,"incomplete_details":$details,"model":$model,"output":[{"id":"msg_$id","type":"message","status":"$stop","role":"assistant","content":[{"type":"output_text","text":$whole,"annotations":[]}]}],"usage":{"input_tokens":$prompt_tokens,"output_tokens":$tokens,"total_tokens":$total_tokens}}}"#,
            ),
        ],
        document: r#"{"id":"resp_$id","object":"response","created_at":$created,"status":"$stop","error":null,"incomplete_details":$details,"model":$model,"output":[{"id":"msg_$id","type":"message","status":"$stop","role":"assistant","content":[{"type":"output_text","text":$text,"annotations":[]}]}],"usage":{"input_tokens":$prompt_tokens,"output_tokens":$tokens,"total_tokens":$total_tokens}}"#,
        reasons: &[("stop", ["completed", "incomplete"]), ("details", ["null", r#"{"reason":"max_output_tokens"}"#])],
    },
    ..openai::BASE
};

/// The error is in the event twice: as the API's reference has it, and under `error`, where OpenAI's own SDKs look. An
/// engine that is done with the stream ends it by an event of its own.
fn event(fault: &Fault<'_>, closing: Closing) -> String {
    let (message, kind) = (quoted(fault.message), quoted(openai::kind(fault.status)));
    let mut text = format!(
        "event: error\ndata: {{\"type\":\"error\",\"code\":{},\"message\":{message},\"param\":{},\"error\":{},\"sequence_number\":{}}}\n\n",
        quoted(fault.code.unwrap_or(fault.status.as_str())),
        quoted_or_null(fault.param),
        openai::error(fault),
        fault.number
    );
    if closing == Closing::End {
        text += &format!(
            "event: response.failed\ndata: {{\"type\":\"response.failed\",\"sequence_number\":{},\"response\":{{\"id\":\"resp_failed\",\"object\":\"response\",\"created_at\":0,\"status\":\"failed\",\"error\":{{\"code\":{kind},\"message\":{message}}},\"output\":[]}}}}\n\n",
            fault.number.saturating_add(1)
        );
    }
    text
}
