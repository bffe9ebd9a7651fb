//! What the proxy costs on the way of a token, beside nginx, HAProxy and no proxy at all. Run by
//! `cargo bench --bench proxy`.
//!
//! Every variant has an engine, a client and, except the direct one, a proxy, each in a process of its own; all are open at
//! once with all of their streams, and only one's engine writes at a time, in short windows that take turns. So whatever
//! else the machine does meets all of them alike, and the figures to look at are ratios of medians. Then live tokens among
//! idle streams, with heartbeats and without, and a soak in which clients come and go.
//!
//! Flags: `--streams N,…`, `--rate EVENTS_A_SECOND`, `--rounds N`, `--window SECONDS`, `--live N`, `--requests N` (soak),
//! `--only NAME,…` (direct, nginx, haproxy, heartline, sweeps, soak), `--json FILE`, `--quick`. nginx and HAProxy are
//! skipped where they are not installed. `HEARTLINE_OTHER=PATH` puts another build beside this one. Started without cargo's `--bench` flag it runs quick.

#![expect(clippy::disallowed_types, reason = "a bench times real threads and sockets by the wall clock")]

use std::process::ExitCode;

#[path = "proxy/churn.rs"]
mod churn;
#[path = "proxy/client.rs"]
mod client;
#[path = "proxy/control.rs"]
mod control;
#[path = "proxy/engine.rs"]
mod engine;
#[path = "proxy/lane.rs"]
mod lane;
#[path = "proxy/process.rs"]
mod process;
#[path = "proxy/report.rs"]
mod report;
#[path = "proxy/rounds.rs"]
mod rounds;
#[path = "proxy/settings.rs"]
mod settings;
#[path = "proxy/soak.rs"]
mod soak;
#[path = "proxy/under_test.rs"]
mod under_test;

/// Names the part a child process plays: `engine`, `client` or `churn`.
const ROLE: &str = "HEARTLINE_PROXY_BENCH_ROLE";

/// Exit code when the host's limits do not allow the run.
const HOST_LIMIT: u8 = 3;

/// Exit code when streams were missing, so that the figures mean nothing.
const INVALID: u8 = 4;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let nofile = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(0);
    match std::env::var(ROLE).as_deref() {
        Ok("engine") => return engine::run(&arguments),
        Ok("client") => return client::run(&arguments),
        Ok("churn") => return churn::run(&arguments),
        _ => {}
    }
    let settings = match settings::Settings::parse(&arguments) {
        Ok(settings) => settings,
        Err(problem) => {
            eprintln!("proxy: {problem}");
            return ExitCode::from(2);
        }
    };
    let needed = settings.files();
    if nofile < needed {
        eprintln!("proxy: {needed} open files are needed and the limit is {nofile}: raise it or pass --streams");
        return ExitCode::from(HOST_LIMIT);
    }
    match rounds::run(&settings) {
        Ok(figures) => {
            print!("{}", report::table(&settings, &figures));
            match report::write_json(&settings, &figures) {
                Ok(path) => println!("written: {}", path.display()),
                Err(problem) => {
                    eprintln!("proxy: the figures could not be written: {problem}");
                    return ExitCode::FAILURE;
                }
            }
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("proxy: {problem}");
            ExitCode::from(INVALID)
        }
    }
}
