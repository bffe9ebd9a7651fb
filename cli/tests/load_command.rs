//! `heartline load` as its user runs it: an engine of its own, the report, the exit codes.
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn load(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heartline"))
        .arg("load")
        .args(arguments)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An address where nobody listens.
fn nowhere() -> String {
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}/", port.local_addr().expect("its address"))
}

#[test]
fn without_a_url_it_holds_streams_of_an_engine_of_its_own() {
    let output = load(&["--streams", "40", "--interval", "500ms", "--hold", "2s", "--json", "-"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(report["streams"]["requested"], 40);
    assert_eq!(report["streams"]["held_min"], 40, "{report}");
    assert_eq!(report["streams"]["failed"], serde_json::json!({}));
    assert!(report["heartbeats"]["per_stream"].as_f64() >= Some(2.0), "{report}");
    assert!(report["silence_ms"]["p50"].as_f64() < Some(1_500.0), "{report}");
    assert_eq!(report["events"]["total"], 0);
    // A machine that stood still makes the run invalid, and then the exit code says so.
    let valid = report["client"]["valid"] == true;
    assert_eq!(output.status.code(), Some(if valid { 0 } else { 4 }), "{report}");
}

#[test]
fn a_server_that_is_not_there_makes_the_run_invalid_in_one_line() {
    let file = std::env::temp_dir().join(format!("heartline-load-{}.json", std::process::id()));
    let name = file.to_str().expect("a path in UTF-8");
    let output = load(&[&nowhere(), "--streams", "5", "--hold", "1h", "--json", name]);
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{line}");
    assert_eq!(line.trim_end(), "heartline: the run is invalid: 5 of 5 streams did not open: 5 connect_refused");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Verdict     INVALID"), "the summary is for people");
    let report: Value = serde_json::from_slice(&std::fs::read(&file).expect("the report")).expect("JSON");
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!(report["streams"]["failed"]["connect_refused"], 5);
}

#[test]
fn more_streams_than_this_host_can_hold_are_refused_with_the_fix() {
    let output = load(&[&nowhere(), "--streams", "2m"]);
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{line}");
    assert!(line.contains("--streams "), "{line}");
    assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_starts() {
    for (arguments, words) in [
        (&["ftp://example.org/"][..], "http://"),
        (&["127.0.0.1:1", "--hold", "0s"], "longer than 0s"),
        (&["127.0.0.1:1", "--header", "novalue"], "name: value"),
        (&["127.0.0.1:1", "--body", "@/nonexistent"], "/nonexistent cannot be read"),
        (&["127.0.0.1:1", "--json", "/nonexistent/report.json"], "cannot be written"),
        (&["--streams", "0"], "at least 1"),
    ] {
        let output = load(arguments);
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        assert!(line.starts_with("heartline: ") && line.contains(words), "{arguments:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
        assert!(output.stdout.is_empty());
    }
}
