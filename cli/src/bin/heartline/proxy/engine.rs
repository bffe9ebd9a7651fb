//! The flags that describe an engine; given, they hold for every engine of the file. Part of `ProxyArgs`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use heartline_cli::proxy::{Consent, FormChoice, HostHeader, OrOff, UpstreamLayer};
use heartline_cli::values;
use http::HeaderName;

use super::parse::{or_off, read};

/// What holds for every engine.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(super) struct EngineArgs {
    /// Time between heartbeats, 30s by default: at most half of what the strictest hop allows.
    #[arg(long, value_name = "DURATION", env = "HEARTLINE_INTERVAL", value_parser = values::duration)]
    interval: Option<Duration>,
    /// Form of a heartbeat: auto (by client; default), newline, newline-between, comment, block:TEXT,
    /// event:NAME, ping or off.
    #[arg(long, value_name = "FORM", env = "HEARTLINE_HEARTBEAT", value_parser = read::<FormChoice>)]
    heartbeat: Option<FormChoice>,
    /// Request header by which a client may choose the form, such as x-heartbeat; off by default.
    #[arg(long, value_name = "NAME|off", env = "HEARTLINE_HEARTBEAT_HEADER", value_parser = or_off(values::header))]
    heartbeat_header: Option<OrOff<HeaderName>>,
    /// Heartbeats in NDJSON: known-apis (default), always or never.
    #[arg(long, value_name = "WHERE", env = "HEARTLINE_NDJSON", value_parser = read::<Consent>)]
    ndjson: Option<Consent>,
    /// Heartbeats (blanks) before JSON: known-apis, always or never (default).
    #[arg(long, value_name = "WHERE", env = "HEARTLINE_JSON", value_parser = read::<Consent>)]
    json: Option<Consent>,
    /// Answer a stream with 200 and heartbeats when the engine's headers take longer than this; off by default.
    /// The price: the engine's status code, and retries that go by it, are lost.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_COMMIT_AFTER", value_parser = or_off(values::duration))]
    commit_after: Option<OrOff<Duration>>,
    /// The same for JSON that is not streamed; off by default. The price: a failure shows as a torn answer.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_COMMIT_JSON_AFTER", value_parser = or_off(values::duration))]
    commit_json_after: Option<OrOff<Duration>>,
    /// End a stream that had no content for so long, 15m by default.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_MAX_SILENCE", value_parser = or_off(values::duration))]
    max_silence: Option<OrOff<Duration>>,
    /// End a stream that lived so long; off by default.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_MAX_LIFETIME", value_parser = or_off(values::duration))]
    max_lifetime: Option<OrOff<Duration>>,
    /// Host header towards the engine: upstream (its own; default), preserve (the client's) or a name.
    #[arg(long, value_name = "HOST", env = "HEARTLINE_HOST", value_parser = read::<HostHeader>)]
    host: Option<HostHeader>,
    /// Authorities (PEM) to trust instead of the system's, for an https:// engine.
    #[arg(long, value_name = "FILE", env = "HEARTLINE_CA")]
    ca: Option<PathBuf>,
    /// Keep an idle connection to the engine for so long, 4s by default (engines close after 5s), or off.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_POOL_IDLE", value_parser = or_off(values::duration))]
    pool_idle: Option<OrOff<Duration>>,
    /// Give up connecting to the engine after this, 5s by default.
    #[arg(long, value_name = "DURATION", env = "HEARTLINE_CONNECT_TIMEOUT", value_parser = values::duration)]
    connect_timeout: Option<Duration>,
    /// Answer 504 when the engine's headers take longer than this; off by default, since waiting is the purpose.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_RESPONSE_TIMEOUT", value_parser = or_off(values::duration))]
    response_timeout: Option<OrOff<Duration>>,
    /// Fail an answer in which the engine sends no byte for so long; off by default.
    #[arg(long, value_name = "DURATION|off", env = "HEARTLINE_BODY_IDLE", value_parser = or_off(values::duration))]
    body_idle: Option<OrOff<Duration>>,
}

impl EngineArgs {
    /// What was given.
    pub(super) fn layer(&self) -> UpstreamLayer {
        UpstreamLayer {
            interval: self.interval,
            heartbeat: self.heartbeat.clone(),
            heartbeat_header: self.heartbeat_header.clone(),
            ndjson: self.ndjson,
            json: self.json,
            commit_after: self.commit_after,
            commit_json_after: self.commit_json_after,
            max_silence: self.max_silence,
            max_lifetime: self.max_lifetime,
            host: self.host.clone(),
            ca: self.ca.clone(),
            pool_idle: self.pool_idle,
            connect_timeout: self.connect_timeout,
            response_timeout: self.response_timeout,
            body_idle: self.body_idle,
            ..UpstreamLayer::default()
        }
    }
}
