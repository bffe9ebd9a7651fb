//! The built `heartline` command, run as its user runs it: arguments, output, exit codes.
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

/// Runs the command with these arguments, without a terminal, to its end.
fn heartline(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the command starts")
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("standard output is text")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("standard error is text")
}

/// Asserts that the command was refused with `code`, one line on standard error, and nothing on standard output.
#[track_caller]
fn assert_refused(output: &Output, code: i32, words: &str) {
    let line = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert!(line.starts_with("heartline: ") && line.contains(words), "{line}");
    assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    assert_eq!(stdout(output), "");
}

#[test]
fn help_has_examples_for_every_command() {
    for arguments in
        [&["--help"][..], &["demo", "--help"], &["sim", "--help"], &["load", "--help"], &["completions", "--help"]]
    {
        let output = heartline(arguments);
        let help = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(help.contains("Examples:\n  heartline "), "{help}");
        assert!(!help.contains('\u{1b}'), "no colours where there is no terminal");
        let width = help.lines().map(|line| line.chars().count()).max();
        assert!(width <= Some(100), "{width:?}: {help}");
    }
}

#[test]
fn the_top_level_help_names_every_exit_code() {
    let output = heartline(&["--help"]);
    for code in ["0", "1", "2", "3", "4", "5", "99"] {
        let named = stdout(&output)
            .split("Exit codes:")
            .nth(1)
            .is_some_and(|codes| codes.split_whitespace().any(|word| word == code));
        assert!(named, "{code}");
    }
}

#[test]
fn the_version_is_the_one_of_the_package() {
    let output = heartline(&["--version"]);
    assert_eq!(stdout(&output), concat!("heartline ", env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn no_command_at_all_is_answered_with_the_help() {
    let output = heartline(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Usage: heartline <COMMAND>"));
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    for (arguments, words) in [
        (&["dmeo"][..], "'dmeo'"),
        (&["demo", "--strams", "3"], "'--strams' found; tip: a similar argument exists: '--streams'"),
        (&["demo", "--streams", "0"], "write at least 1"),
        (&["demo", "--streams", "some"], "write for example 200 or 10k"),
        (&["demo", "--wait", "30"], "--wait: the unit of \"30\" is missing: write 30s, 30ms or 30m"),
        (&["demo", "--interval=-1s"], "--interval: \"-1s\" is negative: write 1s"),
        (&["demo", "extra"], "'extra'"),
        (&["completions"], "<SHELL>"),
        (&["completions", "cmd"], "'cmd'"),
    ] {
        assert_refused(&heartline(arguments), 2, words);
    }
}

#[test]
fn a_demo_that_can_show_nothing_is_refused_before_it_starts() {
    for (arguments, words) in [
        (&["demo", "--interval", "3s"][..], "make the interval shorter"),
        (&["demo", "--interval", "0s"], "interval is 0"),
        (&["demo", "--interval", "99ms"], "below the minimum of 100ms"),
        (&["demo", "--wait", "3s"], "make the wait longer"),
        (&["demo", "--wait", "1h"], "too long to watch"),
        (&["demo", "--streams", "1m"], "use 'heartline load' to hold more"),
        (&["demo", "--json", "/nonexistent/demo.json"], "/nonexistent/demo.json cannot be written"),
        (&["demo", "--json", ""], "the name is empty"),
    ] {
        assert_refused(&heartline(arguments), 2, words);
    }
}

#[test]
fn a_log_filter_that_does_not_parse_is_refused() {
    let output =
        command(&["completions", "bash"]).env("RUST_LOG", "heartline=loud=very").output().expect("the command starts");
    assert_refused(&output, 2, "RUST_LOG");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = heartline(&["sim", "--listen", &address]);
    let line = stderr(&output);
    assert_ne!(output.status.code(), Some(0), "{line}");
    assert!(line.contains(&address) && line.contains("in use"), "{line}");
    assert_eq!(line.trim_end().lines().count(), 1, "{line}");
}

#[test]
fn completions_know_every_command_in_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = heartline(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        for word in ["demo", "sim", "load", "completions", "cut-after"] {
            assert!(stdout(&output).contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for arguments in [&["--help"][..], &["completions", "bash"]] {
        let mut child =
            command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the command ends");
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    }
}

#[test]
fn the_demo_shows_the_problem_and_the_cure() {
    let output = heartline(&[
        "demo",
        "--streams",
        "20",
        "--wait",
        "900ms",
        "--cut-after",
        "400ms",
        "--interval",
        "100ms",
        "--json",
        "-",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(stderr(&output), "", "no progress where there is no terminal");
    assert_eq!(stdout(&output).trim_end().lines().count(), 1);

    let report: serde_json::Value = serde_json::from_str(stdout(&output)).expect("JSON alone");
    assert_eq!(report["streams"], 20);
    assert_eq!(report["cut_after_ms"], 400);
    assert_eq!(report["interval_ms"], 100);
    assert!(report["without"]["cut"].as_u64() > Some(0), "{report}");
    assert_eq!(report["with"]["completed"], 20);
    assert_eq!(report["with"]["cut"], 0);
    assert_eq!(report["with"]["failed"], 0);
    assert_eq!(report["events_identical"], true);
    assert!(report["with"]["silence_ms"]["max"].as_f64() < Some(400.0), "{report}");
}
