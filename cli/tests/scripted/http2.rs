//! The same scripts over HTTP/2, and certificates for TLS: what `cli/tests/load_targets.rs` measures.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

use crate::scripted::{EVENTS, Step};

/// A server that answers request `i` with script `i` modulo their number. `Raw` and `Demand` mean nothing to it.
pub(crate) struct Server2 {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// How many connections it has taken.
    pub(crate) connections: Arc<AtomicUsize>,
    /// After how many requests a connection takes no more; no end when 0.
    pub(crate) requests_max: Arc<AtomicUsize>,
    _task: JoinSet<Infallible>,
}

impl Server2 {
    /// Starts listening on a free port; a connection takes `streams_max` streams.
    pub(crate) async fn start(scripts: Vec<Vec<Step>>, streams_max: u32, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let taken = Arc::clone(&connections);
        let requests_max = Arc::new(AtomicUsize::new(0));
        let limit = Arc::clone(&requests_max);
        let scripts = Arc::new((scripts, AtomicUsize::new(0)));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut all = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                taken.fetch_add(1, Ordering::Relaxed);
                let (scripts, tls, limit) = (Arc::clone(&scripts), tls.clone(), Arc::clone(&limit));
                all.spawn(async move {
                    match tls {
                        None => serve(stream, scripts, streams_max, &limit).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, scripts, streams_max, &limit).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, connections, requests_max, _task: task }
    }
}

async fn serve<S>(stream: S, scripts: Arc<(Vec<Vec<Step>>, AtomicUsize)>, streams_max: u32, requests_max: &AtomicUsize)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = h2::server::Builder::new().max_concurrent_streams(streams_max).handshake::<_, Bytes>(stream).await;
    let Ok(mut connection) = handshake else { return };
    let mut streams = JoinSet::new();
    let mut requests = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        requests += 1;
        if requests == requests_max.load(Ordering::Relaxed) {
            connection.graceful_shutdown();
        }
        let (scripts, next) = &*scripts;
        let script = scripts[next.fetch_add(1, Ordering::Relaxed) % scripts.len()].clone();
        streams.spawn(async move {
            let mut body = request.into_body();
            while let Some(Ok(_)) = body.data().await {}
            // A client that went away ends its script.
            let _ = play(respond, script).await;
        });
    }
}

async fn play(mut respond: SendResponse<Bytes>, script: Vec<Step>) -> Result<(), h2::Error> {
    let response = Response::builder().status(StatusCode::OK).header("content-type", EVENTS).body(()).unwrap();
    let mut stream = respond.send_response(response, false)?;
    for step in script {
        match step {
            Step::Chunk(bytes) => stream.send_data(bytes.into(), false)?,
            Step::Beat(bytes, times, every_ms) => {
                for _ in 0..times {
                    tokio::time::sleep(Duration::from_millis(every_ms)).await;
                    stream.send_data(Bytes::from_static(bytes), false)?;
                }
            }
            Step::Wait(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Finish => return stream.send_data(Bytes::new(), true),
            Step::Reset => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return Ok(());
            }
            Step::Hang => std::future::pending().await,
            Step::Raw(_) | Step::Demand(_) => {}
        }
    }
    Ok(())
}

/// An acceptor whose certificate a file of one authority vouches for; the file is removed when dropped.
pub(crate) struct Authority {
    /// The authority's certificate in PEM.
    pub(crate) file: std::path::PathBuf,
    certificate: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Authority {
    /// Makes a certificate for 127.0.0.1 that vouches for itself.
    pub(crate) fn new(name: &str) -> Self {
        let certificate = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let file = std::env::temp_dir().join(format!("heartline-{name}-{}.pem", std::process::id()));
        std::fs::write(&file, certificate.cert.pem()).unwrap();
        Self { file, certificate }
    }

    /// Returns an acceptor that offers one protocol.
    pub(crate) fn acceptor(&self, protocol: &str) -> TlsAcceptor {
        let key = rustls_pki_types::PrivatePkcs8KeyDer::from(self.certificate.signing_key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.cert.der().clone()], key.into())
            .unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        // It was there; a temporary folder that is gone took it along.
        let _ = std::fs::remove_file(&self.file);
    }
}
