//! What all parts of one proxy share: the settings in force, the engines, the broadcasters, the live exchanges, the phase.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use tokio::sync::{Notify, watch};

use super::config::Config;
use super::error::Error;
use super::forwarded::Trust;
use super::headers::Pseudonym;
use super::hearts::Hearts;
use super::signal::{Order, Signal};
use super::state::{LiveStream, Phase, State};
use super::table::Table;
use super::tls::Acceptor;
use super::upstream::Engine;
use heartline::StreamSnapshot;

/// The state of one proxy.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) running: ArcSwap<Running>,
    pub(super) hearts: Hearts,
    pub(super) table: Arc<Table>,
    pub(super) pseudonym: Pseudonym,
    /// The phase, and whether to end now.
    pub(super) phase: watch::Sender<Phase>,
    pub(super) tunnels: AtomicUsize,
    /// Whether the log has it that a trusted peer sent a malformed field.
    pub(super) malformed_told: AtomicBool,
    /// The connections, by a number of their own, to be told of the end.
    connections: DashMap<u64, Arc<Signal>>,
    next_connection: AtomicU64,
    addresses: Mutex<HashMap<IpAddr, usize>>,
    /// Told when the last connection has gone.
    disconnected: Notify,
    reloads: AtomicU64,
}

/// The settings in force, and what was made of them.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) config: Config,
    pub(super) engines: Vec<Arc<Engine>>,
    pub(super) tls: Option<Acceptor>,
}

impl Running {
    fn new(config: Config, hearts: &Hearts, before: Option<&Self>) -> Result<Self, Error> {
        config.check()?;
        let engines = config.upstreams.iter().map(|settings| {
            let before = before.into_iter().flat_map(|before| &before.engines);
            let before = before.map(|engine| &**engine).find(|engine| engine.settings.name == settings.name);
            Engine::new(settings.clone(), hearts, before).map(Arc::new)
        });
        let engines = engines.collect::<Result<_, _>>()?;
        let tls = config.tls().as_ref().map(Acceptor::new).transpose()?;
        Ok(Self { config, engines, tls })
    }

    /// Whether what `peer` says about earlier hops is believed.
    pub(super) fn trust(&self, peer: IpAddr) -> Trust {
        let peer = peer.to_canonical();
        match self.config.trusted.iter().any(|net| net.contains(&peer)) {
            true => Trust::Trusted,
            false => Trust::Untrusted,
        }
    }
}

impl Shared {
    pub(super) fn new(config: Config) -> Result<Self, Error> {
        let hearts = Hearts::default();
        let running = Running::new(config, &hearts, None)?;
        Ok(Self {
            running: ArcSwap::from_pointee(running),
            hearts,
            table: Arc::new(Table::default()),
            pseudonym: Pseudonym::new(number()),
            phase: watch::Sender::new(Phase::Serving),
            tunnels: AtomicUsize::new(0),
            malformed_told: AtomicBool::new(false),
            connections: DashMap::new(),
            next_connection: AtomicU64::new(0),
            addresses: Mutex::new(HashMap::new()),
            disconnected: Notify::new(),
            reloads: AtomicU64::new(0),
        })
    }

    /// Takes other settings; see [`Handle::reload`](super::Handle::reload).
    pub(super) fn reload(&self, config: Config) -> Result<(), Error> {
        let before = self.running.load_full();
        before.config.check_reload(&config)?;
        let running = Running::new(config, &self.hearts, Some(&before))?;
        let used: Vec<_> = running.engines.iter().flat_map(|engine| engine.hearts.iter().cloned()).collect();
        self.running.store(Arc::new(running));
        drop(before); // its engines' broadcasters may be nobody's now
        self.hearts.forget(&used);
        self.reloads.fetch_add(1, Ordering::Relaxed); // a count
        Ok(())
    }

    /// Prepares for so many threads that serve connections; before any does.
    ///
    /// # Errors
    ///
    /// None that [`new`](Self::new) did not have with the same settings.
    pub(super) fn spread(&self, threads: usize) -> Result<(), Error> {
        self.hearts.spread(threads);
        let before = self.running.load_full();
        let running = Running::new(before.config.clone(), &self.hearts, Some(&before))?;
        self.running.store(Arc::new(running));
        Ok(())
    }

    /// Where the proxy is in its life.
    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Goes on to a later phase; never back.
    pub(super) fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|current| {
            let is_later = phase as u8 > *current as u8;
            if is_later {
                *current = phase;
            }
            is_later
        });
    }

    /// Waits for `phase` or a later one.
    pub(super) async fn reached(&self, phase: Phase) {
        let mut phases = self.phase.subscribe();
        let _ = phases.wait_for(|current| *current as u8 >= phase as u8).await; // the sender is in `self`
    }

    /// Orders every connection to finish or to abort.
    pub(super) fn order_all(&self, order: Order) {
        let signals: Vec<_> = self.connections.iter().map(|entry| Arc::clone(entry.value())).collect();
        for signal in signals {
            signal.order(order);
        }
    }

    /// Waits until no connection is left.
    pub(super) async fn disconnected(&self) {
        loop {
            let mut disconnected = std::pin::pin!(self.disconnected.notified());
            disconnected.as_mut().enable(); // listens before it counts
            if self.connections.is_empty() {
                return;
            }
            disconnected.await;
        }
    }

    /// A place for a connection of `peer`; `None` when a bound is reached.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let running = self.running.load();
        let limits = &running.config.limits;
        if self.connections.len() >= limits.connections {
            return None;
        }
        let peer = holder(peer);
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let here = addresses.entry(peer).or_default();
        if *here >= limits.connections_per_address {
            return None;
        }
        *here += 1;
        drop(addresses);
        let number = self.next_connection.fetch_add(1, Ordering::Relaxed); // only has to be unique
        let signal = Arc::new(Signal::default());
        self.connections.insert(number, Arc::clone(&signal));
        match self.phase() {
            Phase::Serving => {}
            Phase::Draining | Phase::Ending => signal.order(Order::Finish), // admitted after all others were told
            Phase::Stopped => signal.order(Order::Abort),
        }
        Some(Place { shared: Arc::clone(self), peer, number, signal })
    }

    /// The counts of this moment.
    pub(super) fn state(&self) -> State {
        State {
            phase: self.phase(),
            connections: self.connections.len(),
            exchanges: self.table.len(),
            streams: self.hearts.all().iter().map(heartline::Heartline::active).sum(),
            tunnels: self.tunnels.load(Ordering::Relaxed),
            reloads: self.reloads.load(Ordering::Relaxed),
        }
    }

    /// The live exchanges.
    pub(super) fn streams(&self) -> Vec<LiveStream> {
        let mut snapshots: HashMap<(u64, u32), StreamSnapshot> = HashMap::new();
        for heart in self.hearts.all() {
            snapshots.extend(heart.streams().into_iter().map(|stream| ((heart.id(), stream.id), stream)));
        }
        let lives = self.table.all().into_iter();
        lives
            .map(|live| {
                let age = live.began.elapsed();
                let kept = live.kept.get();
                let snapshot = kept.and_then(|kept| snapshots.get(&(kept.heart.id(), kept.stream)));
                LiveStream {
                    id: live.id,
                    path: live.path.to_string(),
                    upstream: live.upstream.get().cloned().unwrap_or_else(|| Arc::from("")),
                    format: kept.map(|kept| kept.format),
                    form: kept.map(|kept| kept.form.to_string()).unwrap_or_default(),
                    bytes: live.bytes(),
                    age,
                    silence: snapshot.map_or(age, |snapshot| snapshot.silence),
                    content_silence: snapshot.map_or(age, |snapshot| snapshot.content_silence),
                    bridged: snapshot.map_or(Duration::ZERO, |snapshot| snapshot.bridged),
                    heartbeats: snapshot.map_or(0, |snapshot| snapshot.heartbeats),
                    interval: kept.map(|kept| kept.heart.interval()).unwrap_or_default(),
                }
            })
            .collect()
    }
}

/// A connection's place among the admitted ones; dropping it frees it.
#[derive(Debug)]
pub(super) struct Place {
    shared: Arc<Shared>,
    peer: IpAddr,
    number: u64,
    pub(super) signal: Arc<Signal>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.connections.remove(&self.number);
        if self.shared.connections.is_empty() {
            self.shared.disconnected.notify_waiters();
        }
        let mut addresses = self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(here) = addresses.get_mut(&self.peer) {
            *here -= 1;
            if *here == 0 {
                addresses.remove(&self.peer);
            }
        }
    }
}

/// What counts as one address: of IPv6 a whole network, since a host takes any address in its own.
fn holder(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(peer) => peer.into(),
        IpAddr::V6(peer) => Ipv6Addr::from_bits(peer.to_bits() >> HOST_BITS << HOST_BITS).into(),
    }
}

/// The part of an IPv6 address that a host chooses itself (RFC 4291 §2.5.1).
const HOST_BITS: u32 = 64;

/// A number that no other proxy on the way has: the time and the process are different for each.
fn number() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher(); // seeded by the system for each process
    hasher.write_u128(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos()));
    hasher.write_u32(std::process::id());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(shared: &Arc<Shared>, addresses: &[&str]) -> Vec<bool> {
        let places: Vec<_> = addresses.iter().map(|peer| shared.admit(peer.parse().unwrap())).collect();
        places.iter().map(Option::is_some).collect()
    }

    /// A host has a whole network of 2^64 addresses, and was capped by none of them.
    #[tokio::test]
    async fn an_ipv6_network_is_one_address_to_the_cap() {
        let mut config = Config::single("http://127.0.0.1:1".parse().unwrap());
        config.limits.connections_per_address = 2;
        let shared = Arc::new(Shared::new(config).unwrap());
        let own = ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:ffff::1", "2001:db8:0:2::1"];
        assert_eq!(admitted(&shared, &own), [true, true, false, true]);
        assert_eq!(
            admitted(&shared, &["10.0.0.1", "10.0.0.2", "::ffff:10.0.0.1", "10.0.0.1"]),
            [true, true, true, false]
        );
        // All places are free again.
        assert_eq!(admitted(&shared, &own), [true, true, false, true]);
        assert_eq!(shared.state().connections, 0);
    }
}
