//! A deterministic, seeded inference engine that speaks the real APIs, to test hops, clients and heartbeats against.
//!
//! It serves every path of every known API ([`Api`](heartline::api::Api)), `/v1/models`, plain `/events`, and at `/` a stream
//! of the API in its settings. Used by `heartline sim`, by the demo and by tests.
//!
//! One request's life, file by file:
//!
//! 1. [`Engine`] accepts its connection (`server`) and hands it over (`answer`), which reads it;
//! 2. `call` understands it: the endpoint, `stream`, and the terms (`terms`): [`Settings`] with the query's overrides,
//!    such as `?ttft=1s&tokens=8&script=stall&seed=3`;
//! 3. `script` plans the answer as steps, each a wait and an act; `writer` fills in the API's own templates with the
//!    words of `words`, `wire` writes them as bytes; `tear` cuts them where asked;
//! 4. `body` plays the plan: it sleeps ([`Delay`]), waits in the `queue` of the cliff, sends, hangs or breaks;
//! 5. however it ends, [`Stats`] counts it once.
//!
//! Bytes depend on the settings, the path and query and the request's body only, so [`expected_body`] can tell them
//! without a server; when they come and how they are cut depends on the order of requests too.

mod answer;
mod body;
mod call;
mod choices;
mod delay;
mod dice;
mod error;
mod queue;
mod script;
mod server;
mod settings;
mod stats;
mod tear;
mod terms;
mod wire;
mod words;
mod writer;

use bytes::{Bytes, BytesMut};

pub use self::choices::{Heartbeat, LineEnd, Script, WaitMode};
pub use self::delay::Delay;
pub use self::error::Error;
pub use self::server::Engine;
pub use self::settings::{Settings, TOKENS_MAX};
pub use self::stats::Stats;

use self::call::Ask;
use self::script::Act;

/// Returns the exact bytes that an engine with these settings answers to a request, heartbeats aside.
///
/// `target` is the path with its query, `body` the request's body. An answer that the script breaks off is returned as
/// far as it goes; one that hangs is empty; a refused request gives the JSON of its error.
///
/// # Examples
///
/// ```
/// use heartline_cli::sim::{Settings, expected_body};
///
/// let body = expected_body(&Settings::default(), "/v1/chat/completions?tokens=2", br#"{"stream":true}"#);
/// assert!(body.ends_with(b"data: [DONE]\n\n"));
/// ```
pub fn expected_body(settings: &Settings, target: &str, body: &[u8]) -> Bytes {
    let call = match Ask::read(settings, None, target, body) {
        Ok(Ask::Generate(call)) => call,
        Ok(Ask::Models(json)) => return Bytes::from(json),
        Err(refusal) => return Bytes::from(refusal.json),
    };
    let mut expected = BytesMut::new();
    for step in script::plan(call, 0) {
        if let Act::Send(bytes) = step.act {
            expected.extend_from_slice(&bytes);
        }
    }
    expected.freeze()
}
