//! Rules, comparisons and their exit codes, as the user of `heartline load` meets them.
#[allow(dead_code)] // one part of it is used here
mod scripted;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use scripted::Step::{Beat, Hang};
use scripted::{EVENTS, Server, chunk, ok};
use serde_json::Value;
use tokio::process::Command;

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

async fn load(arguments: &[&str]) -> Ended {
    let command = Command::new(env!("CARGO_BIN_EXE_heartline"))
        .arg("load")
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = command.await.expect("the command starts");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A server of streams that each send an event and then heartbeats.
async fn server() -> Server {
    Server::start(vec![vec![ok(EVENTS), chunk("data: one\n\n"), Beat(b"\n", 1_000, 50), Hang]]).await
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("heartline-gates-{}-{name}", std::process::id()))
}

/// Writes a run of five streams to a file; made valid by hand, since a busy machine is not what is tested here.
async fn run_to(name: &str) -> (PathBuf, Value) {
    let server = server().await;
    let path = file(name);
    let url = format!("http://{}/events", server.address);
    let ended = load(&[&url, "--streams", "5", "--hold", "500ms", "--json", path.to_str().unwrap()]).await;
    let mut report: Value =
        serde_json::from_slice(&fs::read(&path).unwrap_or_else(|_| panic!("{}", ended.stderr))).expect("JSON");
    assert_eq!(report["streams"]["held_min"], 5, "{}", ended.stderr);
    report["client"]["valid"] = true.into();
    report["client"]["reasons"] = Value::Array(Vec::new());
    fs::write(&path, report.to_string()).unwrap();
    (path, report)
}

#[tokio::test]
async fn rules_are_kept_or_broken_with_an_exit_code_of_their_own() {
    let (path, _) = run_to("rules.json").await;
    let path = path.to_str().unwrap();
    // What was read from a file is judged as what was just measured.
    let kept = load(&["merge", path, "--threshold", "silence.max<30s", "error-rate<1%", "ttft.p99<20s"]).await;
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert!(kept.stdout.contains("Threshold   kept    silence.max<30s: "), "{}", kept.stdout);

    let broken = load(&["merge", path, "--threshold", "silence.max<30s", "streams.held>=6", "--json", "-"]).await;
    assert_eq!(broken.code, Some(99), "{}", broken.stderr);
    assert_eq!(broken.stderr, "heartline: not kept: streams.held>=6: 5\n");
    let report: Value = serde_json::from_str(&broken.stdout).unwrap();
    assert_eq!(report["thresholds"][1]["passed"], false);

    let unknown = load(&["merge", path, "--threshold", "would-be-cut.60s<1%"]).await;
    assert_eq!(unknown.code, Some(99), "a hold of half a second cannot tell");
    assert_eq!(unknown.stderr, "heartline: not kept: would-be-cut.60s<1%: no sample\n");
    fs::remove_file(path).unwrap();
}

/// Case 23: five of six requests fail, and the exit code is 0.
#[tokio::test]
async fn a_run_full_of_errors_never_passes_even_where_its_rules_allow_them() {
    let refuses = || vec![scripted::Step::Raw(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".into())];
    let mut scripts: Vec<_> = (0..5).map(|_| refuses()).collect();
    scripts.push(vec![ok(EVENTS), chunk("data: one\n\n"), Hang]);
    let server = Server::start(scripts).await;
    let url = format!("http://{}/", server.address);
    for (rule, word) in [("error-rate<=100%", "kept"), ("error-rate<1%", "BROKEN")] {
        let ended = load(&[&url, "--streams", "6", "--hold", "200ms", "--threshold", rule]).await;
        assert_eq!(ended.code, Some(4), "the verdict outranks every rule: {}", ended.stderr);
        assert!(ended.stdout.contains(&format!("Threshold   {word:<7} {rule}: 83.333 %")), "{}", ended.stdout);
        assert!(ended.stderr.contains("5 status_500"), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_rule_that_is_none_is_refused_in_one_line() {
    let ended = load(&["127.0.0.1:1", "--threshold", "silense.max<3s"]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("there is no 'silense.max'; there are silence, "), "{}", ended.stderr);
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
    let ended = load(&["127.0.0.1:1", "--shard", "0/2", "--json", "-", "--threshold", "silence.max<3s"]).await;
    assert_eq!(ended.code, Some(2), "a part of a plan is not what a rule is about");
}

#[tokio::test]
async fn compare_shows_signed_differences_and_fails_when_told_to() {
    let (before, mut report) = run_to("before.json").await;
    let after = file("after.json");
    for point in ["p50", "p90", "p99", "p99_9", "max"] {
        let worse = report["silence_ms"][point].as_f64().unwrap() + 5_000.0;
        report["silence_ms"][point] = worse.into();
    }
    report["settings"]["seed"] = 9.into();
    fs::write(&after, report.to_string()).unwrap();
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());

    let shown = load(&["compare", before, after]).await;
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("Setting     seed: 0 -> 9"), "{}", shown.stdout);
    assert!(shown.stdout.contains("+5000.0"), "{}", shown.stdout);
    let failed = load(&["compare", before, after, "--fail-on-regression"]).await;
    assert_eq!(failed.code, Some(99));
    assert_eq!(failed.stderr, "heartline: worse than before: silence.p50, silence.p99, silence.p99.9, silence.max\n");
    let better = load(&["compare", after, before, "--fail-on-regression"]).await;
    assert_eq!(better.code, Some(0), "{}", better.stderr);

    report["client"]["valid"] = false.into();
    report["client"]["reasons"] = serde_json::json!(["client limit: busy"]);
    fs::write(after, report.to_string()).unwrap();
    let invalid = load(&["compare", before, after, "--fail-on-regression"]).await;
    assert_eq!(invalid.code, Some(4));
    assert_eq!(invalid.stderr, "heartline: the second run is invalid: client limit: busy\n");
    for file in [before, after] {
        fs::remove_file(file).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_no_report_is_named() {
    let path = file("torn.json");
    fs::write(&path, "{\"streams\":").unwrap();
    for arguments in [&["merge", path.to_str().unwrap()][..], &["compare", path.to_str().unwrap(), "/nonexistent"]] {
        let ended = load(arguments).await;
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("torn.json is no report"), "{}", ended.stderr);
    }
    fs::remove_file(path).unwrap();
}
