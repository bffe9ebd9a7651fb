//! A plain hyper server, HTTP/1.1 and HTTP/2, with an event stream that stays silent for two
//! minutes, kept alive by its body.
//!
//! Run it with `cargo run --example hyper`, then watch the blank lines come with
//! `curl -N http://127.0.0.1:3000/` or `curl -N --http2-prior-knowledge http://127.0.0.1:3000/`.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use heartline::{Event, EventBody, EventSender, Heartline, KeepAlive};
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let heart = Heartline::builder().interval(Duration::from_secs(1)).build()?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/", listener.local_addr()?);
    serve(listener, heart).await?;
    Ok(())
}

/// Answers every request on every connection; returns when the listener fails.
pub(crate) async fn serve(listener: TcpListener, heart: Heartline) -> std::io::Result<()> {
    loop {
        let (socket, _) = listener.accept().await?;
        let heart = heart.clone();
        tokio::spawn(async move {
            let respond = service_fn(|_| {
                let response = answer(&heart);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = auto::Builder::new(TokioExecutor::new());
            // A connection that fails ends itself only.
            let _ = connection.serve_connection(TokioIo::new(socket), respond).await;
        });
    }
}

/// The head at once, the events when there are some.
fn answer(heart: &Heartline) -> Response<KeepAlive<EventBody>> {
    let (events, body) = heart.channel(16);
    tokio::spawn(think(events));
    let mut response = Response::new(body);
    let head = response.headers_mut();
    head.insert(CONTENT_TYPE, "text/event-stream".parse().unwrap());
    // What the layer would add: no hop on the way should hold the heartbeats back.
    head.insert(CACHE_CONTROL, "no-cache, no-transform".parse().unwrap());
    head.insert("x-accel-buffering", "no".parse().unwrap());
    response
}

/// A model that thinks for longer than most proxies wait, but not for a client that has gone.
async fn think(events: EventSender) {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(120)) => {}
        () = events.closed() => return,
    }
    // The client may go at any time; there is nobody left to tell.
    let _ = events.send(Event::data("42")).await;
}
