//! TLS towards clients, from PEM files. Made by `shared`, used by `server`.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use super::config::TlsFiles;
use super::error::Error;
use super::socket::{Socket, Spoken};

/// Answers TLS handshakes, with HTTP/2 and HTTP/1.1 on offer.
#[derive(Clone)]
pub(super) struct Acceptor(TlsAcceptor);

impl Acceptor {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a key that is not the certificate's.
    pub(super) fn new(files: &TlsFiles) -> Result<Self, Error> {
        let unread = |file: &std::path::Path, error: &dyn fmt::Display| {
            Error::host(format!("{} cannot be read as PEM: {error}", file.display()))
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(&files.certificate)
            .and_then(Iterator::collect)
            .map_err(|error| unread(&files.certificate, &error))?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| unread(&files.key, &error))?;
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| Error::host(format!("{}: {error}", files.certificate.display())))?;
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands.
    ///
    /// # Errors
    ///
    /// The client's fault or departure.
    pub(super) async fn accept(&self, socket: Socket) -> io::Result<(TlsStream<Socket>, Spoken)> {
        let stream = self.0.accept(socket).await?;
        let spoken = match stream.get_ref().1.alpn_protocol() {
            Some(H2) => Spoken::Http2,
            _ => Spoken::Http1,
        };
        Ok((stream, spoken))
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

const H2: &[u8] = b"h2";
