//! Frames as engines send them: what the benches of the byte rooms are fed.

use bytes::Bytes;
use heartline::Format;

/// One token of a chat completion: 200 bytes, the frame that design §7 speaks of.
pub(crate) fn chat_token() -> Bytes {
    let head =
        "data: {\"id\":\"chatcmpl-9\",\"object\":\"chat.completion.chunk\",\"created\":1764547200,\"model\":\"m\",";
    let tail = "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" to\"},\"finish_reason\":null}]";
    let filler = 200 - head.len() - tail.len() - "\"x\":\"\",}\n\n".len();
    let frame = format!("{head}\"x\":\"{}\",{tail}}}\n\n", "0".repeat(filler));
    assert_eq!(frame.len(), 200);
    frame.into()
}

/// One token of Anthropic's API: a name and its data.
pub(crate) fn anthropic_token() -> Bytes {
    Bytes::from_static(
        b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" to\"}}\n\n",
    )
}

/// One token of the responses API.
pub(crate) fn responses_token() -> Bytes {
    Bytes::from_static(
        b"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" to\",\"sequence_number\":7}\n\n",
    )
}

/// One token of Ollama's API.
pub(crate) fn ollama_token() -> Bytes {
    Bytes::from_static(
        b"{\"model\":\"llama3.2\",\"created_at\":\"2026-12-01T00:00:00.000000Z\",\"message\":{\"role\":\"assistant\",\"content\":\" to\"},\"done\":false}\n",
    )
}

/// Each token's name, format and bytes.
pub(crate) fn tokens() -> [(&'static str, Format, Bytes); 4] {
    [
        ("chat_200_bytes", Format::EventStream, chat_token()),
        ("anthropic", Format::EventStream, anthropic_token()),
        ("responses", Format::EventStream, responses_token()),
        ("ollama", Format::Ndjson, ollama_token()),
    ]
}
