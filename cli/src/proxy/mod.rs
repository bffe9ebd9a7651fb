//! A streaming reverse proxy that gives heartbeats to engines that have none. Run by `heartline proxy`.
//!
//! One request's life, file by file:
//!
//! 1. `server` accepts its connection within the bounds of [`Limits`], reads it (`socket`) and hands it to `exchange`;
//! 2. `exchange` refuses what no proxy may pass on (`refusal`), looks at the body (`look`) and the path (`heartline::api`), chooses the
//!    engine (`route`), writes the engine's headers (`headers`, `forwarded`) and sends the request through its pool (`upstream`);
//! 3. when the engine is late, `late` answers in its place; when it answers (`answer`), `relay` passes the body on through
//!    [`KeepAlive`](heartline::KeepAlive) with the broadcaster of its interval (`hearts`); a WebSocket goes through `tunnel`;
//! 4. as long as it lives `table` lists it; `stalled` ends it when its client takes nothing more;
//! 5. however it ends, `log` says so once.
//!
//! `config` holds the settings, `admin` shows operators what happens.

mod admin;
mod answer;
mod config;
mod departure;
mod direct;
mod drain;
mod error;
mod exchange;
mod forward;
mod forwarded;
mod frames;
mod headers;
mod hearts;
mod late;
mod log;
mod look;
mod meter;
mod outlet;
mod pace;
mod refusal;
mod refuse;
mod relay;
mod reply;
mod route;
mod sending;
mod server;
mod shared;
mod signal;
#[cfg(test)]
mod sizes;
mod sniff;
mod socket;
mod stalled;
mod state;
mod table;
mod tls;
mod trailers;
mod tunnel;
mod upstream;
mod wire;
mod workers;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

pub use self::config::{
    Config, Consent, Fallback, FormChoice, HalfClose, HeartSettings, HostHeader, Limits, OrOff, Overrides, TlsFiles,
    Upstream,
};
pub use self::error::Error;
pub use self::state::{IntervalTotals, LiveStream, Phase, State};

use self::shared::Shared;
use self::workers::Workers;

/// A proxy that is bound to its addresses; it serves once [`run`](Self::run) is called.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    listener: Listening,
    admin: Option<Listening>,
    workers: Workers,
}

#[derive(Debug)]
struct Listening {
    listener: TcpListener,
    local_addr: SocketAddr,
}

impl Proxy {
    /// Checks the settings, opens the listeners and prepares the engines' pools. Connects to no engine.
    ///
    /// # Errors
    ///
    /// A setting that cannot be used, a file that cannot be read, an address that cannot be listened on.
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let (listen, admin) = (config.listen, config.admin);
        let shared = Arc::new(Shared::new(config)?);
        let admin = match admin {
            Some(address) => Some(Listening::on(address).await?),
            None => None,
        };
        Ok(Self { shared, listener: Listening::on(listen).await?, admin, workers: Workers::default() })
    }

    /// Serves connections on `count` threads of its own, each with a runtime: less work for each event than a runtime that
    /// moves tasks between threads. They end, with whatever they serve, when [`run`](Self::run) is over or dropped. Without
    /// this, connections are served by the runtime that runs the proxy.
    ///
    /// # Errors
    ///
    /// The host's, which gives no more threads or files.
    pub fn on_threads(mut self, count: usize) -> std::io::Result<Self> {
        self.shared.spread(count).map_err(std::io::Error::other)?;
        self.workers = Workers::start(count)?;
        Ok(self)
    }

    /// Where it listens for clients.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr
    }

    /// Where it listens for operators.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.local_addr)
    }

    /// A handle to reload, drain, stop and watch it while it runs.
    pub fn handle(&self) -> Handle {
        Handle { shared: Arc::clone(&self.shared) }
    }

    /// Serves until it is drained or stopped; returns how many exchanges were left and had to be cut.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the listeners; the connections go on in their tasks until they end, as after
    /// [`Handle::stop_now`] they do at once.
    pub async fn run(self) -> usize {
        let handle = self.handle();
        let Self { shared, listener, admin, workers } = self;
        let operators = async {
            match admin {
                Some(admin) => admin::run(admin.listener, handle).await,
                None => std::future::pending().await,
            }
        };
        let serving = async {
            tokio::select! {
                () = server::accept(&listener.listener, &shared, &workers) => {}
                () = shared.reached(Phase::Draining) => {}
            }
            drop(listener);
            drain::run(&shared).await
        };
        tokio::select! {
            left = serving => left,
            () = operators => 0,
            () = stalled::watch(Arc::clone(&shared)) => 0,
        }
    }
}

impl Listening {
    async fn on(address: SocketAddr) -> Result<Self, Error> {
        let refused = |error: std::io::Error| {
            Error::host(format!("cannot listen on {address}: {error}; stop what listens there or choose another port"))
        };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let local_addr = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, local_addr })
    }
}

/// Steers a running [`Proxy`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    /// Takes other settings for the requests to come; live streams keep theirs, and none is dropped.
    ///
    /// # Errors
    ///
    /// What [`Proxy::bind`] refuses, and a changed listener, which needs a restart; the old settings then stay.
    pub fn reload(&self, config: Config) -> Result<(), Error> {
        self.shared.reload(config)
    }

    /// Begins the graceful end: not ready, no new requests; live streams go on up to `drain_timeout`. Once is enough.
    pub fn drain(&self) {
        self.shared.advance(Phase::Draining);
    }

    /// Ends now, whatever lives.
    pub fn stop_now(&self) {
        self.shared.advance(Phase::Stopped);
    }

    /// What the proxy does at this moment.
    pub fn state(&self) -> State {
        self.shared.state()
    }

    /// The live exchanges, in no order.
    pub fn streams(&self) -> Vec<LiveStream> {
        self.shared.streams()
    }

    /// What the streams that have ended came to, by interval, the shortest first.
    pub fn totals(&self) -> Vec<IntervalTotals> {
        self.shared.hearts.totals()
    }
}
