//! Connections: from the planned source address to the server, with TLS where the URL asks for it. Called once a stream
//! over HTTP/1.1, once for many over HTTP/2.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio_rustls::{TlsConnector, rustls};

use super::plan::Plan;
use super::{Failure, LoadError, Protocol, Settings, Trust};

/// How to reach the server; shared by all workers.
#[derive(Clone)]
pub(super) struct Dial {
    tls: Option<(TlsConnector, ServerName<'static>)>,
    protocol: Protocol,
}

impl Dial {
    /// Prepares connections as the settings ask; reads the authorities' certificates.
    pub(super) fn new(settings: &Settings) -> Result<Self, LoadError> {
        let protocol = settings.protocol;
        if settings.url.scheme_str() != Some("https") {
            return Ok(Self { tls: None, protocol });
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| LoadError::internal(format!("TLS cannot be set up: {error}")))?
            .with_root_certificates(roots(&settings.trust)?)
            .with_no_client_auth();
        config.alpn_protocols = match protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 { .. } => vec![HTTP2.to_vec()],
        };
        let host = settings.url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| LoadError::config(format!("{host} is no name that a certificate could hold")))?;
        Ok(Self { tls: Some((TlsConnector::from(Arc::new(config)), name)), protocol })
    }

    /// Opens one connection from the planned source address.
    pub(super) async fn connect(&self, plan: &Plan, number: usize) -> Result<Wire, Failure> {
        let stream = connect(plan, number).await.map_err(|error| Failure::of_connect(&error))?;
        let Some((connector, name)) = &self.tls else {
            return Ok(Wire::Plain(stream));
        };
        let stream = connector.connect(name.clone(), stream).await.map_err(|error| match error.kind() {
            // Wrapped by tokio-rustls: what the handshake found fault with.
            io::ErrorKind::InvalidData => Failure::TlsFailed,
            _ => Failure::ConnectFailed,
        })?;
        let agreed = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        if matches!(self.protocol, Protocol::Http2 { .. }) && !agreed {
            return Err(Failure::NoHttp2);
        }
        Ok(Wire::Tls(Box::new(stream)))
    }
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dial").field("tls", &self.tls.is_some()).field("protocol", &self.protocol).finish()
    }
}

/// One connection. TLS keeps its buffers behind a pointer, so that a plain one is small.
#[derive(Debug)]
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

async fn connect(plan: &Plan, number: usize) -> io::Result<TcpStream> {
    let socket = match plan.server {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(source) = plan.sources.address(number) {
        leave_port_to_connect(&socket)?;
        socket.bind(SocketAddr::new(source, 0))?;
    }
    let stream = socket.connect(plan.server).await?;
    // A socket that refuses it is gone already; using it will say so.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Lets the kernel choose the port when it knows the whole connection, so that a port in use elsewhere, or still in
/// `TIME_WAIT`, can serve again.
#[cfg(target_os = "linux")]
fn leave_port_to_connect(socket: &TcpSocket) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
    setsockopt(socket, IpBindAddressNoPort, &true).map_err(io::Error::from)
}

#[cfg(not(target_os = "linux"))]
fn leave_port_to_connect(_socket: &TcpSocket) -> io::Result<()> {
    Ok(())
}

/// Reads the certificates of those who vouch for servers.
fn roots(trust: &Trust) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    match trust {
        Trust::Native => {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                return Err(LoadError::config(
                    "this machine knows no authority for https; install ca-certificates, or name one with --ca FILE",
                ));
            }
        }
        Trust::Authority(path) => {
            let unusable = |why: String| LoadError::config(format!("{} cannot be used: {why}", path.display()));
            let found = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
                roots.add(certificate).map_err(|error: rustls::Error| unusable(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(unusable("it holds no certificate in PEM".to_owned()));
            }
        }
    }
    Ok(roots)
}

/// HTTP/2 in ALPN (RFC 9113, section 3.2).
const HTTP2: &[u8] = b"h2";
