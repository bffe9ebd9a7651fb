//! A run shared by several processes on this machine: starts them as shards of the one plan, adds up how far they are,
//! and merges what they found.
//!
//! A child writes lines of JSON on standard output: how far it is, and last its report. It ends early when its standard
//! input is closed, so that none outlives this process, however that ends; nobody is signalled by number.

use std::ffi::OsString;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use heartline_cli::load::{self, Allowed, Progress, Report, Shard};
use http::Uri;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::shards::Part;
use crate::exit;

/// A line of a child.
#[derive(Serialize, Deserialize)]
enum Line {
    #[serde(rename = "progress")]
    Progress(Progress),
    #[serde(rename = "report")]
    Report(Box<Report>),
}

/// Runs the plan in `procs` processes, with the arguments of this one, against `url`.
///
/// # Errors
///
/// The exit code and one line, when a process could not run its part; the others are then stopped.
pub(crate) async fn run(
    procs: u32,
    start_at: Option<SystemTime>,
    url: &Uri,
    mut show: impl FnMut(Progress),
    stop: impl Future<Output = ()>,
) -> Result<Report, (u8, String)> {
    let start_at = start_at.unwrap_or_else(|| SystemTime::now() + STARTED_WITHIN);
    let mut ended = JoinSet::new();
    let mut inputs = Vec::new();
    let (tell, mut told) = mpsc::channel(TOLD_MAX);
    for index in 0..procs {
        let shard = Shard { index, of: procs };
        let part = Part { shard, start_at, url: url.clone() };
        let (child, input) = start(&part).map_err(|message| (exit::INTERNAL, message))?;
        inputs.push(input);
        ended.spawn(attend(child, shard, tell.clone()));
    }
    drop(tell);
    let mut stop = std::pin::pin!(stop);
    let mut all = vec![None; procs as usize];
    let (mut reports, mut failed, mut stopped) = (Vec::new(), None, false);
    loop {
        tokio::select! {
            Some((index, progress)) = told.recv() => {
                all[index as usize] = Some(progress);
                if let Some(sum) = sum(&all) {
                    show(sum);
                }
            }
            one = ended.join_next() => match one {
                None => break,
                Some(Ok(Ok(report))) => reports.push((format!("process {}", report.shard.index), report)),
                Some(Ok(Err(error))) => {
                    // The first says why; without its part the others prove nothing.
                    failed.get_or_insert(error);
                    inputs.clear();
                }
                Some(Err(error)) => return Err((exit::INTERNAL, format!("a process was lost sight of: {error}"))),
            },
            () = &mut stop, if !stopped => {
                stopped = true;
                inputs.clear();
            }
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    // Ended by hand, the parts may have ended apart.
    let allowed: &[Allowed] = if stopped { &[Allowed::Apart] } else { &[] };
    load::merge(reports, allowed).map_err(|error| (exit::INVALID_RUN, format!("the run is invalid: {error}")))
}

/// What a child does with how far it is.
pub(crate) fn tell_progress(progress: Progress) {
    tell(&Line::Progress(progress));
}

/// What a child does with its report.
pub(crate) fn tell_report(report: Report) {
    tell(&Line::Report(Box::new(report)));
}

fn tell(line: &Line) {
    let Ok(mut text) = serde_json::to_vec(line) else { return };
    text.push(b'\n');
    // A parent that is gone has closed standard input too, which ends the run.
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
}

/// Is ready once standard input is at its end: what ends a child early.
pub(crate) async fn input_closed() {
    let (closed, is_closed) = oneshot::channel();
    // A thread of its own, since a runtime waits for its blocking tasks and this one may never return.
    let watching = std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = closed.send(());
    });
    match watching {
        Ok(_) => drop(is_closed.await),
        Err(_) => std::future::pending().await,
    }
}

/// Starts one child and returns the end of its standard input that keeps it running.
fn start(part: &Part) -> Result<(Child, Option<ChildStdin>), String> {
    let program = std::env::current_exe().map_err(|error| format!("this program's file is unknown: {error}"))?;
    let mut child = Command::new(program)
        .args(arguments(part, std::env::args_os().skip(1)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own group: Ctrl-C is for this process, which passes it on.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("process {} could not be started: {error}", part.shard.index))?;
    let input = child.stdin.take();
    Ok((child, input))
}

/// The arguments of this process, with the part after the command's name.
fn arguments(part: &Part, own: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = Vec::new();
    for argument in own {
        let is_command = arguments.is_empty();
        arguments.push(argument);
        if is_command {
            arguments.extend(["--part".into(), part.to_string().into()]);
        }
    }
    arguments
}

/// Reads what one child says to its end.
async fn attend(mut child: Child, shard: Shard, told: mpsc::Sender<(u32, Progress)>) -> Result<Report, (u8, String)> {
    let lost = |error: std::io::Error| (exit::INTERNAL, format!("process {} cannot be heard: {error}", shard.index));
    let mut errors = child.stderr.take();
    let errors = tokio::spawn(async move {
        let mut text = Vec::new();
        if let Some(errors) = &mut errors {
            let _ = errors.take(ERRORS_MAX).read_to_end(&mut text).await;
            // So that it is never stuck in a write.
            let _ = tokio::io::copy(errors, &mut tokio::io::sink()).await;
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut report = None;
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await.map_err(lost)? {
            match serde_json::from_str(&line) {
                // Nobody listens only when the run has failed.
                Ok(Line::Progress(progress)) => drop(told.send((shard.index, progress)).await),
                Ok(Line::Report(found)) => report = Some(*found),
                Err(_) => {}
            }
        }
    }
    let status = child.wait().await.map_err(lost)?;
    if let Some(report) = report {
        return Ok(report);
    }
    let errors = errors.await.unwrap_or_default();
    let said = errors.lines().last().unwrap_or("it said nothing");
    let said = said.strip_prefix("heartline: ").unwrap_or(said);
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code != exit::PASS);
    Err((code.unwrap_or(exit::INTERNAL), format!("process {} of {}: {said}", shard.index, shard.of)))
}

/// Adds up how far all are; `None` until each has said so. The phase is that of the last.
fn sum(all: &[Option<Progress>]) -> Option<Progress> {
    let mut sum = (*all.first()?)?;
    for progress in &all[1..] {
        sum.add(&(*progress)?);
    }
    Some(sum)
}

/// Starting a process takes some hundredths of a second; a machine that compiles meanwhile needs longer.
const STARTED_WITHIN: Duration = Duration::from_millis(1_500);

/// Lines of progress that wait to be added up; a child that is ahead waits with its next one.
const TOLD_MAX: usize = 64;

/// More than this nobody reads of an error.
const ERRORS_MAX: u64 = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_the_arguments_of_its_parent_and_its_part() {
        let part: Part = "1/2 1796126400 http://127.0.0.1:1/".parse().unwrap();
        let own = ["load", "--procs", "2", "--threshold", "a<1s", "b<1s"].map(OsString::from);
        let arguments = arguments(&part, own.into_iter());
        assert_eq!(arguments[..2], ["load", "--part"]);
        assert_eq!(arguments[2].to_str().unwrap().parse(), Ok(part));
        assert_eq!(arguments[3..], ["--procs", "2", "--threshold", "a<1s", "b<1s"]);
    }
}
