//! An axum server with an event stream that stays silent for two minutes, kept alive by the layer.
//!
//! Run it with `cargo run --example axum --features tower`, then watch the blank lines come with
//! `curl -N http://127.0.0.1:3000/answer`. Ctrl-C drains: the streams end before the server does.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::response::sse::{Event, Sse};
use axum::routing::get;
use futures::Stream;
use heartline::Heartline;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let heart = Heartline::builder().interval(Duration::from_secs(1)).build()?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}/answer", listener.local_addr()?);
    axum::serve(listener, app(&heart)).with_graceful_shutdown(stopped(heart)).await?;
    Ok(())
}

/// The routes; every event stream among their responses is kept alive.
pub(crate) fn app(heart: &Heartline) -> Router {
    Router::new().route("/answer", get(answer)).layer(heart.layer().auto_form().label("answer"))
}

/// A model that thinks for longer than most proxies wait.
async fn answer() -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(futures::stream::once(async {
        tokio::time::sleep(Duration::from_secs(120)).await;
        Ok(Event::default().data("42"))
    }))
}

/// Returns at Ctrl-C, with the drain begun: axum stops accepting while the live streams come to
/// their ends.
async fn stopped(heart: Heartline) {
    if tokio::signal::ctrl_c().await.is_ok() {
        tokio::spawn(async move { heart.drain(Duration::from_secs(10)).await });
    }
}
