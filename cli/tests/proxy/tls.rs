//! TLS for the tests: a certificate for `localhost` that is good for a century, and a client that trusts its authority.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

/// A file beside this one; none of them is worth anything outside these tests.
pub(crate) fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "proxy", "tls", name].iter().collect()
}

/// Connects and agrees on `alpn`.
pub(crate) async fn connect(address: SocketAddr, alpn: &str) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("authority.pem")).expect("PEM")).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let socket = TcpStream::connect(address).await.expect("the proxy listens");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, socket).await.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn.as_bytes()));
    stream
}
