//! The 10k proof: what one heartbeat costs when thousands of real sockets hold it, run by `cargo bench --bench streams`.
//!
//! One run compares, in interleaved rounds, four servers that write one byte a second into every stream: a bare `send(2)`
//! loop (the floor), axum's `Sse` with `KeepAlive`, one tokio `Sleep` per stream, and heartline. Server and client are
//! processes of their own: this binary starts itself again with [`ROLE`] set. Only one pair lives at a time, so that no
//! server pays for another's caches; the order turns with every round.
//!
//! Flags: `--streams N`, `--rounds N`, `--window SECONDS`, `--live N`, `--workers N`, `--only NAME,…`, `--json FILE`, `--quick`.
//! Started without cargo's `--bench` flag (as `cargo test --all-targets` does) it runs quick.

#![expect(clippy::disallowed_types, reason = "a bench times real threads and sockets by the wall clock")]

use std::process::ExitCode;

#[path = "streams/client.rs"]
mod client;
#[path = "streams/control.rs"]
mod control;
#[path = "streams/floor.rs"]
mod floor;
#[path = "streams/pair.rs"]
mod pair;
#[path = "streams/report.rs"]
mod report;
#[path = "streams/rounds.rs"]
mod rounds;
#[path = "streams/server.rs"]
mod server;
#[path = "streams/settings.rs"]
mod settings;

/// Names the part a child process plays: `server` or `client`.
const ROLE: &str = "HEARTLINE_STREAMS_ROLE";

/// Exit code when the host's limits do not allow the run.
const HOST_LIMIT: u8 = 3;

/// Exit code when streams were missing, so that the figures mean nothing.
const INVALID: u8 = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let nofile = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(0);
    match std::env::var(ROLE).as_deref() {
        Ok("server") => return server::run(&arguments),
        Ok("client") => return client::run(&arguments),
        _ => {}
    }
    let settings = match settings::Settings::parse(&arguments) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("streams: {problem}");
            return ExitCode::from(2);
        }
    };
    let needed = settings.streams as u64 + settings::FILES_SPARE;
    if nofile < needed {
        eprintln!(
            "streams: {needed} open files are needed and the limit is {nofile}: raise it (ulimit -n) or pass --streams"
        );
        return ExitCode::from(HOST_LIMIT);
    }
    match rounds::run(&settings) {
        Ok(figures) => {
            print!("{}", report::table(&settings, &figures));
            match report::write_json(&settings, &figures) {
                Ok(path) => println!("written: {}", path.display()),
                Err(problem) => {
                    eprintln!("streams: the figures could not be written: {problem}");
                    return ExitCode::FAILURE;
                }
            }
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("streams: {problem}");
            ExitCode::from(INVALID)
        }
    }
}
