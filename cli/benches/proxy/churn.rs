//! The clients of the soak: thousands of short answers, of which some are read whole, some left at their first byte and some
//! before it, on connections that are used once or often. A process of its own; `main` runs it when the role says so.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{connect, read_some};
use crate::control;

/// Clients at once.
const CLIENTS: usize = 200;

/// The last chunk of a body.
const LAST: &[u8] = b"\r\n0\r\n\r\n";

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    whole: AtomicU64,
    left: AtomicU64,
    failed: AtomicU64,
}

/// What a client does with one answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Reads it to its end and asks again on the same connection.
    Stay,
    /// Reads it to its end and goes.
    Go,
    /// Goes at its first byte.
    Leave,
    /// Goes as soon as it has asked.
    Abandon,
}

/// Asks `PORT` in rounds of as many requests as the parent writes; answers what they came to.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let port: u16 = arguments[0].parse().expect("the parent passes numbers");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    control::answer(move |command| {
        let requests: u64 = command.parse().unwrap_or(0);
        let counts = Arc::new(Counts::default());
        runtime.block_on(async {
            let clients: Vec<_> =
                (0..CLIENTS).map(|client| tokio::spawn(ask(client, port, requests, Arc::clone(&counts)))).collect();
            for client in clients {
                let _ = client.await;
            }
        });
        let [whole, left, failed] = [&counts.whole, &counts.left, &counts.failed].map(|count| count.load(Relaxed));
        format!("{whole} {left} {failed}")
    })
}

async fn ask(client: usize, port: u16, requests: u64, counts: Arc<Counts>) {
    let mut kept = None;
    loop {
        let index = counts.begun.fetch_add(1, Relaxed);
        if index >= requests {
            return;
        }
        let manner = match index % 8 {
            0..4 => Manner::Stay,
            4..6 => Manner::Go,
            6 => Manner::Leave,
            _ => Manner::Abandon,
        };
        match exchange(client, port, &mut kept, manner).await {
            Ok(()) if matches!(manner, Manner::Stay | Manner::Go) => counts.whole.fetch_add(1, Relaxed),
            Ok(()) => counts.left.fetch_add(1, Relaxed),
            Err(problem) => {
                kept = None;
                if counts.failed.load(Relaxed) == 0 {
                    eprintln!("proxy: a request failed: {problem}");
                }
                counts.failed.fetch_add(1, Relaxed)
            }
        };
    }
}

async fn exchange(
    client: usize,
    port: u16,
    kept: &mut Option<TcpStream>,
    manner: Manner,
) -> Result<(), Box<dyn std::error::Error>> {
    const BODY: &str = r#"{"model":"sim","messages":[{"role":"user","content":"hello"}],"stream":true}"#;
    let mut socket = match kept.take() {
        Some(socket) => socket,
        None => connect(client, port).await?,
    };
    let length = BODY.len();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    socket.write_all(format!("{head}content-length: {length}\r\n\r\n{BODY}").as_bytes()).await?;
    if manner == Manner::Abandon {
        return Ok(());
    }
    let mut answer = Vec::new();
    loop {
        read_some(&socket, |bytes| answer.extend_from_slice(bytes)).await?;
        if answer.len() >= 12 && !answer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&answer).into_owned().into());
        }
        if manner == Manner::Leave {
            return Ok(());
        }
        if answer.ends_with(LAST) {
            break;
        }
    }
    if manner == Manner::Stay {
        *kept = Some(socket);
    }
    Ok(())
}
