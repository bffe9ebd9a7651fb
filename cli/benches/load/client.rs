//! One measured run of `heartline_cli::load`, in a process of its own so that its memory is nobody else's.

use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use heartline_cli::load::{self, Protocol, Report, Shape};
use serde::{Deserialize, Serialize};

use crate::ROLE;
use crate::settings::Settings;

/// What a child is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) url: String,
    streams: usize,
    streams_per_connection: Option<usize>,
    rate: u32,
    hold_ms: u64,
    workers: Option<usize>,
}

/// What it found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) rss_bytes: u64,
    cpu_percent: f64,
    events_per_second: f64,
    heartbeats_per_second: f64,
    held: u64,
    silence_ms_p99_9: f64,
    gap_ms_p50: f64,
    reasons: Vec<String>,
}

/// HTTP/2 as the command speaks it when nothing else is said.
pub(crate) fn http2() -> Protocol {
    Protocol::Http2 { streams_per_connection: 100 }
}

impl Task {
    /// Reads events on one thread.
    pub(crate) fn flood(protocol: Protocol, url: &str, settings: &Settings) -> Self {
        let task = Self::silent(protocol, url, settings.connections);
        Self { hold_ms: settings.seconds * 1_000, workers: Some(1), ..task }
    }

    /// Holds streams that say nothing but a heartbeat a second.
    pub(crate) fn silent(protocol: Protocol, url: &str, streams: usize) -> Self {
        let streams_per_connection = match protocol {
            Protocol::Http2 { streams_per_connection } => Some(streams_per_connection),
            _ => None,
        };
        Self {
            url: url.to_owned(),
            streams,
            streams_per_connection,
            rate: if streams > 20_000 { 5_000 } else { 2_000 },
            hold_ms: 5_000,
            workers: None,
        }
    }
}

impl Figures {
    /// Lets a child do the task.
    pub(crate) fn of_child(task: &Task) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let task = serde_json::to_string(task).map_err(|error| error.to_string())?;
        let output = Command::new(own)
            .env(ROLE, "client")
            .arg(task)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("a client cannot be started: {error}"))?;
        serde_json::from_slice(&output.stdout).map_err(|_| "a client ended without figures; see above".to_owned())
    }

    /// Says how many events there were.
    pub(crate) fn events_line(&self) -> String {
        let cores = self.cpu_percent / 100.0;
        let per_core = self.events_per_second / cores;
        format!(
            "{:.0} events/s by {cores:.2} cores: {per_core:.0} events/s per core, {:.2} µs each, {:.1} ms apart{}",
            self.events_per_second,
            1e6 / per_core,
            self.gap_ms_p50,
            self.doubts()
        )
    }

    /// Says what heartbeats cost.
    pub(crate) fn heartbeats_line(&self) -> String {
        let micros = self.cpu_percent / 100.0 / self.heartbeats_per_second * 1e6;
        format!(
            "{} held, {:.0} heartbeats/s, {micros:.2} µs each, {} MB resident, silence p99.9 {:.0} ms{}",
            self.held,
            self.heartbeats_per_second,
            self.rss_bytes >> 20,
            self.silence_ms_p99_9,
            self.doubts()
        )
    }

    fn doubts(&self) -> String {
        if self.reasons.is_empty() { String::new() } else { format!(" ({})", self.reasons.join("; ")) }
    }
}

/// Does the task of the first argument and prints what it found.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let Some(task) = arguments.first().and_then(|text| serde_json::from_str::<Task>(text).ok()) else {
        eprintln!("load: the client was given no task");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut rss_bytes = 0;
    let report = runtime.block_on(load::run(settings(&task), |_| rss_bytes = rss_bytes.max(resident_bytes())));
    match report {
        Ok(report) => {
            println!("{}", serde_json::to_string(&figures(&task, &report, rss_bytes)).expect("plain figures"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn settings(task: &Task) -> load::Settings {
    let mut settings = load::Settings::new(task.url.parse().expect("the parent's own URL"));
    settings.streams = task.streams;
    settings.rate_per_second = task.rate;
    settings.shape = Shape::Hold(Duration::from_millis(task.hold_ms));
    settings.interval = Duration::from_secs(1);
    settings.workers = task.workers;
    if let Some(streams_per_connection) = task.streams_per_connection {
        settings.protocol = Protocol::Http2 { streams_per_connection };
    }
    settings
}

fn figures(task: &Task, report: &Report, rss_bytes: u64) -> Figures {
    Figures {
        rss_bytes,
        cpu_percent: report.client.cpu_percent,
        events_per_second: report.events.per_second,
        heartbeats_per_second: report.heartbeats.total as f64 / (task.hold_ms as f64 / 1e3),
        held: report.streams.held_min,
        silence_ms_p99_9: report.silence_ms.map_or(0.0, |silence| silence.p99_9),
        gap_ms_p50: report.gap_ms.map_or(0.0, |gap| gap.p50),
        reasons: report.client.reasons.clone(),
    }
}

/// Returns this process's resident memory; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1_024
}
