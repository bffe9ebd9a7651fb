//! The files that settings name: can they be read, do they hold what they should? Asked before the proxy starts.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Config;
use crate::proxy::Error;
use crate::proxy::tls::Acceptor;

impl Config {
    /// Opens every file that the settings name: certificates, the key, authorities.
    ///
    /// # Errors
    ///
    /// One line that names the setting and the file, and what is wrong with it.
    pub fn check_files(&self) -> Result<(), Error> {
        if let Some(tls) = &self.tls {
            certificates("tls_cert", &tls.certificate)?;
            PrivateKeyDer::from_pem_file(&tls.key)
                .map_err(|error| refused("tls_key", &tls.key, &error, "a private key"))?;
            Acceptor::new(tls)?; // does the key belong to the certificate?
        }
        for upstream in &self.upstreams {
            if let Some(ca) = &upstream.ca {
                certificates(&format!("upstream {:?}: ca", upstream.name), ca)?;
            }
        }
        Ok(())
    }
}

/// The text of a settings file.
pub(super) fn text(path: &Path) -> Result<String, Error> {
    let name = path.display();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text));
    read.map_err(|error| {
        Error::config(format!("{name} cannot be read ({error}): check its name and its permissions"))
    })?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(Error::config(format!("{name} has more than {FILE_BYTES_MAX} bytes: name a settings file")));
    }
    Ok(text)
}

fn certificates(key: &str, file: &Path) -> Result<(), Error> {
    let refused = |error: &rustls_pki_types::pem::Error| refused(key, file, error, "certificates");
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| refused(&error))?;
    if all.is_empty() { Err(refused(&rustls_pki_types::pem::Error::NoItemsFound)) } else { Ok(()) }
}

fn refused(key: &str, file: &Path, error: &rustls_pki_types::pem::Error, what: &str) -> Error {
    let file = file.display();
    Error::config(match error {
        rustls_pki_types::pem::Error::Io(error) => {
            format!("{key}: {file} cannot be read ({error}): check its name and its permissions")
        }
        rustls_pki_types::pem::Error::NoItemsFound => format!("{key}: {file} holds none of {what}: name a PEM file"),
        error => format!("{key}: {file} is no PEM file with {what} ({error}): name one"),
    })
}

/// Thousands of engines: a larger file is not one of settings.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
