//! The command's arguments: layers over one another, refusals in one line, exit codes, the help.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::PAGE;

fn proxy(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
    command.arg("proxy").args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

/// What `--check` prints.
#[track_caller]
fn checked(command: &mut Command) -> String {
    let output = command.arg("--check").output().expect("the command starts");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    text(&output.stdout).to_owned()
}

#[track_caller]
fn assert_refused(output: &Output, code: i32, words: &str) {
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}");
    assert!(line.starts_with("heartline: ") && line.contains(words), "{line}");
    assert_eq!((line.trim_end().lines().count(), text(&output.stdout)), (1, ""), "{line}");
}

/// A file of its own for one test.
pub(super) fn file(name: &str, content: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("proxy-config-{name}"));
    fs::write(&path, content).expect("a file is written");
    path
}

#[test]
fn a_flag_goes_before_the_environment_and_that_before_the_file() {
    let path =
        file("layers.toml", "drain_timeout = \"1s\"\n[[upstream]]\nurl = \"http://10.0.0.1:1\"\ninterval = \"7s\"\n");
    let path = path.to_str().unwrap();
    let config = ["--config", path];
    assert!(checked(&mut proxy(&config)).contains("interval: 7s"));
    assert!(checked(proxy(&config).env("HEARTLINE_INTERVAL", "8s")).contains("interval: 8s"));
    let flag = ["--config", path, "--interval", "9s", "--upstream", "http://10.0.0.2:2", "--admin", "off"];
    let said = checked(proxy(&flag).env("HEARTLINE_INTERVAL", "8s"));
    assert!(
        said.contains("http://10.0.0.2:2/") && said.contains("interval: 9s") && said.contains("admin   off"),
        "{said}"
    );
    assert!(checked(proxy(&[]).env("HEARTLINE_CONFIG", path)).contains("http://10.0.0.1:1/"));
    assert!(checked(proxy(&[]).env("HEARTLINE_UPSTREAM", "http://10.0.0.3:3")).contains("interval: 30s"));
}

#[test]
fn a_value_is_read_alike_in_a_flag_the_environment_and_the_file() {
    for (written, meant) in [
        ("1min", "1m"),
        ("90 seconds", "90s"),
        ("1m30s", "1m 30s"),
        ("0.05h", "3m"),
        ("2500ms", "2.5s"),
        ("250_ms", "refused"),
        ("5M", "refused"),
        ("30", "refused"),
        ("1.5", "refused"),
        ("-1s", "refused"),
    ] {
        let of = |content: &str, flag: Option<&str>, environment: Option<&str>| {
            let path = file(&format!("alike-{}.toml", content.len()), content);
            let mut command = proxy(&["--config", path.to_str().unwrap(), "--check"]);
            command.args(flag.map(|flag| format!("--interval={flag}")));
            if let Some(value) = environment {
                command.env("HEARTLINE_INTERVAL", value);
            }
            let output = command.output().unwrap();
            let said = text(&output.stdout).to_owned() + text(&output.stderr);
            let read = said.lines().find_map(|line| line.split("interval: ").nth(1)).map(str::to_owned);
            if output.status.success() { read.unwrap() } else { "refused".to_owned() }
        };
        let engine = "[[upstream]]\nurl = \"http://10.0.0.1:1\"\n";
        let in_file = of(&format!("{engine}interval = \"{written}\"\n"), None, None);
        let in_flag = of(engine, Some(written), None);
        let in_environment = of(engine, None, Some(written));
        assert_eq!(in_file, in_flag, "{written} in the file, then in the flag");
        assert_eq!(in_flag, in_environment, "{written} in the flag, then in the environment");
        assert_eq!(in_file == "refused", meant == "refused", "{written}: {in_file}");
        if meant != "refused" {
            assert_eq!(in_file, of(engine, Some(meant), None), "{written}");
        }
    }
}

#[test]
fn what_a_flag_breaks_is_not_blamed_on_the_file() {
    let path = file("blame.toml", "[[upstream]]\nurl = \"http://10.0.0.1:1\"\ninterval = \"7s\"\n");
    let path = path.to_str().unwrap();
    let output = proxy(&["--config", path, "--interval", "0s"]).output().unwrap();
    assert_refused(&output, 2, "upstream \"engine\": interval is 0");
    assert!(!text(&output.stderr).contains("line 3"));
    let path =
        file("two.toml", "[[upstream]]\nurl = \"http://a:1\"\n[[upstream]]\nurl = \"http://b:1\"\npaths = [\"/b\"]\n");
    let output = proxy(&["--config", path.to_str().unwrap(), "--upstream", "http://c:1"]).output().unwrap();
    assert_refused(&output, 2, "the file has 2");
}

#[test]
fn a_bad_file_is_named_with_line_and_column() {
    let path = file("bad.toml", "[[upstream]]\nurl = \"http://10.0.0.1:1\"\nintervall = \"7s\"\n");
    let place = format!("{}, line 3, column 1: the key intervall is unknown: write interval", path.display());
    assert_refused(&proxy(&["--config", path.to_str().unwrap()]).output().unwrap(), 2, &place);
    assert_refused(&proxy(&["--config", "/nonexistent.toml"]).output().unwrap(), 2, "/nonexistent.toml cannot be read");
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    const ENGINE: [&str; 2] = ["--upstream", "http://10.0.0.1:1"];
    assert_refused(&proxy(&[]).output().unwrap(), 2, "no engine is given: add --upstream");
    assert_refused(&proxy(&["--upstream", "127.0.0.1:1"]).output().unwrap(), 2, "write http://127.0.0.1:1");
    for (arguments, words) in [
        (["--interval", "30"], "write 30s, 30ms or 30m"),
        (["--interval", "0s"], "interval is 0"),
        (["--heartbeat", "beep"], "use auto, newline"),
        (["--commit-after", "soon"], "or off"),
        (["--listen", "localhost:80"], "write for example 127.0.0.1:80"),
        (["--half-close", "wait"], "write abort or serve"),
        (["--trusted", "10.0.0.0/8,here"], "10.0.0.0/8"),
        (["--log-format", "xml"], "text, json"),
        (["--tls-cert", "a.pem"], "without tls_key"),
        (["--ca", "a.pem"], "not https://"),
        (["--watch", "5s"], "of --config: name it"),
        (["--no-model", "gpu"], "which no upstream is named"),
    ] {
        assert_refused(&proxy(&ENGINE).args(arguments).output().unwrap(), 2, words);
    }
    let output = proxy(&ENGINE).env("HEARTLINE_DRAIN_TIMEOUT", "-1s").output().unwrap();
    assert_refused(&output, 2, "--drain-timeout");
}

#[test]
fn a_password_in_an_address_is_not_repeated() {
    let output = proxy(&["--upstream", "http://user:secret@host"]).output().unwrap();
    assert_refused(&output, 2, "take it out");
    assert!(!text(&output.stderr).contains("secret"));
}

#[test]
fn files_that_settings_name_are_opened_before_the_start() {
    let engine = ["--upstream", "https://10.0.0.1:1"];
    let empty = file("empty.pem", "no certificate\n");
    let empty = empty.to_str().unwrap();
    assert_refused(&proxy(&engine).args(["--ca", "/no/ca.pem"]).output().unwrap(), 2, "/no/ca.pem cannot be read");
    assert_refused(&proxy(&engine).args(["--ca", empty]).output().unwrap(), 2, "none of certificates");
    let tls = ["--tls-cert", empty, "--tls-key", empty];
    assert_refused(&proxy(&engine).args(tls).output().unwrap(), 2, "tls_cert: ");
}

#[test]
fn a_port_in_use_and_a_limit_of_the_host_are_told_apart() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let engine = ["--upstream", "http://10.0.0.1:1", "--admin", "off"];
    assert_refused(&proxy(&engine).args(["--listen", &address, "--connections", "10"]).output().unwrap(), 2, &address);
    let many = ["--listen", "127.0.0.1:0", "--connections", "10m"];
    assert_refused(&proxy(&engine).args(many).output().unwrap(), 3, "ulimit -Hn 20000256");
}

#[test]
fn unusual_settings_are_told_by_the_check() {
    let said =
        checked(&mut proxy(&["--upstream", "http://10.0.0.1:1", "--admin", "0.0.0.0:9900", "--commit-after", "2m"]));
    assert!(said.contains("asks for no password") && said.contains("two intervals"), "{said}");
}

#[test]
fn the_help_and_the_page_have_the_same_flags() {
    let output = proxy(&["--help"]).output().unwrap();
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(help.contains("Examples:\n  heartline proxy ") && help.lines().all(|line| line.chars().count() <= 100));
    let flags = help.lines().filter_map(|line| line.trim_start().strip_prefix("--")?.split(' ').next());
    for flag in flags.filter(|flag| *flag != "help") {
        assert!(PAGE.contains(&format!("--{flag}`")) || PAGE.contains(&format!("`--{flag} ")), "{flag}");
    }
}

#[test]
fn the_help_and_the_page_have_the_same_defaults() {
    let output = proxy(&["--help"]).output().unwrap();
    let help = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    for row in PAGE.lines().filter(|row| row.contains("| `--")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        if cells[3].starts_with(|c: char| c.is_ascii_digit()) {
            let described = help.split(&format!("{} <", cells[2])).nth(1).unwrap_or_else(|| panic!("no {row}"));
            let described = described.split(" --").next().unwrap();
            assert!(described.contains(&format!("{} by default", cells[3])), "{row}\n{described}");
        }
    }
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/tls/certificate.pem");
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/tls/authority.pem");
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/tls/key.pem");
    let tls = |certificate| ["--upstream", "http://10.0.0.1:1", "--tls-key", key, "--tls-cert", certificate, "--check"];
    assert_eq!(proxy(&tls(certificate)).output().unwrap().status.code(), Some(0));
    assert_refused(&proxy(&tls(authority)).output().unwrap(), 2, "authority.pem");
}
