//! `heartline load`: hold many streams, report the silence each one saw.

mod engine;
mod progress;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use heartline::load::{self, LoadError, Report, Settings, Shape, Targets};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Uri};

use crate::interrupt::interrupted;
use crate::resolve::Host;
use crate::{args, exit, json};

/// Hold many streams and report the silence each one saw.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  heartline load --streams 9k --interval 1s --hold 20s
      9,000 streams against an engine of its own that sends nothing but heartbeats
  heartline load http://127.0.0.1:8080/v1/chat/completions --streams 500 --hold 2m --body @chat.json
      an engine or a gateway of yours, asked with POST
  heartline load http://127.0.0.1:8900/events --header 'authorization: Bearer abc' --json run.json
      a header on every request, the report in a file

Only the hold phase is judged. Silences count from a stream's last byte, latencies from the time
a stream was meant to begin. Ctrl-C ends the run and still writes the report.

Exit codes:
  0  all streams were held and the client kept up      1  an unexpected failure of heartline
  2  the arguments cannot be used                      3  a limit of this host is in the way
  4  the run is invalid, and its verdict says why      5  interrupted")]
pub(crate) struct LoadArgs {
    /// Where the streams come from [default: an engine started for this run].
    #[arg(value_name = "URL", value_parser = url)]
    url: Option<Uri>,
    /// Streams to hold.
    #[arg(long, value_name = "COUNT", default_value = "10k", value_parser = args::count)]
    streams: usize,
    /// Connections to begin each second.
    #[arg(long, value_name = "RATE", default_value = "2k/s", value_parser = args::rate)]
    rate: u32,
    /// How long all of them are held.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = args::duration)]
    hold: Duration,
    /// How long the last streams may take to open before the hold phase begins.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = args::duration)]
    open_within: Duration,
    /// Time between heartbeats: the started engine's own, or what the URL is expected to send.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = args::duration)]
    interval: Duration,
    /// Method of every request [default: GET, with a body POST].
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    /// A header of every request, as 'name: value'; may be given several times.
    #[arg(long = "header", value_name = "HEADER", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Body of every request, or a file with it as '@FILE'; JSON unless a header says otherwise.
    #[arg(long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// Write the report as JSON to a file, or to standard output with '-' (then nothing else goes there).
    #[arg(long, value_name = "FILE|-")]
    json: Option<json::Destination>,
}

/// Runs the load, prints the report and judges the run.
pub(crate) async fn run(args: LoadArgs, host: &Host) -> ExitCode {
    match hold(&args, host).await {
        Ok(report) => conclude(&report, args.json.as_ref()),
        Err((code, message)) => exit::fail(code, &message),
    }
}

/// Checks, starts an engine where none is given, runs, stops it and writes the JSON.
async fn hold(args: &LoadArgs, host: &Host) -> Result<Report, (u8, String)> {
    let usage = |message| (exit::USAGE, message);
    let body = args.body.as_deref().map(body).transpose().map_err(usage)?;
    let mut stop = std::pin::pin!(interrupted());
    let started = match args.url {
        Some(_) => None,
        None => tokio::select! {
            started = engine::Engine::start(args.interval) => Some(started.map_err(|message| (exit::INTERNAL, message))?),
            () = &mut stop => return Err((exit::INTERRUPTED, "interrupted before the engine was up".to_owned())),
        },
    };
    // One of the two is there: without a URL an engine was started.
    let url = args.url.clone().or_else(|| started.as_ref().map(|engine| engine.url().clone())).unwrap_or_default();
    let writer = args.json.as_ref().map(json::Destination::open).transpose().map_err(usage)?;

    let bar = progress::Bar::new(host, args.streams, args.hold);
    let ended = load::run_until(settings(args, url, body), |progress| bar.show(progress), stop).await;
    bar.clear();
    if let Some(engine) = started {
        engine.stop().await;
    }
    let report = ended.map_err(|error| (code_of(&error), error.to_string()))?;
    if let Some(writer) = writer {
        writer.write(&report).map_err(|message| (exit::INTERNAL, message))?;
    }
    Ok(report)
}

fn settings(args: &LoadArgs, url: Uri, body: Option<Bytes>) -> Settings {
    let mut headers = HeaderMap::new();
    for (name, value) in &args.headers {
        headers.append(name.clone(), value.clone());
    }
    if body.is_some() {
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
    }
    let unnamed = if body.is_some() { Method::POST } else { Method::GET };
    let mut settings = Settings::new(url);
    settings.method = args.method.clone().unwrap_or(unnamed);
    settings.headers = headers;
    settings.targets = Targets::same(body.unwrap_or_default());
    settings.streams = args.streams;
    settings.rate_per_second = args.rate;
    settings.shape = Shape::Hold(args.hold);
    settings.interval = args.interval;
    settings.open_within = args.open_within;
    settings
}

/// Prints the report, unless standard output belongs to the JSON; returns the exit code.
fn conclude(report: &Report, json: Option<&json::Destination>) -> ExitCode {
    if !json.is_some_and(json::Destination::is_stdout) {
        // A reader that went away has seen what it wanted.
        let _ = writeln!(std::io::stdout(), "{report}");
    }
    if report.interrupted {
        return exit::fail(exit::INTERRUPTED, &report.client.reasons.join("; "));
    }
    if !report.client.valid {
        return exit::fail(exit::INVALID_RUN, &format!("the run is invalid: {}", report.client.reasons.join("; ")));
    }
    ExitCode::from(exit::PASS)
}

fn code_of(error: &LoadError) -> u8 {
    if error.is_config() {
        exit::USAGE
    } else if error.is_host_limit() {
        exit::HOST_LIMIT
    } else {
        exit::INTERNAL
    }
}

/// Parses a URL; `http://` may be left out.
fn url(text: &str) -> Result<Uri, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    whole.parse().map_err(|error| format!("{error}; write for example http://127.0.0.1:8900/events"))
}

/// Parses `name: value`.
fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("no colon; write 'name: value'")?;
    let name = name.trim().parse().map_err(|_| format!("'{}' is no header name; write 'name: value'", name.trim()))?;
    let value = value.trim().parse().map_err(|_| "the value holds a control character".to_owned())?;
    Ok((name, value))
}

/// Reads the body, from a file after `@`.
fn body(text: &str) -> Result<Bytes, String> {
    match text.strip_prefix('@') {
        None => Ok(Bytes::from(text.to_owned())),
        Some(path) => std::fs::read(path).map(Bytes::from).map_err(|error| format!("{path} cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        load: LoadArgs,
    }

    fn parsed(line: &[&str]) -> Settings {
        let args = Cli::try_parse_from([&["load"], line].concat()).unwrap().load;
        let body = args.body.as_deref().map(body).transpose().unwrap();
        let url = args.url.clone().unwrap_or_default();
        settings(&args, url, body)
    }

    #[test]
    fn the_defaults_are_ten_thousand_streams_for_a_minute() {
        let settings = parsed(&[]);
        assert_eq!((settings.streams, settings.rate_per_second), (10_000, 2_000));
        assert_eq!(settings.shape, Shape::Hold(Duration::from_secs(60)));
        assert_eq!(settings.interval, Duration::from_secs(30));
        assert_eq!(settings.method, Method::GET);
    }

    #[test]
    fn a_body_is_posted_as_json_unless_told_otherwise() {
        let settings = parsed(&["127.0.0.1:80/v1", "--body", "{}"]);
        assert_eq!(settings.url, "http://127.0.0.1:80/v1");
        assert_eq!(settings.method, Method::POST);
        assert_eq!(settings.headers[CONTENT_TYPE], "application/json");
        let settings = parsed(&["x", "--body", "a", "--header", "Content-Type: text/plain", "--method", "PUT"]);
        assert_eq!(settings.method, Method::PUT);
        assert_eq!(settings.headers[CONTENT_TYPE], "text/plain");
    }

    #[test]
    fn what_does_not_parse_says_what_to_write() {
        assert!(header("authorization").unwrap_err().contains("'name: value'"));
        assert!(header("a b: c").unwrap_err().contains("'a b'"));
        assert!(url("http://[").unwrap_err().contains("http://127.0.0.1:8900/events"));
        assert!(body("@/nonexistent").unwrap_err().starts_with("/nonexistent cannot be read: "));
    }
}
