//! The running command: the addresses it prints, SIGHUP, SIGTERM, and a second one.

use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::command::file;

/// Waits, within a bound that only a hang reaches.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("soon")
}

/// A running `heartline proxy`.
struct Proxy {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    log: Lines<BufReader<ChildStderr>>,
    address: SocketAddr,
}

impl Proxy {
    /// With these arguments, on free ports of loopback.
    async fn start(arguments: &[&str]) -> Self {
        let usual = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-format", "json"];
        Self::spawn(&[&usual, arguments].concat()).await
    }

    async fn spawn(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
        command.arg("proxy").args(arguments).env_remove("RUST_LOG").kill_on_drop(true);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = soon(stdout.next_line()).await.unwrap().expect("a line");
        let address = line.strip_prefix("listening on http://").expect("an address").parse().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, stdout, log, address }
    }

    async fn signal(&self, name: &str) {
        let process = self.child.id().expect("it runs").to_string();
        let status = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &process]).status().await;
        assert!(status.expect("a shell").success(), "{name}");
    }

    /// Reads the log up to the line whose message contains `words`.
    async fn says(&mut self, words: &str) -> serde_json::Value {
        loop {
            let line = soon(self.log.next_line()).await.unwrap().unwrap_or_else(|| panic!("never said {words}"));
            let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            if event["message"].as_str().is_some_and(|message| message.contains(words)) {
                return event;
            }
        }
    }

    async fn ended(mut self) -> ExitStatus {
        soon(self.child.wait()).await.unwrap()
    }

    /// Opens a stream and waits for its head.
    async fn stream(&self) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(b"GET /events?key=secret HTTP/1.1\r\nhost: a\r\nauthorization: secret\r\n\r\n").await.unwrap();
        let mut head = [0; 12];
        soon(socket.read_exact(&mut head)).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200");
        socket
    }
}

/// An engine whose answer is an event stream that names it and never ends.
async fn engine(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let Ok((mut socket, _)) = listener.accept().await else { return };
            tokio::spawn(async move {
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {name}\n\n");
                let _ = socket.read(&mut [0; 4_096]).await;
                let _ = socket.write_all(answer.as_bytes()).await;
                let _ = socket.read(&mut [0; 4_096]).await; // until the proxy has gone
            });
        }
    });
    address
}

/// Reads until the text holds `words`; returns all of it.
async fn until(socket: &mut TcpStream, words: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4_096];
    while !text.contains(words) {
        let read = soon(socket.read(&mut buffer)).await.unwrap();
        assert!(read > 0, "ended before {words}: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    text
}

#[tokio::test]
async fn it_prints_both_addresses_and_ends_with_0_at_a_signal() {
    for signal in ["TERM", "INT"] {
        let mut proxy = Proxy::start(&["--upstream", "http://127.0.0.1:1"]).await;
        let line = soon(proxy.stdout.next_line()).await.unwrap().unwrap();
        let admin: SocketAddr = line.strip_prefix("admin on http://").unwrap().parse().unwrap();
        assert!(admin.ip().is_loopback() && admin != proxy.address);
        proxy.signal(signal).await;
        assert_eq!(proxy.ended().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_drain_waits_for_streams_until_its_deadline_and_ends_with_0() {
    let upstream = format!("http://{}", engine("a").await);
    let mut proxy = Proxy::start(&["--upstream", &upstream, "--drain-timeout", "300ms"]).await;
    let mut stream = proxy.stream().await;
    until(&mut stream, "data: a\n\n").await;
    proxy.signal("TERM").await;
    assert_eq!(proxy.says("a second signal ends now").await["exchanges"], 1);
    until(&mut stream, "\"error\"").await;
    assert_eq!(proxy.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_now_with_5() {
    let upstream = format!("http://{}", engine("a").await);
    let mut proxy = Proxy::start(&["--upstream", &upstream, "--drain-timeout", "1h"]).await;
    let _stream = proxy.stream().await;
    proxy.signal("TERM").await;
    proxy.says("a second signal ends now").await;
    proxy.signal("INT").await;
    assert_eq!(proxy.ended().await.code(), Some(5));
}

#[tokio::test]
async fn a_reload_serves_new_requests_by_new_settings_and_keeps_live_streams() {
    let (a, b) = (engine("a").await, engine("b").await);
    let settings = |address| format!("[[upstream]]\nurl = \"http://{address}\"\ninterval = \"100ms\"\n");
    let path = file("reload.toml", &settings(a));
    let mut proxy = Proxy::start(&["--config", path.to_str().unwrap()]).await;
    let mut old = proxy.stream().await;
    until(&mut old, "data: a\n\n").await;

    file("reload.toml", "[[upstream]]\nurl = \"engine\"\n");
    proxy.signal("HUP").await;
    let event = proxy.says("the old ones stay").await;
    assert_eq!(event["level"], "ERROR");
    assert!(event["message"].as_str().unwrap().contains("reload.toml, line 2, column 7: "), "{event}");
    until(&mut proxy.stream().await, "data: a\n\n").await;

    file("reload.toml", &settings(b));
    proxy.signal("HUP").await;
    proxy.says("settings reloaded").await;
    until(&mut proxy.stream().await, "data: b\n\n").await;
    until(&mut old, "\n").await; // a heartbeat: it lives
    proxy.signal("TERM").await;
    proxy.says("a second signal ends now").await;
    proxy.signal("TERM").await;
    assert_eq!(proxy.ended().await.code(), Some(5));
}

#[tokio::test]
async fn a_watched_file_is_read_again_without_a_signal() {
    let (a, b) = (engine("a").await, engine("b").await);
    let path = file("watched.toml", &format!("[[upstream]]\nurl = \"http://{a}\"\n"));
    let mut proxy = Proxy::start(&["--config", path.to_str().unwrap(), "--watch", "100ms"]).await;
    until(&mut proxy.stream().await, "data: a\n\n").await;
    file("watched.toml", &format!("[[upstream]]\nurl = \"http://{b}\"\n"));
    proxy.says("settings reloaded").await;
    until(&mut proxy.stream().await, "data: b\n\n").await;
    proxy.signal("TERM").await;
    assert_eq!(proxy.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_listener_cannot_be_changed_by_a_reload() {
    let settings = |admin: &str| {
        format!("listen = \"127.0.0.1:0\"\nadmin = \"{admin}\"\n[[upstream]]\nurl = \"http://127.0.0.1:1\"\n")
    };
    let path = file("listener.toml", &settings("127.0.0.1:0"));
    let mut proxy = Proxy::spawn(&["--log-format", "json", "--config", path.to_str().unwrap()]).await;
    file("listener.toml", &settings("off"));
    proxy.signal("HUP").await;
    let event = proxy.says("the old ones stay").await;
    let message = event["message"].as_str().unwrap();
    assert!(message.contains("admin") && message.contains("restart"), "{message}");
    proxy.signal("TERM").await;
    assert_eq!(proxy.ended().await.code(), Some(0));
}

#[tokio::test]
async fn exchanges_are_logged_without_secrets_and_only_when_asked() {
    let upstream = format!("http://{}", engine("a").await);
    for (access_log, logged) in [("on", true), ("off", false)] {
        let mut proxy = Proxy::start(&["--upstream", &upstream, "--access-log", access_log]).await;
        drop(proxy.stream().await);
        if logged {
            let event = proxy.says("exchange").await;
            assert_eq!((&event["path"], &event["target"]), (&"/events".into(), &"heartline::access".into()));
            assert!(!event.to_string().contains("secret"), "{event}");
        }
        proxy.signal("TERM").await;
        let mut rest = String::new();
        while let Some(line) = soon(proxy.log.next_line()).await.unwrap() {
            rest += &line;
        }
        assert!(!rest.contains("heartline::access") && !rest.contains("secret"), "{rest}");
        assert_eq!(proxy.ended().await.code(), Some(0));
    }
}
