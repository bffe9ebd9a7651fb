//! The scripted engine over real loopback sockets: every API, script, wait mode and override.
#![cfg(feature = "sim")]

use heartline::sim::{Engine, Settings, Stats, expected_body};

#[tokio::test]
async fn smoke() {
    let settings = Settings { listen: "127.0.0.1:0".parse().unwrap(), ..Settings::default() };
    let engine = Engine::bind(settings.clone()).await.unwrap();
    let addr = engine.local_addr();
    let stats: Stats = engine.stats();
    let (tx, rx) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(engine.run_until(async {
        let _ = rx.await;
    }));
    let io = tokio::net::TcpStream::connect(addr).await.unwrap();
    let (mut send, conn) = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(io)).await.unwrap();
    tokio::spawn(conn);
    let target = "/v1/chat/completions?ttft=5ms&itl=1ms&tokens=5";
    let body = r#"{"stream":true}"#;
    let req = http::Request::post(target).header("host", "x").body(body.to_owned()).unwrap();
    let res = send.send_request(req).await.unwrap();
    println!("{:?}", res.headers());
    let got = http_body_util::BodyExt::collect(res.into_body()).await.unwrap().to_bytes();
    println!("{}", String::from_utf8_lossy(&got));
    assert_eq!(got, expected_body(&settings, target, body.as_bytes()));
    drop(tx);
    server.await.unwrap();
    println!("{stats:?}");
}
