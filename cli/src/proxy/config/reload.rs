//! What a reload may change. Asked by the server and by the command before they take new settings.

use super::Config;
use crate::proxy::Error;

impl Config {
    /// The settings in which `new` differs from `old` and that only a restart can change: the sockets that are open.
    ///
    /// TLS files may change, and are read again by a reload; whether TLS is spoken at all may not.
    pub fn reload_differences(old: &Self, new: &Self) -> Vec<&'static str> {
        let mut differences = Vec::new();
        if old.listen != new.listen {
            differences.push("listen");
        }
        if old.admin != new.admin {
            differences.push("admin");
        }
        if old.tls.is_some() != new.tls.is_some() {
            differences.push("tls_cert");
        }
        differences
    }

    /// Refuses to go from `self` to `new` without a restart when they differ in what is fixed at the start.
    ///
    /// # Errors
    ///
    /// One line that names the settings.
    pub fn check_reload(&self, new: &Self) -> Result<(), Error> {
        let differences = Self::reload_differences(self, new);
        if differences.is_empty() {
            return Ok(());
        }
        let named = differences.join(" and ");
        Err(Error::config(format!("{named} changed, which needs a restart: restart, or change it back")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::TlsFiles;

    #[test]
    fn only_open_sockets_need_a_restart() {
        let old = Config::single(http::Uri::from_static("http://127.0.0.1:1"));
        let mut new = Config::single(http::Uri::from_static("http://127.0.0.1:2"));
        new.drain_timeout *= 2;
        old.check_reload(&new).expect("engines and times may change");

        new.listen.set_port(1);
        new.admin = None;
        new.tls = Some(TlsFiles { certificate: "a".into(), key: "b".into() });
        assert_eq!(Config::reload_differences(&old, &new), ["listen", "admin", "tls_cert"]);
        let message = old.check_reload(&new).unwrap_err().to_string();
        assert!(message.contains("listen and admin and tls_cert changed") && message.contains("restart"), "{message}");
    }
}
