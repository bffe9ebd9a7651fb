//! One run: check, then ramp, hold and drain, then report. The workers do the rest.

use std::future::{Future, pending};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::asked::Asked;
use super::dial::Dial;
use super::phases::Phases;
use super::plan::Plan;
use super::request::Requests;
use super::tally::Tally;
use super::timeline::Timeline;
use super::verdict::Evidence;
use super::worker::{self, Common, Worker};
use super::{LoadError, Report, Settings, Shape, Time, preflight};

/// The part of the run that is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Phase {
    /// Streams are being opened.
    Ramp,
    /// Streams are held, and judged.
    Hold,
    /// Streams are being closed.
    Drain,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// The phase.
    pub phase: Phase,
    /// How long the run has lasted.
    pub elapsed: Duration,
    /// How long the hold phase has lasted.
    pub held: Duration,
    /// Streams asked for.
    pub requested: usize,
    /// Streams open now.
    pub open: usize,
    /// Streams that have opened or failed to.
    pub settled: usize,
    /// Streams that are over.
    pub ended: usize,
    /// Heartbeats in the hold phase so far.
    pub heartbeats: u64,
    /// Events in the hold phase so far.
    pub events: u64,
}

impl Progress {
    /// Adds how far another part of the same run is; the phase is that of the one behind.
    pub fn add(&mut self, other: &Self) {
        self.phase = self.phase.min(other.phase);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.held = self.held.min(other.held);
        self.requested += other.requested;
        self.open += other.open;
        self.settled += other.settled;
        self.ended += other.ended;
        self.heartbeats += other.heartbeats;
        self.events += other.events;
    }
}

/// Runs the load and reports; tells `progress` five times a second how far it is.
///
/// The streams are read by threads of the run's own, each with a runtime of its own, so the caller's runtime may be of
/// any kind, with its timer and I/O enabled, and what else it does is not measured.
///
/// # Errors
///
/// When the settings are not valid, this machine cannot hold the streams, the server's name has no address, or a thread
/// cannot be started. A server that does not answer is no error: its streams are reported as failed.
///
/// # Cancel safety
///
/// Dropping the future closes all streams and ends the threads; there is no report then. To stop early and have one, use
/// [`run_until`].
pub async fn run(settings: Settings, progress: impl FnMut(Progress)) -> Result<Report, LoadError> {
    run_until(settings, progress, pending()).await
}

/// Does what [`run`] does, and ends the run early once `stop` is ready, with the report of what there was.
///
/// # Errors
///
/// As [`run`].
///
/// # Cancel safety
///
/// As [`run`].
pub async fn run_until(
    settings: Settings,
    progress: impl FnMut(Progress),
    stop: impl Future<Output = ()>,
) -> Result<Report, LoadError> {
    settings.check()?;
    let requests = Requests::new(&settings)?;
    let dial = Dial::new(&settings)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let plan = Arc::new(Plan::new(&settings, resolve(&settings).await?, cores));
    preflight::check(&plan)?;

    wait_for_start(&settings).await?;
    let phases = Arc::new(Phases::start());
    if let Shape::Complete(_) = plan.shape {
        phases.begin_hold(0); // before there are workers: their first bytes count
    }
    let common = Common {
        plan: Arc::clone(&plan),
        phases: Arc::clone(&phases),
        dial,
        requests,
        targets: settings.targets.clone(),
        api: settings.api,
        live: settings.live.clone(),
    };
    let (phase, _) = watch::channel(Phase::Ramp);
    let mut crew = Vec::with_capacity(plan.workers);
    for number in 0..plan.workers {
        let worker = Worker::new(number, common.clone());
        let closed = worker::start(Arc::clone(&worker), phase.subscribe())?;
        crew.push((worker, closed));
    }
    let mut course =
        Course { plan: &plan, phases: &phases, crew: &crew, phase: &phase, progress, timeline: Timeline::default() };
    let mut stop = pin!(stop);
    let stopped = course.ramp_and_hold(stop.as_mut()).await;
    let timeline = course.timeline;
    let (total, evidence) = drain(&phases, crew, stopped, timeline).await?;
    Ok(Report::new(&plan, Asked::of(&settings), total, evidence))
}

/// Whether the caller ended the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    InTime,
    Early,
}

type Crew = Vec<(Arc<Worker>, oneshot::Receiver<()>)>;

/// Leads the workers through the phases.
struct Course<'r, P> {
    plan: &'r Plan,
    phases: &'r Phases,
    crew: &'r Crew,
    phase: &'r watch::Sender<Phase>,
    progress: P,
    timeline: Timeline,
}

impl<P: FnMut(Progress)> Course<'_, P> {
    async fn ramp_and_hold<S: Future<Output = ()>>(&mut self, mut stop: Pin<&mut S>) -> Stopped {
        let start = self.phases.started();
        let stopped = match self.plan.shape {
            Shape::Hold(length) => {
                let opened_by = start + self.plan.ramp() + self.plan.open_within;
                let all = if self.plan.holds_on_time { usize::MAX } else { self.plan.streams };
                let mut stopped = self.until(opened_by, Phase::Ramp, &mut stop, |phases| phases.settled() >= all).await;
                if stopped == Stopped::InTime {
                    self.phases.begin_hold(self.phases.now_ns());
                    stopped = self.hold(Instant::now() + length, &mut stop).await;
                }
                stopped
            }
            Shape::Complete(within) => self.hold(start + self.plan.ramp() + within, &mut stop).await,
            Shape::Closed { within: length, .. } | Shape::Open { length, .. } => {
                let ramped = start + self.plan.ramp();
                let mut stopped = self.until(ramped, Phase::Ramp, &mut stop, |_| false).await;
                if stopped == Stopped::InTime {
                    self.phases.begin_hold(self.phases.now_ns());
                    stopped = self.hold(ramped + length, &mut stop).await;
                }
                stopped
            }
        };
        self.phases.end_hold(self.phases.now_ns());
        if let (Shape::Open { .. }, Stopped::InTime) = (self.plan.shape, stopped) {
            // Whoever began in time is waited for, since the slowest latencies are the ones that matter.
            let (end, all) = (Instant::now() + self.plan.drain, self.plan.streams);
            let drained = self.until(end, Phase::Drain, &mut stop, |phases| phases.ended() >= all).await;
            return self.ended(drained);
        }
        self.ended(stopped)
    }

    fn ended(&mut self, stopped: Stopped) -> Stopped {
        self.show(Phase::Drain);
        // Nobody listens any more only when every worker has died; `drain` will say so.
        let _ = self.phase.send(Phase::Drain);
        stopped
    }

    async fn hold<S: Future<Output = ()>>(&mut self, end: Instant, stop: &mut Pin<&mut S>) -> Stopped {
        let _ = self.phase.send(Phase::Hold);
        let all = self.plan.streams;
        // With no stream left there is nothing to wait for.
        self.until(end, Phase::Hold, stop, |phases| phases.ended() >= all).await
    }

    /// Waits until `end`, or until `enough` says so, or until the caller stops the run.
    async fn until<S: Future<Output = ()>>(
        &mut self,
        end: Instant,
        phase: Phase,
        stop: &mut Pin<&mut S>,
        enough: impl Fn(&Phases) -> bool,
    ) -> Stopped {
        let mut shown = Instant::now();
        loop {
            let now = Instant::now();
            if now >= end || enough(self.phases) {
                return Stopped::InTime;
            }
            if now >= shown {
                self.show(phase);
                shown = now + SHOWN_EVERY;
            }
            tokio::select! {
                () = sleep_until(end.min(now + LOOKED_EVERY)) => {}
                () = stop.as_mut() => return Stopped::Early,
            }
        }
    }

    fn show(&mut self, phase: Phase) {
        let now_ns = self.phases.now_ns();
        let (mut heartbeats, mut events) = (0, 0);
        for (worker, _) in self.crew {
            let tally = worker.tally();
            heartbeats += tally.beats.total;
            events += tally.events;
        }
        let window = self.phases.window();
        let progress = Progress {
            phase,
            elapsed: Duration::from_nanos(now_ns),
            held: Duration::from_nanos(window.to_ns.min(now_ns).saturating_sub(window.from_ns)),
            requested: self.plan.streams,
            open: self.phases.open(),
            settled: self.phases.settled(),
            ended: self.phases.ended(),
            heartbeats,
            events,
        };
        // Once streams are being closed by this harness, how many are open says nothing any more.
        if *self.phase.borrow() != Phase::Drain {
            self.timeline.note(&progress);
        }
        (self.progress)(progress);
    }
}

/// Waits for the workers to close their streams and adds up what they counted.
async fn drain(
    phases: &Phases,
    crew: Crew,
    stopped: Stopped,
    timeline: Timeline,
) -> Result<(Tally, Evidence), LoadError> {
    let mut total = Tally::default();
    for (worker, closed) in crew {
        match timeout(DRAIN_MAX, closed).await {
            Ok(Ok(())) => total.merge(&worker.tally()),
            Ok(Err(_)) => {
                return Err(LoadError::internal("a worker died; what it had measured is lost"));
            }
            Err(_) => {
                return Err(LoadError::internal("a worker does not end; a target function blocks it"));
            }
        }
    }
    let window = phases.window();
    let evidence = Evidence {
        held_min: phases.held_min(),
        hold_ns: if window.from_ns == u64::MAX { 0 } else { window.length_ns() },
        hold_from_unix_ms: phases.unix_ms(if window.from_ns == u64::MAX { phases.now_ns() } else { window.from_ns }),
        lag_ms: total.times[Time::Lag].distribution(),
        interrupted: stopped == Stopped::Early,
        timeline,
    };
    Ok((total, evidence))
}

/// Waits until the time at which all shards start.
async fn wait_for_start(settings: &Settings) -> Result<(), LoadError> {
    let Some(start_at) = settings.start_at else {
        return Ok(());
    };
    let now = SystemTime::now();
    match start_at.duration_since(now) {
        Ok(wait) if wait > START_WAIT_MAX => {
            Err(LoadError::config(format!("the start is {} h away; a day at most", wait.as_secs() / 3_600)))
        }
        Ok(wait) => {
            tokio::time::sleep(wait).await;
            Ok(())
        }
        Err(past) if past.duration() <= START_LATE_MAX => Ok(()),
        Err(past) => Err(LoadError::config(format!(
            "the start was {:.1} s ago; shards that begin apart do not hold together",
            past.duration().as_secs_f64()
        ))),
    }
}

/// Looks the server's address up, once for all streams.
///
/// Of several the first IPv4 one is taken: `localhost` has both, and most engines listen on 0.0.0.0 only.
async fn resolve(settings: &Settings) -> Result<SocketAddr, LoadError> {
    let host = settings.url.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = settings.url.port_u16().unwrap_or(if settings.url.scheme_str() == Some("https") { 443 } else { 80 });
    let unknown = |why: String| LoadError::config(format!("{host} has no address: {why}"));
    let found: Vec<_> =
        tokio::net::lookup_host((host, port)).await.map_err(|error| unknown(error.to_string()))?.collect();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| unknown("the resolver knows none".to_owned()))
}

/// A start further away is a mistake in the date.
const START_WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Being later than this, a shard would ramp while the others hold.
const START_LATE_MAX: Duration = Duration::from_secs(1);

/// How often the run looks whether a phase is over.
const LOOKED_EVERY: Duration = Duration::from_millis(20);

/// How often progress is told: often enough for the eye.
const SHOWN_EVERY: Duration = Duration::from_millis(200);

/// Closing 100,000 sockets takes a second or two; a worker that takes longer than this hangs.
const DRAIN_MAX: Duration = Duration::from_secs(30);
