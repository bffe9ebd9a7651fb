//! Servers on loopback sockets, in every way that a stream can be served, with answers that the test
//! drives by hand.
#![allow(unreachable_pub)]

use crate::client::bind;
use crate::common::{Engine, Scripted, engine};
use axum::Router;
use axum::body::Body as AxumBody;
use heartline::{Heartline, KeepAlive};
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::{Layer, ServiceExt};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stack {
    Axum,
    Hyper,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Layer,
    Body,
}

/// One way to serve a stream.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub stack: Stack,
    pub way: Way,
    pub version: Version,
}

pub const CASES: [Case; 8] = {
    use Stack::{Axum, Hyper};
    use Way::{Body, Layer};
    const fn case(stack: Stack, way: Way, version: Version) -> Case {
        Case { stack, way, version }
    }
    [
        case(Axum, Layer, Version::HTTP_11),
        case(Axum, Layer, Version::HTTP_2),
        case(Axum, Body, Version::HTTP_11),
        case(Axum, Body, Version::HTTP_2),
        case(Hyper, Layer, Version::HTTP_11),
        case(Hyper, Layer, Version::HTTP_2),
        case(Hyper, Body, Version::HTTP_11),
        case(Hyper, Body, Version::HTTP_2),
    ]
};

/// The bodies that a server answers with, one for each request.
#[derive(Clone, Default)]
pub struct Answers(Arc<Mutex<VecDeque<Scripted>>>);

impl Answers {
    pub fn add(&self) -> Engine {
        let (hand, body) = engine();
        self.0.lock().unwrap().push_back(body);
        hand
    }

    fn next(&self) -> Response<Scripted> {
        let body = self.0.lock().unwrap().pop_front().expect("an answer was added");
        let response = Response::builder().header("content-type", "text/event-stream").header("trailer", "x-tokens");
        response.body(body).unwrap()
    }
}

/// A server whose next answer the test drives by hand.
pub struct Server {
    pub address: SocketAddr,
    pub answers: Answers,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

pub async fn serve(case: Case, heart: &Heartline) -> Server {
    let (listener, address) = bind().await;
    let (answers, heart) = (Answers::default(), heart.clone());
    let accepting = match case.stack {
        Stack::Axum => tokio::spawn(serve_axum(listener, case, answers.clone(), heart)),
        Stack::Hyper => tokio::spawn(serve_hyper(listener, case, answers.clone(), heart)),
    };
    Server { address, answers, accepting }
}

pub async fn serve_axum(listener: TcpListener, case: Case, answers: Answers, heart: Heartline) {
    let app: Router = match case.way {
        Way::Layer => {
            let layer = heart.layer();
            Router::new().fallback(move || ready(answers.next().map(AxumBody::new))).layer(layer)
        }
        Way::Body => {
            let respond = move || ready(answers.next().map(|body| AxumBody::new(heart.keep_alive(body))));
            Router::new().fallback(respond)
        }
    };
    axum::serve(listener, app).await.unwrap();
}

pub async fn serve_hyper(listener: TcpListener, case: Case, answers: Answers, heart: Heartline) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (answers, heart) = (answers.clone(), heart.clone());
        let respond =
            service_fn(move |request: Request<Incoming>| respond(case, answers.clone(), heart.clone(), request));
        let io = TokioIo::new(socket);
        // A client that goes away fails its connection; that is what some tests do.
        tokio::spawn(async move {
            if case.version == Version::HTTP_2 {
                let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(io, respond).await;
            } else {
                let _ = http1::Builder::new().serve_connection(io, respond).await;
            }
        });
    }
}

pub async fn respond(
    case: Case,
    answers: Answers,
    heart: Heartline,
    request: Request<Incoming>,
) -> Result<Response<KeepAlive<Scripted>>, Infallible> {
    match case.way {
        Way::Layer => {
            let handler = tower::service_fn(move |_: Request<Incoming>| ready(Ok(answers.next())));
            heart.layer().layer(handler).oneshot(request).await
        }
        Way::Body => Ok(answers.next().map(|body| heart.keep_alive(body))),
    }
}
