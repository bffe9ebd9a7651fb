//! Settings of the proxy as their owner meets them: the example file, the layers, every refusal with its place.
#[path = "proxy_config/command.rs"]
mod command;
#[path = "proxy_config/run.rs"]
mod run;

use std::collections::BTreeSet;
use std::time::Duration;

use heartline::{Cadence, Form};
use heartline_cli::proxy::{Config, Fallback, FormChoice, HalfClose, HostHeader, engine_url};

const EXAMPLE: &str = include_str!("../../docs/examples/heartline.toml");
const PAGE: &str = include_str!("../../docs/proxy-config.md");

/// The lines of the example with settings behind `mark` made real.
fn uncommented(mark: &str) -> String {
    let lines = EXAMPLE.lines().map(|line| {
        let setting =
            line.strip_prefix(mark).filter(|rest| rest.starts_with("[[") || rest.split(" = ").next() == key(rest));
        setting.unwrap_or(line).to_owned() + "\n"
    });
    lines.collect()
}

/// The key that a line sets.
fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(" = ")?;
    key.chars().all(|c| c.is_ascii_lowercase() || c == '_').then_some(key)
}

fn defaults() -> Config {
    Config::single(engine_url("http://127.0.0.1:23333").unwrap())
}

#[track_caller]
fn refused(toml: &str) -> String {
    let message = Config::from_toml(toml).expect_err("refused").to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

/// `rest` under one engine with an address.
fn engine(rest: &str) -> String {
    format!("[[upstream]]\nurl = \"http://10.0.0.1:8000\"\n{rest}\n")
}

#[test]
fn the_example_is_the_defaults_and_tells_each_of_them() {
    assert_eq!(Config::from_toml(EXAMPLE).unwrap(), defaults());
    let told = uncommented("# ");
    assert!(told.contains("\ndrain_timeout = "), "the marks were understood");
    assert_eq!(Config::from_toml(&told).unwrap(), defaults());
}

#[test]
fn the_examples_of_the_example_are_valid() {
    let config = Config::from_toml(&uncommented("## ")).unwrap();
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    assert_eq!(names, ["engine", "sglang", "ollama"]);
    assert_eq!(config.upstreams[1].commit_after, Some(Duration::from_secs(15)));
    assert!(config.tls.is_some());
    assert_eq!(config.upstreams[0].ca, None, "a default for those that speak TLS");
}

#[test]
fn the_page_the_example_and_the_code_have_the_same_keys() {
    let lines = EXAMPLE.lines().map(|line| line.trim_start_matches(['#', ' ']));
    let shown: BTreeSet<&str> = lines.filter_map(key).filter(|shown| *shown != "key").collect();
    let rows = PAGE.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let told: BTreeSet<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(shown, told, "the example, then docs/proxy-config.md");
    // What serde expects is what the code has.
    let mut known = BTreeSet::new();
    for table in ["", "[limits]", "[defaults]"] {
        let message = refused(&format!("{table}\nxxxxxxxxxxxxxxxx = 1\n"));
        let list = message.split("one of ").nth(1).and_then(|rest| rest.split(", or leave").next()).expect("a list");
        known.extend(list.split(", ").map(str::to_owned));
    }
    for table in ["limits", "defaults", "upstream"] {
        assert!(known.remove(table), "{table}");
    }
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    assert_eq!(known, told, "the code, then docs/proxy-config.md");
}

#[test]
fn the_page_and_the_example_have_the_same_defaults() {
    let mut compared = 0;
    for line in EXAMPLE.lines() {
        let Some((key, value)) = line.strip_prefix("# ").and_then(|line| line.split_once(" = ")) else { continue };
        let row = PAGE.lines().find(|row| row.starts_with(&format!("| `{key}` |")));
        let Some(told) = row.and_then(|row| row.split('|').nth(3)?.trim().strip_prefix('`')?.strip_suffix('`')) else {
            continue;
        };
        assert_eq!(value.trim_matches('"'), told, "{key}");
        compared += 1;
    }
    assert!(compared > 20, "the rows were understood");
}

#[test]
fn every_key_reaches_its_setting() {
    let config = Config::from_toml(
        r#"
        listen = "0.0.0.0:80"
        admin = "off"
        tls_cert = "c.pem"
        tls_key = "k.pem"
        trusted = ["10.0.0.0/8", "::1"]
        half_close = "serve"
        drain_timeout = "5m"
        unknown_models = "refuse"
        no_model = "b"
        [limits]
        connections = "1k"
        connections_per_address = 10
        streams_per_connection = 11
        header_bytes = "8KiB"
        headers = 16
        header_timeout = "1s"
        body_rate = "2KiB"
        user_timeout = "2s"
        stalled_after = "3s"
        look_bytes = 2048
        [defaults]
        interval = "10s"
        cadence = "idle-only"
        heartbeat = "comment"
        max_silence = "off"
        [[upstream]]
        name = "a"
        url = "https://engine.example"
        ca = "ca.pem"
        paths = ["/v1/"]
        models = ["x-*"]
        host = "preserve"
        heartbeat_header = "X-Heartbeat"
        max_lifetime = "1h"
        ndjson = "always"
        json = "always"
        commit_after = "20s"
        commit_json_after = "30s"
        pool_idle = "off"
        connect_timeout = "1s"
        response_timeout = "1m"
        body_idle = "2m"
        [[upstream]]
        name = "b"
        url = "h2c://10.0.0.1:1"
        interval = "1s"
        heartbeat = "auto"
        max_silence = "1m"
        "#,
    )
    .unwrap();
    let seconds = Duration::from_secs;
    assert_eq!((config.listen.to_string().as_str(), config.admin), ("0.0.0.0:80", None));
    assert_eq!(config.tls.as_ref().unwrap().key.to_str(), Some("k.pem"));
    assert_eq!(config.trusted.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.0/8", "::1/128"]);
    assert_eq!((config.half_close, config.drain_timeout), (HalfClose::Serve, seconds(300)));
    assert_eq!((&config.unknown_models, &config.no_model), (&Fallback::Refuse, &Fallback::Engine("b".to_owned())));
    let limits = &config.limits;
    assert_eq!((limits.connections, limits.connections_per_address, limits.streams_per_connection), (1_000, 10, 11));
    assert_eq!((limits.header_bytes, limits.headers, limits.look_bytes), (8_192, 16, 2_048));
    assert_eq!(limits.body_rate, Some(2_048));
    assert_eq!(
        (limits.header_timeout, limits.user_timeout, limits.stalled_after),
        (seconds(1), seconds(2), seconds(3))
    );
    let [a, b] = &*config.upstreams else { panic!("two engines") };
    assert_eq!((a.paths.as_slice(), a.models.as_slice()), (&["/v1".to_owned()][..], &["x-*".to_owned()][..]));
    assert_eq!((&a.host, a.heart.interval, a.heart.cadence), (&HostHeader::Preserve, seconds(10), Cadence::IdleOnly));
    assert_eq!(a.heart.form, FormChoice::Form(Form::comment()));
    assert_eq!(a.heart.form_header.as_ref().unwrap(), "x-heartbeat");
    assert_eq!((a.heart.max_silence, a.heart.max_lifetime), (None, Some(seconds(3_600))));
    assert_eq!((a.commit_after, a.commit_json_after), (Some(seconds(20)), Some(seconds(30))));
    assert_eq!((a.pool_idle, a.connect_timeout), (Duration::ZERO, seconds(1)));
    assert_eq!((a.response_timeout, a.body_idle), (Some(seconds(60)), Some(seconds(120))));
    assert_eq!((b.heart.interval, &b.heart.form), (seconds(1), &FormChoice::Auto));
    assert_eq!((b.heart.max_silence, b.heart.cadence), (Some(seconds(60)), Cadence::IdleOnly));
}

#[test]
fn settings_that_cannot_work_are_refused_where_they_stand() {
    for (toml, place, words) in [
        (String::new(), "no engine", "--upstream http://"),
        ("[[upstream]]\nname = \"a\"".to_owned(), "line 1, column 1", "add url"),
        (engine("interval = \"0s\""), "line 3, column 12", "heartbeat off"),
        (engine("interval = \"99ms\""), "line 3, column 12", "minimum of 100ms"),
        (engine("interval = \"25h\""), "line 3, column 12", "maximum"),
        (engine("max_silence = \"1s\""), "line 3, column 15", "write off"),
        (engine("max_lifetime = \"1s\""), "line 3, column 16", "at least one interval"),
        (engine("commit_after = \"1ms\""), "line 3, column 16", "or more, or off"),
        (engine("commit_after = \"9s\"\nresponse_timeout = \"9s\""), "line 3, column 16", "response_timeout"),
        (engine("commit_after = \"16m\""), "line 3, column 16", "max_silence"),
        (engine("commit_json_after = \"9s\"\nheartbeat = \"off\""), "line 3, column 21", "heartbeat is off"),
        (engine("pool_idle = \"2h\""), "line 3, column 13", "1h or less"),
        (engine("connect_timeout = \"1ms\""), "line 3, column 19", "10ms or more"),
        (engine("ca = \"a.pem\""), "line 3, column 6", "not https://"),
        (engine("paths = [\"v1\"]"), "line 3, column 9", "write for example /v1"),
        (engine("paths = [\"/v1/../x\"]"), "line 3, column 9", "no dots"),
        (engine("models = [\"*x*\"]"), "line 3, column 10", "one *"),
        (engine("name = \"\""), "line 3, column 8", "1 to 64"),
        (engine("heartbeat_header = \"Authorization\""), "line 3, column 20", "x-heartbeat"),
        (engine("heartbeat = \"beep\""), "line 3, column 13", "use auto, newline"),
        (engine("") + &engine("name = \"engine\"\npaths = [\"/a\"]"), "line 6, column 8", "give each its own"),
        (engine("") + &engine("name = \"b\""), "line 4, column 1", "same paths and models as \"engine\""),
        (
            "listen = \"127.0.0.1:8000\"\n[[upstream]]\nurl = \"http://localhost:8000\"".to_owned(),
            "line 3, column 7",
            "own listener",
        ),
        (
            "listen = \"0.0.0.0:80\"\n[[upstream]]\nurl = \"http://127.0.0.1\"".to_owned(),
            "line 3, column 7",
            "own listener",
        ),
        ("[[upstream]]\nurl = \"http://127.0.0.1:9900\"".to_owned(), "line 2, column 7", "own listener 127.0.0.1:9900"),
        ("admin = \"127.0.0.1:8080\"\n".to_owned() + &engine(""), "line 1, column 9", "another port"),
        ("drain_timeout = \"25h\"\n".to_owned() + &engine(""), "line 1, column 17", "24h or less"),
        ("no_model = \"gpu\"\n".to_owned() + &engine(""), "line 1, column 12", "first, refuse or engine"),
        ("tls_cert = \"a\"\n".to_owned() + &engine(""), "line 1, column 12", "both, or neither"),
        ("tls_key = \"a\"\n".to_owned() + &engine(""), "line 1, column 11", "both, or neither"),
        ("[limits]\nheader_bytes = 100\n".to_owned() + &engine(""), "line 2, column 16", "from 8192"),
        ("[limits]\nconnections = 0\n".to_owned() + &engine(""), "line 2, column 15", "at least 1"),
        ("[limits]\nuser_timeout = \"1ms\"\n".to_owned() + &engine(""), "line 2, column 16", "from 1s"),
        ("[defaults]\nurl = \"http://a\"\n".to_owned() + &engine(""), "line 1, column 1", "under [[upstream]]"),
    ] {
        let message = refused(&toml);
        assert!(message.starts_with(place) && message.contains(words), "{toml}\n{message}");
    }
}
