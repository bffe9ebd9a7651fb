//! `heartline health` against listeners that answer well, badly, late and not at all.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Output, Stdio};

fn health(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
    command.arg("health").args(arguments).env_remove("HEARTLINE_ADMIN").output().expect("the command starts")
}

/// Asserts the exit code and that standard error is one line with `words`; nothing at all where it is 0.
#[track_caller]
fn assert_ends(output: &Output, code: i32, words: &str) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert_eq!(told.lines().count(), usize::from(code != 0), "{told}");
    assert!(told.contains(words), "{told}");
    assert!(output.stdout.is_empty());
}

/// A listener that reads one request and gives this answer; then what it was asked is returned.
fn once(answer: &'static [u8]) -> (SocketAddr, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let length = socket.read(&mut request).unwrap();
        socket.write_all(answer).unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    (address, asked)
}

/// A running `heartline proxy` and its admin address.
struct Proxy(Child, SocketAddr);

impl Proxy {
    fn start() -> Self {
        let arguments = ["--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
        let command = command.arg("proxy").args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the command starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let admin = lines.skip(1).map(|line| line.strip_prefix("admin on http://").unwrap().parse().unwrap()).next();
        Self(child, admin.expect("an admin address"))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_running_proxy_is_healthy_and_ready_and_one_that_ended_is_not() {
    let proxy = Proxy::start();
    let admin = proxy.1.to_string();
    assert_ends(&health(&["--admin", &admin]), 0, "");
    assert_ends(&health(&["--admin", &admin, "--ready"]), 0, "");
    drop(proxy);
    assert_ends(&health(&["--admin", &admin]), 1, "Connection refused");
}

#[test]
fn each_question_has_its_path_and_any_status_but_200_is_a_no() {
    let (address, asked) = once(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
    assert_ends(&health(&["--ready", "--admin", &address.to_string()]), 1, "/readyz: answered 503");
    assert!(asked.join().unwrap().starts_with("GET /readyz HTTP/1.1\r\n"));
    let (address, asked) = once(b"HTTP/1.1 200 OK\r\n\r\n");
    assert_ends(&health(&["--admin", &address.to_string()]), 0, "");
    assert!(asked.join().unwrap().starts_with("GET /healthz HTTP/1.1\r\n"));
}

#[test]
fn an_answer_that_is_not_http_or_breaks_off_is_a_no() {
    for (answer, words) in [(&b"SSH-2.0-OpenSSH_9.2\r\n"[..], "not HTTP/1.1"), (b"HTTP/1.1", "early eof")] {
        let (address, _) = once(answer);
        assert_ends(&health(&["--admin", &address.to_string()]), 1, words);
    }
}

#[test]
fn one_that_never_answers_is_waited_for_no_longer_than_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    assert_ends(&health(&["--admin", &address, "--timeout", "100ms"]), 1, "no answer within 100ms");
}

#[test]
fn a_listener_on_every_address_is_asked_on_loopback() {
    let (address, _) = once(b"HTTP/1.1 200 OK\r\n\r\n");
    assert_ends(&health(&["--admin", &format!("0.0.0.0:{}", address.port())]), 0, "");
}

#[test]
fn addresses_that_cannot_be_asked_are_refused() {
    for (admin, words) in [("off", "is off"), ("127.0.0.1:0", "port 0"), ("localhost", "write for example")] {
        assert_ends(&health(&["--admin", admin]), 2, words);
    }
}
