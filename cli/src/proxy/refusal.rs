//! Answers of the proxy itself: a status and a JSON error in the shape that the API's clients read. Made by `exchange` and
//! `late`.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use heartline::api::{Api, Fault};

/// Why the proxy answers in the engine's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The head breaks a rule that other hops may read in another way.
    Malformed(&'static str),
    /// `CONNECT` or `TRACE`.
    Method,
    /// An expectation other than `100-continue`.
    Expectation,
    /// A transfer coding other than `chunked`.
    TransferCoding,
    /// The request has passed this proxy before.
    Loop,
    /// No engine serves this path or model.
    NoRoute {
        /// The model that was asked for.
        model: Option<String>,
    },
    /// The request's body broke off or broke its framing.
    BrokenBody,
    /// The client fell silent in the middle of the request's body.
    SlowBody,
    /// The engine could not be reached, or broke off before its answer began.
    EngineDown,
    /// The engine answered what cannot be passed on.
    EngineProtocol,
    /// The engine was not reached, or did not answer, in time.
    EngineLate(Duration),
    /// The proxy is shutting down.
    Draining,
    /// A bound of the proxy was reached.
    Busy,
}

impl Refusal {
    /// The status of the answer.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Malformed(_) | Self::BrokenBody => StatusCode::BAD_REQUEST,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::NoRoute { .. } => StatusCode::NOT_FOUND,
            Self::EngineDown | Self::EngineProtocol => StatusCode::BAD_GATEWAY,
            Self::EngineLate(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Draining | Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A stable word for logs and error codes.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_request",
            Self::Method => "method_not_allowed",
            Self::Expectation => "expectation_failed",
            Self::TransferCoding => "transfer_coding",
            Self::Loop => "loop_detected",
            Self::NoRoute { .. } => "no_route",
            Self::BrokenBody => "broken_request_body",
            Self::SlowBody => "slow_request_body",
            Self::EngineDown => "engine_down",
            Self::EngineProtocol => "engine_protocol",
            Self::EngineLate(_) => "engine_late",
            Self::Draining => "shutting_down",
            Self::Busy => "busy",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Malformed(why) => format!("The request is malformed: {why}."),
            Self::Method => "This method is not passed on.".into(),
            Self::Expectation => "Only 100-continue can be expected.".into(),
            Self::TransferCoding => "Only the transfer coding chunked is understood.".into(),
            Self::Loop => "The request has passed this proxy before.".into(),
            Self::NoRoute { model: Some(model) } => format!("No engine here serves the model {model}."),
            Self::NoRoute { model: None } => "No engine here serves this path.".into(),
            Self::BrokenBody => "The request's body broke off or is malformed.".into(),
            Self::SlowBody => "The request's body did not come in time.".into(),
            Self::EngineDown => "The engine could not be reached, or broke off before it answered.".into(),
            Self::EngineProtocol => "The engine's answer cannot be passed on.".into(),
            Self::EngineLate(limit) => format!("The engine did not answer within {limit:?}."),
            Self::Draining => "The server is shutting down.".into(),
            Self::Busy => "Too many connections.".into(),
        }
    }

    /// The answer's bytes, as clients of `api` read them.
    pub(super) fn json(&self, api: Api) -> String {
        let message = self.message();
        let mut fault = Fault::new(self.status(), &message);
        fault.code = Some(self.code());
        api.error_document(&fault)
    }

    /// The whole answer.
    pub(super) fn response(&self, api: Api) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.json(api)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self {
            Self::Method => {
                headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
            }
            Self::Draining | Self::Busy => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        if self.ends_connection() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Whether no further request can be read from the connection, or none should be.
    pub(super) fn ends_connection(&self) -> bool {
        matches!(
            self,
            Self::Malformed(_)
                | Self::BrokenBody
                | Self::SlowBody
                | Self::TransferCoding
                | Self::Expectation
                | Self::Draining
                | Self::Busy
        )
    }
}

/// A connection that is refused before anything was read from it.
pub(super) fn busy_bytes() -> Vec<u8> {
    let json = Refusal::Busy.json(Api::EVENTS);
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{json}",
        json.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Refusal; 13] = [
        Refusal::Malformed("why"),
        Refusal::Method,
        Refusal::Expectation,
        Refusal::TransferCoding,
        Refusal::Loop,
        Refusal::NoRoute { model: None },
        Refusal::BrokenBody,
        Refusal::SlowBody,
        Refusal::EngineDown,
        Refusal::EngineProtocol,
        Refusal::EngineLate(Duration::from_secs(5)),
        Refusal::Draining,
        Refusal::Busy,
    ];

    #[test]
    fn every_refusal_is_an_error_and_json_in_every_shape() {
        for refusal in ALL {
            for &api in Api::ALL {
                let response = refusal.response(api);
                assert!(response.status().is_client_error() || response.status().is_server_error());
                let json: serde_json::Value = serde_json::from_slice(response.body()).expect("JSON");
                assert!(json.get("error").is_some());
            }
        }
    }

    #[test]
    fn a_model_cannot_break_out_of_the_message() {
        let refusal = Refusal::NoRoute { model: Some("\"}\n{\"x".into()) };
        let json: serde_json::Value = serde_json::from_str(&refusal.json(Api::OPENAI_CHAT)).expect("JSON");
        assert_eq!(json["error"]["message"], "No engine here serves the model \"}\n{\"x.");
    }
}
