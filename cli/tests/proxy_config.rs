//! Settings of the proxy as their owner meets them: the example file, the layers, every refusal with its place.
#[path = "proxy_config/command.rs"]
mod command;
#[path = "proxy_config/run.rs"]
mod run;

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Arg, Args, Command};
use heartline::{Cadence, Form};
use heartline_cli::proxy::{Config, Fallback, FormChoice, HalfClose, HostHeader, Overrides};
use heartline_cli::values::{key_of, why};

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
    Config::single("http://127.0.0.1:23333".parse().unwrap())
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
    assert!(config.tls().is_some());
    assert_eq!(config.upstreams[0].ca, None, "a default for those that speak TLS");
}

/// The definitions.
fn settings() -> Vec<Arg> {
    Overrides::augment_args(Command::new("proxy")).get_arguments().cloned().collect()
}

/// The cells of the page's tables of settings: keys, flags, default.
fn rows() -> impl Iterator<Item = [Vec<&'static str>; 3]> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 5);
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(|cell| cell.split('`').skip(1).step_by(2).collect());
        [(); 3].map(|()| cells.next().expect("three cells"))
    })
}

#[test]
fn the_page_has_a_row_for_each_setting_with_its_flag_and_its_default() {
    let mut told = BTreeSet::new();
    let settings = settings();
    for [keys, flags, default] in rows() {
        assert_eq!(keys.len(), flags.len(), "{keys:?}");
        for (key, flag) in keys.into_iter().zip(flags) {
            let setting = settings.iter().find(|setting| key_of(setting) == key);
            let setting = setting.unwrap_or_else(|| panic!("docs/proxy-config.md has {key}, which is no setting"));
            assert_eq!(flag.strip_prefix("--"), setting.get_long(), "{key}");
            let defaults: Vec<_> = setting.get_default_values().iter().filter_map(|text| text.to_str()).collect();
            assert_eq!(default, defaults, "{key}");
            told.insert(key);
        }
    }
    for setting in &settings {
        assert!(told.contains(&*key_of(setting)), "docs/proxy-config.md has no row for {}", key_of(setting));
    }
}

#[test]
fn the_example_shows_each_setting_with_its_default() {
    for setting in settings() {
        let key = key_of(&setting);
        let lines = EXAMPLE.lines().map(|line| line.trim_start_matches(['#', ' ']));
        let mut shown =
            lines.filter(|line| crate::key(line) == Some(&key)).map(|line| &line[key.len() + " = ".len()..]);
        let first = shown.next().unwrap_or_else(|| panic!("docs/examples/heartline.toml does not show {key}"));
        if let [default] = setting.get_default_values() {
            assert_eq!(first.trim_matches('"'), default, "{key}");
        }
    }
    let known: BTreeSet<String> = settings().iter().map(key_of).collect();
    let shown = EXAMPLE.lines().filter_map(|line| key(line.trim_start_matches(['#', ' '])));
    for key in shown.filter(|key| *key != "key") {
        assert!(known.contains(key), "docs/examples/heartline.toml shows {key}, which is no setting");
    }
}

#[test]
fn each_setting_says_what_it_is_and_answers_nonsense_with_what_to_write() {
    for setting in settings() {
        let key = key_of(&setting);
        assert!(setting.get_help().is_some_and(|help| help.to_string().len() > 10), "{key}");
        let variable = format!("HEARTLINE_{}", setting.get_long().unwrap().replace('-', "_").to_uppercase());
        assert_eq!(setting.get_env().and_then(|name| name.to_str()), Some(&*variable), "{key}");
        if ["name", "paths", "models", "unknown_models", "no_model", "tls_cert", "tls_key", "ca"].contains(&&*key) {
            continue; // any text may be meant
        }
        let flag = setting.get_long().unwrap();
        let command = Overrides::augment_args(Command::new("proxy").no_binary_name(true));
        let error = command.try_get_matches_from([format!("--{flag}=@ \u{1}")]).expect_err("refused");
        let why = why(&error).unwrap_or_else(|| panic!("{key}: {error}"));
        assert!(["write ", "use "].iter().any(|word| why.contains(word)) && !why.contains('\n'), "{key}: {why}");
    }
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
        heartbeat-header = "off"
        interval = "1s"
        heartbeat = "auto"
        max_silence = "1m"
        "#,
    )
    .unwrap();
    let seconds = Duration::from_secs;
    assert_eq!((config.listen.to_string().as_str(), config.admin), ("0.0.0.0:80", None));
    assert_eq!(config.tls().unwrap().key.to_str(), Some("k.pem"));
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
    assert_eq!(a.heart.heartbeat, FormChoice::Form(Form::comment()));
    assert_eq!(a.heart.heartbeat_header.as_ref().unwrap(), "x-heartbeat");
    assert_eq!((a.heart.max_silence, a.heart.max_lifetime), (None, Some(seconds(3_600))));
    assert_eq!((a.commit_after, a.commit_json_after), (Some(seconds(20)), Some(seconds(30))));
    assert_eq!((a.pool_idle, a.connect_timeout), (Duration::ZERO, seconds(1)));
    assert_eq!((a.response_timeout, a.body_idle), (Some(seconds(60)), Some(seconds(120))));
    assert_eq!((b.heart.interval, &b.heart.heartbeat), (seconds(1), &FormChoice::Auto));
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
        ("listn = \"127.0.0.1:1\"".to_owned(), "line 1, column 1", "the key listn is unknown: write listen"),
        (engine("max-silense = \"1m\""), "line 3, column 1", "the key max-silense is unknown: write max_silence"),
        ("[limits]\ncolour = 3\n".to_owned(), "line 2, column 1", "write one of body_rate, connections, "),
        ("connections = 3\n".to_owned(), "line 1, column 1", "the key connections is unknown"),
        ("limits = 3\n".to_owned(), "line 1, column 10", "write [limits]"),
        ("[upstream]\nurl = \"http://a\"\n".to_owned(), "line 1, column 1", "write [[upstream]]"),
        (
            "drain_timeout = 30".to_owned(),
            "line 1, column 17",
            "drain_timeout: the unit of \"30\" is missing: write 30s",
        ),
        ("drain_timeout = true".to_owned(), "line 1, column 17", "\"true\" is not a length of time"),
        ("drain_timeout = [\"1s\"]".to_owned(), "line 1, column 17", "without brackets"),
        ("trusted = [\"10.0.0.0/8\", \"here\"]".to_owned(), "line 1, column 26", "\"here\" is neither"),
        ("trusted = \"10.0.0.0/8,::1\"".to_owned(), "line 1, column 11", "write a list"),
        ("[[upstream]]\nurl = \"engine\"\n".to_owned(), "line 2, column 7", "write http://engine"),
        ("[defaults]\nmax_silence = \"on\"\n".to_owned() + &engine(""), "line 2, column 15", "or off"),
        (engine("max_silence = \"5m\"\nmax-silence = \"5m\""), "line ", "is there twice"),
        ("listen = 127.0.0.1:80".to_owned(), "line 1, column", ""),
        ("listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"".to_owned(), "line 2, column 1", ""),
        ("[defaults]\nurl = \"http://a\"\n".to_owned() + &engine(""), "line 1, column 1", "under [[upstream]]"),
    ] {
        let message = refused(&toml);
        assert!(message.starts_with(place) && message.contains(words), "{toml}\n{message}");
    }
}
