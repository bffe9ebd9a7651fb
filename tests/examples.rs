//! The examples as they stand, on loopback sockets: each keeps its silent answer alive.
#![cfg(feature = "tower")]

#[allow(dead_code)] // its `main` binds a fixed port
#[path = "../docs/examples/axum.rs"]
mod axum_example;
#[path = "http/client.rs"]
mod client;
#[allow(dead_code)] // its `main` binds a fixed port
#[path = "../docs/examples/hyper.rs"]
mod hyper_example;

use client::{Client, bind, heart, read_until, until};
use http::Version;

#[tokio::test]
async fn the_axum_example_keeps_its_answer_alive() {
    let (heart, (listener, address)) = (heart(), bind().await);
    let app = axum_example::app(&heart);
    let server = tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = Client::connect(address, version).await;
        let response = client.get("/answer").await;
        assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
        read_until(&mut response.into_body(), "\n\n").await;
        drop(client);
        until(|| heart.active() == 0).await;
    }
    server.abort();
}

#[tokio::test]
async fn the_hyper_example_keeps_its_answer_alive() {
    let (heart, (listener, address)) = (heart(), bind().await);
    let server = tokio::spawn(hyper_example::serve(listener, heart.clone()));
    for version in [Version::HTTP_11, Version::HTTP_2] {
        let mut client = Client::connect(address, version).await;
        let response = client.get("/").await;
        read_until(&mut response.into_body(), "\n\n").await;
        drop(client);
        until(|| heart.active() == 0).await;
    }
    server.abort();
}
