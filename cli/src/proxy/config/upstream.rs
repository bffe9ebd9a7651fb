//! One engine: where it is, what it serves, and how its streams are kept alive. Part of `Config`; `[defaults]` and each
//! `[[upstream]]` in a file.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::{HeaderName, Uri};

use super::OrOff;
use super::words::{Consent, FormChoice, HostHeader, cadence};
use crate::values::{self, or_off};
use heartline::Cadence;

/// One engine, and how its streams are kept alive.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Engine")]
pub struct Upstream {
    /// Engine to pass requests on to: http://, https:// or h2c:// (cleartext HTTP/2), host and port; a path is put before
    /// each request's.
    #[arg(long = "upstream", alias = "url", value_name = "URL", value_parser = values::engine)]
    pub url: Uri,
    /// Its name in logs, metrics and /streams.
    #[arg(long, value_name = "NAME", default_value = "engine")]
    pub name: String,
    /// Path prefixes it serves, separated by commas; without any, every path.
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    pub paths: Vec<String>,
    /// Models it serves, separated by commas; one may end with *; without any, every model.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub models: Vec<String>,
    /// How its streams are kept alive.
    #[command(flatten)]
    pub heart: HeartSettings,
    /// Answer a stream with 200 and heartbeats when the engine's headers take longer than this. The price: the engine's
    /// status code, and retries that go by it, are lost.
    #[arg(long, value_name = "DURATION|off", default_value = "off", value_parser = or_off(values::duration))]
    pub commit_after: OrOff<Duration>,
    /// The same for JSON that is not streamed. The price: a failure shows as a torn answer.
    #[arg(long, value_name = "DURATION|off", default_value = "off", value_parser = or_off(values::duration))]
    pub commit_json_after: OrOff<Duration>,
    /// Host header towards the engine: upstream (its own), preserve (the client's) or a name.
    #[arg(long, value_name = "HOST", default_value = "upstream")]
    pub host: HostHeader,
    /// Authorities (PEM) to trust instead of the system's, for an https:// engine.
    #[arg(long, value_name = "FILE", value_parser = values::path)]
    pub ca: Option<PathBuf>,
    /// Keep an idle connection to the engine for so long, or use each once (off).
    // LMDeploy and vLLM close an idle connection after 5 s.
    #[arg(long, value_name = "DURATION|off", default_value = "4s", value_parser = or_zero)]
    pub pool_idle: Duration,
    /// Give up connecting to the engine after this: 502.
    // An engine on the same host or network answers in milliseconds; a lost SYN is sent again after 1 s and 3 s.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration)]
    pub connect_timeout: Duration,
    /// Answer 504 when the engine's headers take longer than this; off, since waiting is the purpose.
    #[arg(long, value_name = "DURATION|off", default_value = "off", value_parser = or_off(values::duration))]
    pub response_timeout: OrOff<Duration>,
    /// Fail an answer in which the engine sends no byte for so long.
    #[arg(long, value_name = "DURATION|off", default_value = "off", value_parser = or_off(values::duration))]
    pub body_idle: OrOff<Duration>,
}

impl Upstream {
    /// An engine with default settings.
    pub fn new(name: impl Into<String>, url: Uri) -> Self {
        let mut layer = values::Layer::default();
        layer.set("url", "http://127.0.0.1");
        let default = layer.read::<Self>().expect("every other setting has a default");
        Self { name: name.into(), url, ..default }
    }
}

/// Reads a length of time, or `off` for zero.
fn or_zero(text: &str) -> Result<Duration, String> {
    or_off(values::duration)(text).map(Option::unwrap_or_default)
}

/// How the streams of one upstream are kept alive.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct HeartSettings {
    /// Time between heartbeats: at most half of what the strictest hop on the way allows.
    // Cloudflare cuts after 100 s, nginx after 60 s; half of the shorter one.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration)]
    pub interval: Duration,
    /// Heartbeats at every-tick, or idle-only: none while the engine sends something itself.
    #[arg(long, value_name = "WHEN", default_value = "every-tick", value_parser = cadence)]
    pub cadence: Cadence,
    /// Form of a heartbeat: auto (by client), newline, newline-between, comment, block:TEXT, event:NAME, ping or off.
    #[arg(long, value_name = "FORM", default_value = "auto")]
    pub heartbeat: FormChoice,
    /// Request header by which a client may choose the form, such as x-heartbeat.
    #[arg(long, value_name = "NAME|off", default_value = "off", value_parser = or_off(values::header))]
    pub heartbeat_header: OrOff<HeaderName>,
    /// Heartbeats in NDJSON: known-apis, always or never.
    #[arg(long, value_name = "WHERE", default_value = "known-apis")]
    pub ndjson: Consent,
    /// Heartbeats (blanks) before JSON: known-apis, always or never.
    #[arg(long, value_name = "WHERE", default_value = "never")]
    pub json: Consent,
    /// End a stream that had no content for so long, heartbeats or not.
    // Longer than any prefill seen, shorter than an evening: a dead request must end.
    #[arg(long, value_name = "DURATION|off", default_value = "15m", value_parser = or_off(values::duration))]
    pub max_silence: OrOff<Duration>,
    /// End a stream that lived so long.
    #[arg(long, value_name = "DURATION|off", default_value = "off", value_parser = or_off(values::duration))]
    pub max_lifetime: OrOff<Duration>,
}

impl Default for HeartSettings {
    fn default() -> Self {
        values::defaults()
    }
}
