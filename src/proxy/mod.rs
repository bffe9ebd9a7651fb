//! A streaming reverse proxy that gives heartbeats to engines that have none. Run by `heartline proxy`.
//!
//! One request's life, file by file:
//!
//! 1. `server` accepts its connection within the bounds of [`Limits`], reads it (`socket`) and hands it to `exchange`;
//! 2. `exchange` refuses what no proxy may pass on (`refusal`), looks at the body (`look`) and the path (`api`), chooses the
//!    engine (`route`), writes the engine's headers (`headers`) and sends the request through its pool (`upstream`);
//! 3. when the engine is late, `late` answers in its place; when it answers, `relay` passes the body on through
//!    [`KeepAlive`](crate::KeepAlive) with the broadcaster of its interval (`hearts`); a WebSocket goes through `tunnel`;
//! 4. as long as it lives `table` lists it; `stalled` ends it when its client takes nothing more;
//! 5. however it ends, `log` says so once.
//!
//! `config` holds the settings, `admin` shows operators what happens.

#![allow(dead_code, reason = "the parts are being put together")]

mod admin;
mod api;
mod config;
mod error;
mod late;
mod look;
mod route;
mod state;

pub use self::config::{Config, Consent, FormChoice, HalfClose, HeartSettings, HostHeader, Limits, TlsFiles, Upstream};
pub use self::error::Error;
pub use self::state::{LiveStream, Phase, State};

use std::net::SocketAddr;

/// A proxy that is bound to its addresses; it serves once [`run`](Self::run) is called.
#[derive(Debug)]
pub struct Proxy {
    handle: Handle,
    local_addr: SocketAddr,
    admin_addr: Option<SocketAddr>,
}

impl Proxy {
    /// Checks the settings, opens the listeners and prepares the engines' pools. Connects to no engine.
    ///
    /// # Errors
    ///
    /// A setting that cannot be used, a file that cannot be read, an address that cannot be listened on.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        Ok(Self { local_addr: config.listen, admin_addr: config.admin, handle: Handle {} })
    }

    /// Where it listens for clients.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Where it listens for operators.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin_addr
    }

    /// A handle to reload, drain, stop and watch it while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until it is drained or stopped; returns how many streams were left and had to be cut.
    pub async fn run(self) -> usize {
        0
    }
}

/// Steers a running [`Proxy`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {}

impl Handle {
    /// Takes other settings for the requests to come; live streams keep theirs, and none is dropped.
    ///
    /// # Errors
    ///
    /// What [`Proxy::bind`] refuses, and a changed listener, which needs a restart; the old settings then stay.
    pub fn reload(&self, config: Config) -> Result<(), Error> {
        drop(config);
        Ok(())
    }

    /// Begins the graceful end: not ready, no new requests; live streams go on up to `drain_timeout`. Once is enough.
    pub fn drain(&self) {}

    /// Ends now, whatever lives.
    pub fn stop_now(&self) {}

    /// What the proxy does at this moment.
    pub fn state(&self) -> State {
        State::default()
    }

    /// The live streams, in no order.
    pub fn streams(&self) -> Vec<LiveStream> {
        Vec::new()
    }
}
