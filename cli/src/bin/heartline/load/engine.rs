//! The engine that `heartline load` starts when it is given no URL: `heartline sim` as a process of its own, so that each
//! side has the whole limit on open files, and the server's CPU time is not the client's.

use std::process::Stdio;
use std::time::Duration;

use heartline::api::Api;
use heartline_cli::load::Shape;
use http::Uri;
use http::uri::PathAndQuery;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// A running `heartline sim` with heartbeats. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Engine {
    child: Child,
    url: Uri,
}

impl Engine {
    /// Starts the engine and waits until it listens.
    ///
    /// # Errors
    ///
    /// One line, when it cannot be started or does not come up in time.
    pub(crate) async fn start(interval: Duration, script: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("the engine's program is unknown: {error}"))?;
        let mut child = Command::new(program)
            .args(["sim", "--listen", "127.0.0.1:0", "--script", script, "--heartbeat", "newline"])
            .arg("--interval")
            .arg(humantime::format_duration(interval).to_string().replace(' ', ""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Its own group: Ctrl-C is for the load, which stops the engine after the report.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("the engine could not be started: {error}"))?;
        let Some(stdout) = child.stdout.take() else {
            return Err("the engine has no standard output".to_owned());
        };
        let url = timeout(LISTENS_WITHIN, listening(stdout))
            .await
            .map_err(|_| format!("the engine did not listen within {} s", LISTENS_WITHIN.as_secs()))?
            .ok_or("the engine ended before it listened; what it said is above")?;
        let url = url.parse().map_err(|error| format!("the engine listens on {url}, which is no URL: {error}"))?;
        Ok(Self { child, url })
    }

    /// Returns where it is, for streams of an API, or where plain ones are.
    pub(crate) fn url(&self, api: Option<Api>) -> Uri {
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::from_static(if api.is_some() { "/" } else { "/events" }));
        // Only the path is another one.
        Uri::from_parts(parts).unwrap_or_else(|_| self.url.clone())
    }

    /// Stops it and waits until it is gone.
    pub(crate) async fn stop(mut self) {
        // It may have ended by itself; either way it is gone after this.
        let _ = self.child.kill().await;
    }
}

/// Returns the script that suits a shape: held streams get headers and then nothing but heartbeats; those of a loop must
/// end.
pub(crate) fn script_for(shape: Shape) -> &'static str {
    if let Shape::Hold(_) = shape { "hang" } else { "steady" }
}

/// Reads up to the line that says where the engine listens, and goes on reading so that it can go on writing.
async fn listening(stdout: ChildStdout) -> Option<String> {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some((_, url)) = line.split_once("listening on ") {
            let url = url.split_whitespace().next()?.to_owned();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Some(url);
        }
    }
    None
}

/// A process that only binds a socket is up in milliseconds; a machine that compiles meanwhile needs longer.
const LISTENS_WITHIN: Duration = Duration::from_secs(15);
