//! The command around the engine: the line that tells its port, and what it says when it cannot start.

use std::net::TcpListener;
use std::process::{Output, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::client::soon;

fn sim(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heartline"));
    command.arg("sim").args(arguments).env_remove("RUST_LOG").kill_on_drop(true);
    command
}

async fn output(arguments: &[&str]) -> Output {
    soon(sim(arguments).output()).await.unwrap()
}

#[tokio::test]
async fn the_first_line_of_stdout_tells_where_it_listens() {
    let arguments = ["--listen", "127.0.0.1:0", "--ttft", "0", "--tokens", "1", "--api", "events"];
    let mut child = sim(&arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = soon(lines.next_line()).await.unwrap().unwrap();
    let address = line.strip_prefix("listening on http://").unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    soon(socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("event: end\ndata: 1\n\n"), "{answer}");
}

#[tokio::test]
async fn a_taken_port_exits_with_2_and_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = output(&["--listen", &address]).await;
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains(&address) && said.contains("in use") && output.stdout.is_empty());
}

#[tokio::test]
async fn a_bad_argument_exits_with_2_and_says_what_fits() {
    for (arguments, reason) in
        [(["--script", "boom"], "late-error"), (["--itl", "soon"], "exp:20ms"), (["--tokens", "9m"], "1000000")]
    {
        let output = output(&arguments).await;
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains(reason), "{said}");
    }
    let output = output(&["--heartbeat", "newline", "--interval", "0s"]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("interval"));
}
