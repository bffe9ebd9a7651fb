//! The soak: clients come and go, and in the end the proxy holds no exchange, no connection, no descriptor and no more
//! memory than after half of them. Called by `rounds`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::rounds::say;
use crate::under_test::{UnderTest, Variant};

/// Parts that the requests are asked in; memory is compared between half of them and the end.
const PARTS: usize = 10;

/// Longest wait for what is left to go: the pool's 4 s and some.
const SETTLE_MAX: Duration = Duration::from_secs(15);

/// What the soak came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Soak {
    pub(crate) whole: u64,
    pub(crate) left: u64,
    pub(crate) failed: u64,
    pub(crate) seconds: f64,
    /// In the end.
    pub(crate) exchanges: u64,
    pub(crate) connections: u64,
    /// Beyond those before the first request.
    pub(crate) files: i64,
    /// Resident bytes before, after half, and in the end.
    pub(crate) resident_bytes: [i64; 3],
}

/// Runs it with `requests` requests.
pub(crate) fn run(requests: usize, begun: &Instant) -> Result<Soak, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
    command.args(["sim", "--listen", "127.0.0.1:0", "--ttft", "2ms", "--itl", "1ms", "--tokens", "4"]);
    let mut engine = Process::start(&mut command)?;
    let engine_port = engine.hear_port("listening on")?;
    let middle = UnderTest::start(Variant::Heartline, engine_port, 0)?;
    let process = middle.process.as_ref().ok_or("the proxy does not run")?;
    let mut clients = Process::role("churn", &[middle.port.to_string()])?;
    figures(middle.admin)?; // the recorder's own memory is there from now on
    let (files, before) = (process.files(), middle.resident_bytes());
    let since = Instant::now();
    let mut soak = Soak {
        whole: 0,
        left: 0,
        failed: 0,
        seconds: 0.0,
        exchanges: 0,
        connections: 0,
        files: 0,
        resident_bytes: [before; 3],
    };
    for part in 0..PARTS {
        let [whole, left, failed] = clients.ask(&(requests / PARTS).to_string())?[..] else {
            return Err("the clients' answer has another shape".into());
        };
        soak.whole += whole;
        soak.left += left;
        soak.failed += failed;
        if part + 1 == PARTS / 2 {
            soak.resident_bytes[1] = middle.resident_bytes();
        }
        say(
            begun,
            &format!(
                "soak {} of {PARTS}: {whole} whole, {left} left, {failed} failed, {:.1} MB resident",
                part + 1,
                middle.resident_bytes() as f64 / 1e6
            ),
        );
    }
    soak.seconds = since.elapsed().as_secs_f64();
    drop(clients);
    let settling = Instant::now();
    loop {
        (soak.exchanges, soak.connections) = figures(middle.admin)?;
        soak.files = process.files() as i64 - files as i64;
        if (soak.exchanges == 0 && soak.connections == 0 && soak.files <= 0) || settling.elapsed() > SETTLE_MAX {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    soak.resident_bytes[2] = middle.resident_bytes();
    Ok(soak)
}

/// Exchanges and connections, as `/metrics` says.
fn figures(admin: u16) -> Result<(u64, u64), String> {
    let asked = || -> std::io::Result<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", admin))?;
        socket.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = asked().map_err(|problem| format!("the admin listener does not answer: {problem}"))?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<f64>().ok()).ok_or(format!("/metrics lacks {name}"))
    };
    Ok((value("heartline_proxy_exchanges")? as u64, value("heartline_proxy_connections")? as u64))
}
