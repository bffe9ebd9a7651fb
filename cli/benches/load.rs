//! What the load harness itself can do, run by `cargo bench --bench load`: events a second per core of the
//! client, memory per stream, and how its cost grows with the streams.
//!
//! Three sizes are measured, each by `heartline_cli::load` in a process of its own with a server in another: this binary
//! starts itself again with [`ROLE`] set. The client's CPU time is that of its reading threads, so the server's share of
//! the machine does not count.
//!
//! Flags: `--seconds N`, `--connections N`, `--pace N` (events a second on each), `--memory N`, `--growth N,N,…`, `--json FILE`, `--quick`. Started without
//! cargo's `--bench` flag (as `cargo test --all-targets` does) it runs quick.

#[path = "load/client.rs"]
mod client;
#[path = "load/flood.rs"]
mod flood;
#[path = "load/settings.rs"]
mod settings;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};

use client::{Figures, Task};
use heartline_cli::load::Protocol;
use serde_json::{Value, json};
use settings::Settings;

/// Names the part a child process plays: `flood` or `client`.
const ROLE: &str = "HEARTLINE_LOAD_ROLE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // What does not fit after a failed attempt is refused by the run itself.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    match std::env::var(ROLE).as_deref() {
        Ok("flood") => return flood::run(&arguments),
        Ok("client") => return client::run(&arguments),
        _ => {}
    }
    let measured = Settings::parse(&arguments).and_then(|settings| {
        let figures = measure(&settings)?;
        if let Some(folder) = settings.json.parent() {
            std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        std::fs::write(&settings.json, format!("{figures:#}\n"))
            .map_err(|error| format!("{} cannot be written: {error}", settings.json.display()))?;
        println!("written: {}", settings.json.display());
        Ok(())
    });
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("load: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all three and prints each as it comes.
fn measure(settings: &Settings) -> Result<Value, String> {
    let mut events = Vec::new();
    println!(
        "events, each in a segment of its own, {} a second on each of {} connections, one reading thread",
        settings.pace, settings.connections
    );
    let protocol = Protocol::Http1;
    let flood = Server::flood(settings)?;
    let task = Task::flood(protocol, &flood.url, settings);
    let figures = Figures::of_child(&task)?;
    println!("  {:<6} {}", name(protocol), figures.events_line());
    events.push(json!({"protocol": name(protocol), "events": figures}));
    drop(flood);

    println!("memory of {} silent streams over that of one", settings.memory);
    let mut memory = Vec::new();
    for protocol in [Protocol::Http1, client::http2()] {
        let mut one = Task::silent(protocol, "", 1);
        let mut many = Task::silent(protocol, "", settings.memory);
        let engine = Server::engine()?;
        one.url.clone_from(&engine.url);
        many.url.clone_from(&engine.url);
        let (one, many) = (Figures::of_child(&one)?, Figures::of_child(&many)?);
        let per_stream = many.rss_bytes.saturating_sub(one.rss_bytes) / settings.memory as u64;
        println!("  {:<6} {per_stream} B a stream resident", name(protocol));
        memory
            .push(json!({"protocol": name(protocol), "streams": settings.memory, "rss_bytes_per_stream": per_stream}));
    }

    println!("growth, a heartbeat a second and stream over HTTP/2");
    let mut growth = Vec::new();
    for &streams in &settings.growth {
        let engine = Server::engine()?;
        let figures = Figures::of_child(&Task::silent(client::http2(), &engine.url, streams))?;
        println!("  {streams:>7} streams  {}", figures.heartbeats_line());
        growth.push(json!({"streams": streams, "figures": figures}));
    }
    Ok(json!({"events": events, "memory": memory, "growth": growth}))
}

fn name(protocol: Protocol) -> &'static str {
    if protocol == Protocol::Http1 { "http1" } else { "http2" }
}

/// A server in a process of its own; killed when dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts the server that sends events at an even pace.
    fn flood(settings: &Settings) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command.env(ROLE, "flood").args([settings.connections.to_string(), settings.pace.to_string()]);
        Self::start(&mut command)
    }

    /// Starts the scripted engine, silent but for a heartbeat a second.
    fn engine() -> Result<Self, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
        command.args([
            "sim",
            "--listen",
            "127.0.0.1:0",
            "--script",
            "hang",
            "--heartbeat",
            "newline",
            "--interval",
            "1s",
        ]);
        let mut server = Self::start(&mut command)?;
        server.url.push_str("/events");
        Ok(server)
    }

    fn start(command: &mut Command) -> Result<Self, String> {
        let mut child =
            command.stdout(Stdio::piped()).spawn().map_err(|error| format!("a server cannot be started: {error}"))?;
        let stdout = child.stdout.take().ok_or("a server has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let url = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, url) = line.split_once("listening on ")?;
            url.split_whitespace().next().map(|url| url.trim_end_matches('/').to_owned())
        });
        let server = Self { child, url: url.unwrap_or_default() };
        if server.url.is_empty() { Err("a server ended before it listened".to_owned()) } else { Ok(server) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; either way it is after this.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
