//! One request, understood: which endpoint, on which terms, streamed or not.
//!
//! Made by [`Ask::read`] for the server and for [`expected_body`](crate::sim::expected_body) alike; does no I/O.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::settings::Settings;
use super::terms::Terms;
use super::writer;
use heartline::api::{Api, Endpoint, Fault, Question, Streams};

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Ask {
    /// An answer of tokens.
    Generate(Box<Call>),
    /// The list of models, as JSON.
    Models(String),
}

/// How the answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// As an event stream or NDJSON.
    Stream,
    /// As one JSON document.
    Document,
}

/// A request for tokens.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) api: Api,
    pub(crate) terms: Terms,
    pub(crate) reply: Reply,
    /// The model's name as a JSON string.
    pub(crate) model: String,
    pub(crate) prompt_tokens: usize,
    pub(crate) tokens: u32,
    /// The request's own limit cut the answer short.
    pub(crate) cut_short: bool,
    /// The client asked for a last chunk with the usage.
    pub(crate) usage: bool,
}

/// A request that is answered with an error, in the shape of the API it went to.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) allow: Option<&'static str>,
    pub(crate) json: String,
}

impl Ask {
    /// Reads a request; `method` is `None` where the path decides it.
    ///
    /// # Errors
    ///
    /// The refusal that the client is sent: 404, 405 or 400.
    pub(crate) fn read(
        settings: &Settings,
        method: Option<&Method>,
        target: &str,
        body: &[u8],
    ) -> Result<Self, Refusal> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let reading = matches!(method, None | Some(&Method::GET | &Method::HEAD));
        let api = Api::nearest(path, Some(query));
        if path == "/v1/models" {
            return if reading {
                Ok(Self::Models(writer::models()))
            } else {
                let message = "the list of models is read with GET";
                Err(Refusal::new(api, StatusCode::METHOD_NOT_ALLOWED, message, Some("GET, HEAD")))
            };
        }
        let any_method = path == "/" || path == "/events";
        let endpoint = match path {
            "/" => Some(Endpoint::new(settings.api, Streams::Always)),
            "/events" => Some(Endpoint::new(Api::EVENTS, Streams::Always)),
            _ => Endpoint::of_path(path, Some(query)),
        };
        let Some(endpoint) = endpoint else {
            let message = format!("nothing is served at {path}; there are {}", paths());
            return Err(Refusal::new(api, StatusCode::NOT_FOUND, &message, None));
        };
        let api = endpoint.api();
        if !any_method && method.is_some_and(|method| method != Method::POST) {
            return Err(Refusal::new(api, StatusCode::METHOD_NOT_ALLOWED, "this endpoint takes POST", Some("POST")));
        }
        let refuse = |message: &str| Refusal::new(api, StatusCode::BAD_REQUEST, message, None);
        let terms = Terms::of(settings).with_query(query).map_err(|error| refuse(&error.to_string()))?;
        let wanted = if any_method || body.is_empty() {
            Wanted::default()
        } else {
            Wanted::read(body).map_err(|error| refuse(&format!("the body is no request: {error}")))?
        };
        let streamed = endpoint.streams(wanted.stream);
        let reply = if streamed { Reply::Stream } else { Reply::Document };
        Ok(Self::Generate(Box::new(Call::new(api, terms, reply, wanted, body.len()))))
    }
}

impl Call {
    fn new(api: Api, terms: Terms, reply: Reply, wanted: Wanted, body_bytes: usize) -> Self {
        let limit = if terms.tokens_are_own { None } else { wanted.limit };
        let tokens = limit.map_or(terms.tokens, |limit| limit.min(terms.tokens));
        let model = wanted.model.as_deref().unwrap_or(writer::MODEL);
        Self {
            api,
            terms,
            reply,
            model: quoted(model),
            prompt_tokens: body_bytes / BYTES_PER_TOKEN + 1,
            tokens,
            cut_short: tokens < terms.tokens,
            usage: wanted.stream_options.and_then(|options| options.include_usage).unwrap_or(false),
        }
    }

    /// Whether the answer is a stream, not one document.
    pub(crate) fn is_streamed(&self) -> bool {
        self.reply == Reply::Stream
    }

    /// The token before which a script interferes: after half of them, and after one at least.
    pub(crate) fn turn(&self) -> u32 {
        self.tokens.div_ceil(2)
    }
}

impl Refusal {
    pub(crate) fn new(api: Api, status: StatusCode, message: &str, allow: Option<&'static str>) -> Self {
        let json = api.error_document(&Fault::new(status, message));
        Self { status, allow, json }
    }
}

/// Writes a JSON string with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The parts of a request's body that matter here; everything else is let pass, as the engines do.
#[derive(Debug, Default, Deserialize)]
struct Wanted {
    stream: Option<bool>,
    model: Option<String>,
    stream_options: Option<StreamOptions>,
    /// The most tokens, wherever an API puts it.
    #[serde(skip)]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

impl Wanted {
    fn read(body: &[u8]) -> serde_json::Result<Self> {
        let document: Value = serde_json::from_slice(body)?;
        let places = Api::ALL.iter().flat_map(|api| api.token_limits());
        // Negative numbers mean no limit.
        let mut limits = places.filter_map(|place| u32::try_from(document.pointer(place)?.as_u64()?).ok());
        let limit = limits.next();
        Ok(Self { limit, ..Self::deserialize(document)? })
    }
}

/// Every path, for the answer to a wrong one.
fn paths() -> String {
    let question = Question::new(writer::MODEL, "");
    let mut paths: Vec<_> = Api::ALL.iter().map(|api| api.request_path(&question)).collect();
    paths.push("/v1/models".to_owned());
    format!("{} and /", paths.join(", "))
}

/// A rule of thumb, good enough for a made-up usage.
const BYTES_PER_TOKEN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn call(target: &str, body: &str) -> Call {
        match Ask::read(&Settings::default(), None, target, body.as_bytes()) {
            Ok(Ask::Generate(call)) => *call,
            other => panic!("{other:?}"),
        }
    }

    fn refusal(method: &Method, target: &str, body: &str) -> Refusal {
        Ask::read(&Settings::default(), Some(method), target, body.as_bytes()).unwrap_err()
    }

    #[test]
    fn stream_is_honoured_and_its_absence_means_what_the_api_says() {
        for (path, absent) in [
            ("/v1/chat/completions", false),
            ("/v1/completions", false),
            ("/v1/responses", false),
            ("/openai/deployments/d/chat/completions", false),
            ("/v1/messages", false),
            ("/api/chat", true),
            ("/api/generate", true),
        ] {
            assert_eq!(call(path, "").is_streamed(), absent, "{path}");
            assert_eq!(call(path, "{}").is_streamed(), absent, "{path}");
            assert!(call(path, r#"{"stream":true}"#).is_streamed(), "{path}");
            assert!(!call(path, r#"{"stream":false}"#).is_streamed(), "{path}");
        }
        assert!(call("/events", "").is_streamed() && call("/?seed=1", "").is_streamed());
    }

    #[test]
    fn a_limit_in_the_body_shortens_the_answer_unless_the_query_says_otherwise() {
        for body in
            [r#"{"max_tokens":5}"#, r#"{"max_completion_tokens":5,"max_tokens":9}"#, r#"{"options":{"num_predict":5}}"#]
        {
            let short = call("/v1/chat/completions", body);
            assert_eq!((short.tokens, short.cut_short), (5, true));
        }
        let own = call("/v1/chat/completions?tokens=80", r#"{"max_tokens":5}"#);
        assert_eq!((own.tokens, own.cut_short), (80, false));
        assert_eq!(call("/api/chat", r#"{"options":{"num_predict":-1}}"#).tokens, 64);
    }

    #[test]
    fn a_refusal_has_a_status_and_a_reason() {
        let post = &Method::POST;
        for (refusal, status, reason) in [
            (refusal(post, "/nowhere", ""), 404, "/v1/chat/completions"),
            (refusal(&Method::GET, "/v1/messages", ""), 405, "POST"),
            (refusal(post, "/v1/models", ""), 405, "GET"),
            (refusal(post, "/v1/chat/completions", "{"), 400, "no request"),
            (refusal(post, "/v1/chat/completions", r#"{"stream":"yes"}"#), 400, "boolean"),
            (refusal(post, "/api/chat?ttft=x", ""), 400, "ttft"),
        ] {
            assert_eq!(refusal.status, status);
            assert!(refusal.json.contains(reason), "{}", refusal.json);
            assert!(serde_json::from_str::<serde_json::Value>(&refusal.json).is_ok());
        }
    }
}
