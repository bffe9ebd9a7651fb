//! A layer of settings that may be absent: a file is one, flags and environment are another. Put together here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

use super::place::{Problem, Step};
use super::units::{Count, Read, Size, Written, written};
use super::{Config, Consent, ENGINE, Fallback, FormChoice, HalfClose, HostHeader, Limits, TlsFiles, Upstream};
use crate::values;
use heartline::Cadence;

/// Settings of which each may be absent. A file is read into one; flags and environment make another.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Layer {
    /// Where clients connect.
    #[serde(deserialize_with = "some")]
    pub listen: Option<SocketAddr>,
    /// Where operators connect.
    #[serde(deserialize_with = "some")]
    pub admin: Option<OrOff<SocketAddr>>,
    /// The certificate chain for clients.
    #[serde(deserialize_with = "some")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate.
    #[serde(deserialize_with = "some")]
    pub tls_key: Option<PathBuf>,
    /// Peers whose `X-Forwarded-*` are believed.
    #[serde(deserialize_with = "all")]
    pub trusted: Option<Vec<IpNet>>,
    /// What a client means that closes its sending side early.
    #[serde(deserialize_with = "some")]
    pub half_close: Option<HalfClose>,
    /// How long streams may go on after a drain began.
    #[serde(deserialize_with = "some")]
    pub drain_timeout: Option<Duration>,
    /// Where requests for unknown models go.
    #[serde(deserialize_with = "some")]
    pub unknown_models: Option<Fallback>,
    /// Where requests go that name no model.
    #[serde(deserialize_with = "some")]
    pub no_model: Option<Fallback>,
    /// Bounds.
    pub limits: LimitsLayer,
    /// Settings of every engine: in a file those that an engine has unless it says otherwise (`[defaults]`), in flags those
    /// that go before each engine's own.
    #[serde(rename = "defaults")]
    pub every: UpstreamLayer,
    /// The engines (`[[upstream]]`); from flags at most one, which takes the place of the file's only one.
    #[serde(rename = "upstream")]
    pub upstreams: Vec<UpstreamLayer>,
}

/// Bounds of which each may be absent; [`Limits`] says what each bounds.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is documented at the field of the same name in Limits")]
pub struct LimitsLayer {
    #[serde(deserialize_with = "number")]
    pub connections: Option<usize>,
    #[serde(deserialize_with = "number")]
    pub connections_per_address: Option<usize>,
    #[serde(deserialize_with = "number")]
    pub streams_per_connection: Option<usize>,
    #[serde(deserialize_with = "bytes")]
    pub header_bytes: Option<usize>,
    #[serde(deserialize_with = "number")]
    pub headers: Option<usize>,
    #[serde(deserialize_with = "some")]
    pub header_timeout: Option<Duration>,
    #[serde(deserialize_with = "bytes_or_off")]
    pub body_rate: Option<OrOff<usize>>,
    #[serde(deserialize_with = "some")]
    pub user_timeout: Option<Duration>,
    #[serde(deserialize_with = "some")]
    pub stalled_after: Option<Duration>,
    #[serde(deserialize_with = "bytes")]
    pub look_bytes: Option<usize>,
}

/// Settings of an engine of which each may be absent; [`Upstream`] and [`HeartSettings`](super::HeartSettings) say what
/// each means.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is documented at the field of the same name in Upstream and HeartSettings")]
pub struct UpstreamLayer {
    pub name: Option<String>,
    #[serde(deserialize_with = "some")]
    pub url: Option<Uri>,
    #[serde(deserialize_with = "some")]
    pub ca: Option<PathBuf>,
    pub paths: Option<Vec<String>>,
    pub models: Option<Vec<String>>,
    #[serde(deserialize_with = "some")]
    pub host: Option<HostHeader>,
    #[serde(deserialize_with = "some")]
    pub interval: Option<Duration>,
    #[serde(deserialize_with = "some")]
    pub cadence: Option<Cadence>,
    #[serde(deserialize_with = "some")]
    pub heartbeat: Option<FormChoice>,
    #[serde(deserialize_with = "some")]
    pub heartbeat_header: Option<OrOff<HeaderName>>,
    #[serde(deserialize_with = "some")]
    pub max_silence: Option<OrOff<Duration>>,
    #[serde(deserialize_with = "some")]
    pub max_lifetime: Option<OrOff<Duration>>,
    #[serde(deserialize_with = "some")]
    pub ndjson: Option<Consent>,
    #[serde(deserialize_with = "some")]
    pub json: Option<Consent>,
    #[serde(deserialize_with = "some")]
    pub commit_after: Option<OrOff<Duration>>,
    #[serde(deserialize_with = "some")]
    pub commit_json_after: Option<OrOff<Duration>>,
    #[serde(deserialize_with = "some")]
    pub pool_idle: Option<OrOff<Duration>>,
    #[serde(deserialize_with = "some")]
    pub connect_timeout: Option<Duration>,
    #[serde(deserialize_with = "some")]
    pub response_timeout: Option<OrOff<Duration>>,
    #[serde(deserialize_with = "some")]
    pub body_idle: Option<OrOff<Duration>>,
}

/// A setting that can be turned off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrOff<T> {
    /// It is off, whatever a lower layer says.
    Off,
    /// It has this value.
    On(T),
}

impl<T> From<OrOff<T>> for Option<T> {
    fn from(setting: OrOff<T>) -> Self {
        match setting {
            OrOff::Off => None,
            OrOff::On(value) => Some(value),
        }
    }
}

impl<T> From<Option<T>> for OrOff<T> {
    fn from(setting: Option<T>) -> Self {
        setting.map_or(Self::Off, Self::On)
    }
}

impl<T: Written> Written for OrOff<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(text: &str) -> Result<Self, String> {
        values::or_off(text, T::read).map(Self::from)
    }
}

/// Puts `over` (flags) over `file`, and both over the defaults.
pub(super) fn resolve(file: &Layer, over: &Layer) -> Result<Config, Problem> {
    let upstreams = engines(file, over)?;
    let mut config = Config { upstreams, ..Config::single(Uri::from_static("http://127.0.0.1")) };
    let (mut certificate, mut key) = (None, None);
    for layer in [file, over] {
        put(&mut config.listen, layer.listen);
        put(&mut config.admin, layer.admin.map(Into::into));
        put(&mut config.trusted, layer.trusted.clone());
        put(&mut config.half_close, layer.half_close);
        put(&mut config.drain_timeout, layer.drain_timeout);
        put(&mut config.unknown_models, layer.unknown_models.clone());
        put(&mut config.no_model, layer.no_model.clone());
        layer.limits.put(&mut config.limits);
        certificate = layer.tls_cert.clone().or(certificate);
        key = layer.tls_key.clone().or(key);
    }
    config.tls = match (certificate, key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
        (Some(_), None) => {
            return Err(Problem::at(["tls_cert"], "tls_cert is set without tls_key: set both, or neither"));
        }
        (None, Some(_)) => {
            return Err(Problem::at(["tls_key"], "tls_key is set without tls_cert: set both, or neither"));
        }
    };
    Ok(config)
}

/// The engines of both layers.
fn engines(file: &Layer, over: &Layer) -> Result<Vec<Upstream>, Problem> {
    let every = &file.every;
    if every.name.is_some() || every.url.is_some() || every.paths.is_some() || every.models.is_some() {
        let message = "name, url, paths and models belong to one engine: set them under [[upstream]]";
        return Err(Problem::at(["defaults"], message));
    }
    let none = UpstreamLayer::default();
    let listed: Vec<(&UpstreamLayer, &UpstreamLayer)> = match (&*file.upstreams, &*over.upstreams) {
        ([], []) => {
            let message = "no engine is given: add --upstream http://127.0.0.1:23333, or an [[upstream]] with its url";
            return Err(Problem::nowhere(message));
        }
        (own, []) => own.iter().map(|own| (own, &none)).collect(),
        ([], named) => named.iter().map(|named| (named, &none)).collect(),
        ([own], [named]) => vec![(own, named)],
        (own, _) => {
            let many = own.len();
            let message =
                format!("--upstream names one engine and the file has {many}: leave it out, or change the file");
            return Err(Problem::nowhere(message));
        }
    };
    let mut engines = Vec::new();
    for (index, (own, named)) in listed.into_iter().enumerate() {
        let Some(url) = named.url.as_ref().or(own.url.as_ref()) else {
            let message = "this upstream has no url: add url = \"http://127.0.0.1:23333\"";
            return Err(Problem::at(Step::upstream(index, None), message));
        };
        let name = if index == 0 { ENGINE.to_owned() } else { format!("{ENGINE}-{}", index + 1) };
        let mut engine = Upstream::new(name, url.clone());
        for layer in [every, own, named, &over.every] {
            layer.put(&mut engine);
        }
        let asked = [own, named, &over.every].iter().any(|layer| layer.ca.is_some());
        if !asked && url.scheme_str() != Some("https") {
            engine.ca = None; // a default for those that speak TLS
        }
        engines.push(engine);
    }
    Ok(engines)
}

impl UpstreamLayer {
    /// Sets what this layer says; the address aside.
    fn put(&self, engine: &mut Upstream) {
        put(&mut engine.name, self.name.clone());
        put(&mut engine.ca, self.ca.clone().map(Some));
        put(&mut engine.paths, self.paths.as_deref().map(plain_paths));
        put(&mut engine.models, self.models.clone());
        put(&mut engine.host, self.host.clone());
        put(&mut engine.heart.interval, self.interval);
        put(&mut engine.heart.cadence, self.cadence);
        put(&mut engine.heart.form, self.heartbeat.clone());
        put(&mut engine.heart.form_header, self.heartbeat_header.clone().map(Into::into));
        put(&mut engine.heart.max_silence, self.max_silence.map(Into::into));
        put(&mut engine.heart.max_lifetime, self.max_lifetime.map(Into::into));
        put(&mut engine.heart.ndjson, self.ndjson);
        put(&mut engine.heart.json, self.json);
        put(&mut engine.commit_after, self.commit_after.map(Into::into));
        put(&mut engine.commit_json_after, self.commit_json_after.map(Into::into));
        put(&mut engine.pool_idle, self.pool_idle.map(|idle| Option::from(idle).unwrap_or_default()));
        put(&mut engine.connect_timeout, self.connect_timeout);
        put(&mut engine.response_timeout, self.response_timeout.map(Into::into));
        put(&mut engine.body_idle, self.body_idle.map(Into::into));
    }
}

impl LimitsLayer {
    fn put(&self, limits: &mut Limits) {
        put(&mut limits.connections, self.connections);
        put(&mut limits.connections_per_address, self.connections_per_address);
        let streams = self.streams_per_connection.map(|streams| u32::try_from(streams).unwrap_or(u32::MAX));
        put(&mut limits.streams_per_connection, streams);
        put(&mut limits.header_bytes, self.header_bytes);
        put(&mut limits.headers, self.headers);
        put(&mut limits.header_timeout, self.header_timeout);
        put(&mut limits.body_rate, self.body_rate.map(Into::into));
        put(&mut limits.user_timeout, self.user_timeout);
        put(&mut limits.stalled_after, self.stalled_after);
        put(&mut limits.look_bytes, self.look_bytes);
    }
}

/// `/v1/` means what `/v1` means, and `/` what no prefix means: every path.
fn plain_paths(paths: &[String]) -> Vec<String> {
    if paths.iter().any(|path| path == "/") {
        return Vec::new();
    }
    paths.iter().map(|path| path.strip_suffix('/').unwrap_or(path).to_owned()).collect()
}

fn put<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}

fn some<'de, D: Deserializer<'de>, T: Written>(deserializer: D) -> Result<Option<T>, D::Error> {
    written(deserializer).map(Some)
}

fn all<'de, D: Deserializer<'de>, T: Written>(deserializer: D) -> Result<Option<Vec<T>>, D::Error> {
    let all = Vec::<Read<T>>::deserialize(deserializer)?;
    Ok(Some(all.into_iter().map(|Read(value)| value).collect()))
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    written(deserializer).map(|Count(count)| Some(count))
}

fn bytes_or_off<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OrOff<usize>>, D::Error> {
    written(deserializer).map(|size| match size {
        OrOff::Off => Some(OrOff::Off),
        OrOff::On(Size(size)) => Some(OrOff::On(size)),
    })
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    written(deserializer).map(|Size(size)| Some(size))
}
