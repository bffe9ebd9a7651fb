//! How an engine begins and ends: refused settings, a taken port, a graceful shutdown.

use crate::client::{Answer, STREAM, Served, events, quick, soon};
use heartline_cli::sim::{Engine, Heartbeat, Script, Settings};
use http::Method;
use std::time::Duration;
use tokio::net::TcpStream;

#[tokio::test]
async fn a_taken_port_is_one_clear_line() {
    let served = Served::start(quick()).await;
    let error = Engine::bind(Settings { listen: served.address, ..quick() }).await.unwrap_err();
    assert!(error.is_address_in_use() && !error.is_settings());
    let line = error.to_string();
    assert!(line.contains(&served.address.to_string()) && line.contains("in use") && !line.contains('\n'), "{line}");
}

#[tokio::test]
async fn refused_settings_never_bind() {
    let heartbeat = Heartbeat::Auto;
    let error = Engine::bind(Settings { heartbeat, interval: Duration::ZERO, ..quick() }).await.unwrap_err();
    assert!(error.is_settings());
    assert!(error.to_string().contains("interval"));
}

#[tokio::test]
async fn shutdown_waits_for_streams_that_end() {
    let served = Served::start(Settings { grace: Duration::from_secs(60), ..quick() }).await;
    let (address, expected) = (served.address, served.expected("/events", ""));
    let response = served.send(Method::GET, "/events?ttft=80ms", "").await.unwrap();
    let ended = served.stop();
    let answer = soon(Answer::read(response)).await;
    assert_eq!(answer.bytes(), expected);
    soon(ended).await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn shutdown_breaks_streams_that_outlast_the_grace() {
    let settings = Settings { script: Script::Hang, grace: Duration::from_millis(30), ..quick() };
    let served = Served::start(settings).await;
    let stats = served.stats.clone();
    let response = served.send(Method::GET, "/events", "").await.unwrap();
    soon(served.stop()).await.unwrap();
    assert!(soon(Answer::read(response)).await.broken);
    assert_eq!((stats.live(), stats.dropped()), (0, 1));
}

#[tokio::test]
async fn shutdown_with_heartbeats_ends_streams_with_an_error_their_client_reads() {
    let settings =
        Settings { script: Script::Hang, heartbeat: Heartbeat::Auto, grace: Duration::from_millis(30), ..quick() };
    let served = Served::start(settings).await;
    let message = served.send(Method::POST, "/v1/messages", STREAM).await.unwrap();
    let chat = served.send(Method::POST, "/v1/chat/completions", STREAM).await.unwrap();
    let lines = served.send(Method::POST, "/api/chat", "").await.unwrap();
    let ended = served.stop();
    let message = soon(Answer::read(message)).await;
    assert_eq!((events(&message.text())[0].0.as_str(), message.broken), ("error", false));
    let chat = soon(Answer::read(chat)).await;
    assert!(events(&chat.text())[0].1.starts_with(r#"{"error":{"#) && !chat.broken);
    let lines = soon(Answer::read(lines)).await;
    assert!(lines.text().starts_with(r#"{"error":"#) && !lines.broken);
    soon(ended).await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_end() {
    let served = Served::start(Settings { grace: Duration::from_secs(60), ..quick() }).await;
    let idle = served.http2().await;
    let silent = TcpStream::connect(served.address).await.unwrap();
    soon(served.stop()).await.unwrap();
    drop((idle, silent));
}
