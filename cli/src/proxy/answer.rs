//! The end of an exchange: the engine's answer on its way, one committed before it, a tunnel, or the proxy's own refusal.
//! Called by `exchange`, which found out which.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;

use super::config::Consent;
use super::exchange::Exchange;
use super::headers::{self, has_token};
use super::late::{Commit, LateBody};
use super::refusal::Refusal;
use super::relay::{EngineBody, Pending, Relay, Resets, Source};
use super::socket::Line;
use super::table::Kept;
use super::tunnel;
use super::upstream::{Arrived, Engine, Sending};
use heartline::api::Endpoint;
use heartline::{BoxError, ErrorShape, Failures, Format, KeepAlive, StreamBuilder, Verdict};

impl Exchange {
    /// Passes the engine's answer on.
    pub(super) fn relay(self, engine: &Engine, response: Response<Arrived>) -> Response<Relay> {
        let (mut head, body) = response.into_parts();
        headers::strip_hop(&mut head.headers);
        headers::add_via(&mut head.headers, head.version, &self.shared.pseudonym);
        head.version = Version::HTTP_11; // the connection's own version is used
        let body = EngineBody::new(body, Arc::clone(&self.seat.live), engine.settings.body_idle);
        let body = match Verdict::of(&self.method, head.status, &head.headers, &self.formats(engine)) {
            Verdict::Leave => KeepAlive::untouched(Source::Engine(body)),
            Verdict::Bypass => KeepAlive::bypass(Source::Engine(body)),
            Verdict::Wrap(format) => {
                headers::keep_alive(&mut head.headers, format);
                let api = self.endpoint.map(Endpoint::api);
                let api = api.filter(|api| format == Format::Json || format == api.format());
                let shape = api.map(|api| api.error_shape(format));
                self.keep_alive(engine, format, Source::Engine(body), shape)
            }
        };
        let reset = self.resets(&body);
        let entry = self.entry.answered(head.status);
        Response::from_parts(head, Relay::new(body, self.seat, entry).watching(self.line).resetting(reset))
    }

    /// What resets the client's connection: nothing of HTTP/2, where a stream is reset by itself, nor what of HTTP/1.1 is
    /// passed untouched, whose clients know a short body.
    fn resets(&self, body: &KeepAlive<Source>) -> Option<(Line, Resets)> {
        let resets = match self.version {
            Version::HTTP_10 => Resets::Broken,
            Version::HTTP_11 if body.is_live() => Resets::Unreported,
            _ => return None,
        };
        Some((self.client.line.clone(), resets))
    }

    /// The formats that get heartbeats on this route.
    fn formats(&self, engine: &Engine) -> Vec<Format> {
        let heart = &engine.settings.heart;
        let api = self.endpoint.map(Endpoint::api);
        let mut formats = vec![Format::EventStream];
        for (consent, format, is_known) in [
            (heart.ndjson, Format::Ndjson, api.is_some_and(|api| api.format() == Format::Ndjson)),
            (heart.json, Format::Json, api.is_some()),
        ] {
            if consent == Consent::Always || (consent == Consent::KnownApis && is_known) {
                formats.push(format);
            }
        }
        formats
    }

    fn keep_alive(
        &self,
        engine: &Engine,
        format: Format,
        source: Source,
        shape: Option<ErrorShape>,
    ) -> KeepAlive<Source> {
        let form = self.form.clone().unwrap_or_default();
        let mut stream: StreamBuilder = engine.heart().stream().format(format).form(form.clone());
        if let Some(shape) = shape {
            stream = stream.error_shape(shape);
        }
        stream = stream.failures(match self.version {
            Version::HTTP_2 => Failures::ReportThenEnd,
            _ => Failures::ReportThenAbort,
        });
        let body = stream.wrap(source);
        if let Some(id) = body.id() {
            let kept = Kept { heart: engine.heart().clone(), stream: id, format, form };
            let _ = self.seat.live.kept.set(kept); // set once: a response is wrapped once
        }
        body
    }

    /// Answers before the engine does.
    pub(super) fn commit(self, engine: &Engine, pending: Sending, commit: &Commit) -> Response<Relay> {
        let Some(api) = self.endpoint.map(Endpoint::api) else { return self.refuse(&Refusal::EngineDown) };
        let (live, idle) = (Arc::clone(&self.seat.live), engine.settings.body_idle);
        let left = engine.settings.response_timeout.map(|limit| limit.saturating_sub(commit.after));
        let waiting: Pending = Box::pin(async move {
            let response = match left {
                None => pending.await?,
                Some(left) => tokio::time::timeout(left, pending).await.map_err(|_| late_error(left))??,
            };
            Ok(response.map(|body| EngineBody::new(body, live, idle)))
        });
        let body = LateBody::new(waiting, api, commit.format);
        let shape = body.error_shape();
        let body = self.keep_alive(engine, commit.format, Source::Late(Box::new(body)), Some(shape));
        let mut response = commit.head();
        headers::add_via(response.headers_mut(), Version::HTTP_11, &self.shared.pseudonym);
        let reset = self.resets(&body);
        let entry = self.entry.answered(StatusCode::OK).because("committed_early");
        let relay = Relay::new(body, self.seat, entry).watching(self.line).resetting(reset);
        response.map(|()| relay)
    }

    /// Turns the connection into a tunnel, if the engine agreed to what the client asked for.
    pub(super) fn tunnel(self, mut response: Response<Arrived>, upgrade: Option<OnUpgrade>) -> Response<Relay> {
        let agreed = has_token(response.headers(), &UPGRADE, "websocket");
        let (Some(client), true) = (upgrade, agreed) else { return self.refuse(&Refusal::EngineProtocol) };
        self.client.heads.stop();
        let engine = hyper::upgrade::on(&mut response);
        let (mut head, _) = response.into_parts();
        headers::strip_hop(&mut head.headers);
        headers::add_via(&mut head.headers, Version::HTTP_11, &self.shared.pseudonym);
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        head.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        let entry = self.entry.answered(head.status);
        let kept = (Arc::clone(&self.client), self.shared.table.enter(self.method.clone(), &self.seat.live.path, None));
        let _ = kept.1.live.upstream.set(self.seat.live.upstream.get().cloned().unwrap_or_else(|| Arc::from("")));
        tokio::spawn(tunnel::run(Arc::clone(&self.shared), client, engine, kept));
        Response::from_parts(head, Relay::new(KeepAlive::untouched(Source::Own(None)), self.seat, entry))
    }

    /// The proxy's own answer.
    pub(super) fn refuse(self, refusal: &Refusal) -> Response<Relay> {
        if refusal.ends_connection() {
            self.client.settles.store(true, std::sync::atomic::Ordering::Relaxed); // read when the connection is over
        }
        let mut response = refusal.response(self.api);
        if self.version == Version::HTTP_2 {
            response.headers_mut().remove(CONNECTION);
        }
        let entry = self.entry.answered(response.status()).because(refusal.code());
        let own = |bytes: Bytes| KeepAlive::untouched(Source::Own(Some(bytes)));
        response.map(|bytes| Relay::new(own(bytes), self.seat, entry))
    }
}

fn late_error(limit: Duration) -> BoxError {
    std::io::Error::new(std::io::ErrorKind::TimedOut, format!("the engine did not answer within {limit:?}")).into()
}
