//! Parsers of the values that only the proxy's flags have.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use heartline_cli::proxy::{Error, OrOff};
use http::HeaderName;
use ipnet::IpNet;

/// Reads a word with the same words and errors as in the file.
pub(super) fn read<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not an IP address with a port; write for example 127.0.0.1:8080".to_owned())
}

pub(super) fn header(text: &str) -> Result<HeaderName, String> {
    text.parse().map_err(|_| "not a header's name; write for example x-heartbeat".to_owned())
}

pub(super) fn net(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let net = text.parse::<IpNet>().ok().or_else(|| text.parse().ok().map(|address: IpAddr| address.into()));
    net.ok_or_else(|| "neither an address nor a network; write for example 10.0.0.0/8".to_owned())
}

/// A value, or the word `off`.
pub(super) fn or_off<T: Clone + Send + Sync + 'static>(
    value: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<OrOff<T>, String> + Clone + Send + Sync + 'static {
    move |text| match text {
        "off" => Ok(OrOff::Off),
        text => value(text).map(OrOff::On).map_err(|message| format!("{message}, or off")),
    }
}
