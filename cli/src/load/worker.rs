//! One thread that begins its share of the streams and reads them. Started by `run`, one runtime each, nothing shared
//! but the clock: no lock is contended, a canary sees the very thread it judges, and its CPU time is the client's alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::canary::{self, Canary};
use super::client;
use super::dial::Dial;
use super::http2::Pool;
use super::phases::Phases;
use super::plan::{Begin, Plan};
use super::request::Requests;
use super::tally::Tally;
use super::{Failure, Live, LoadError, Phase, Protocol, Shape, Targets, verdict};
use heartline::api::Api;

/// What the streams of one worker share.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) plan: Arc<Plan>,
    pub(super) phases: Arc<Phases>,
    pub(super) dial: Dial,
    pub(super) requests: Requests,
    pub(super) targets: Targets,
    pub(super) api: Option<Api>,
    pub(super) live: Option<Arc<Live>>,
    pub(super) pool: Pool,
    pub(super) canary: Canary,
    tally: Mutex<Tally>,
}

/// What a run's workers have in common, from which each is made.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) plan: Arc<Plan>,
    pub(super) phases: Arc<Phases>,
    pub(super) dial: Dial,
    pub(super) requests: Requests,
    pub(super) targets: Targets,
    pub(super) api: Option<Api>,
    pub(super) live: Option<Arc<Live>>,
}

impl Worker {
    /// Creates a worker that has not begun.
    pub(super) fn new(number: usize, common: Common) -> Arc<Self> {
        let Common { plan, phases, dial, requests, targets, api, live } = common;
        let streams_per_connection = match plan.protocol {
            Protocol::Http1 => 1,
            Protocol::Http2 { streams_per_connection } => streams_per_connection,
        };
        let tally = if plan.is_part() { Tally::in_slices() } else { Tally::new() };
        Arc::new(Self {
            number,
            plan,
            phases,
            dial,
            requests,
            targets,
            api,
            live,
            pool: Pool::new(streams_per_connection),
            canary: Canary::default(),
            tally: Mutex::new(tally),
        })
    }

    /// Creates the only worker of a run that takes no place.
    #[cfg(test)]
    pub(super) fn for_test(settings: &super::Settings) -> Arc<Self> {
        let plan = Plan::new(settings, ([127, 0, 0, 1], 1).into(), 1);
        let common = Common {
            plan: Arc::new(plan),
            phases: Arc::new(Phases::start()),
            dial: Dial::new(settings).expect("usable"),
            requests: Requests::new(settings).expect("usable"),
            targets: settings.targets.clone(),
            api: settings.api,
            live: settings.live.clone(),
        };
        Self::new(0, common)
    }

    /// Returns the worker's counts, to add to or to read; held for a few instructions, never across an await.
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        // A stream that panicked in between has only left a count out.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the worker's thread; the receiver is told when all its streams are closed.
///
/// The thread ends when the phase becomes [`Phase::Drain`] or its sender is dropped.
pub(super) fn start(worker: Arc<Worker>, phase: watch::Receiver<Phase>) -> Result<oneshot::Receiver<()>, LoadError> {
    let cannot = |error| LoadError::internal(format!("a worker could not be started: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let (done, closed) = oneshot::channel();
    thread::Builder::new()
        .name(format!("load-{}", worker.number))
        .spawn(move || {
            runtime.block_on(work(Arc::clone(&worker), phase));
            // Drops every stream's task, which closes its record.
            drop(runtime);
            // The run may have been dropped; then nobody asks.
            let _ = done.send(());
        })
        .map_err(cannot)?;
    Ok(closed)
}

async fn work(worker: Arc<Worker>, mut phase: watch::Receiver<Phase>) {
    tokio::spawn(canary::sing(Arc::clone(&worker)));
    let begin = tokio::spawn(begin_streams(Arc::clone(&worker)));
    // A worker too busy to see the hold phase begin counts from here: too much, which is the honest side.
    let mut before = Mark::now(&worker.phases);
    while phase.changed().await.is_ok() {
        match *phase.borrow_and_update() {
            Phase::Ramp => {}
            Phase::Hold => before = Mark::now(&worker.phases),
            Phase::Drain => break,
        }
    }
    let mut tally = worker.tally();
    tally.busy = before.busy_until(Mark::now(&worker.phases));
    worker.canary.note(&worker.phases, &mut tally);
    drop(tally);
    begin.abort();
}

/// Begins the worker's streams at their intended times, or at once when these have passed.
async fn begin_streams(worker: Arc<Worker>) {
    if let Shape::Closed { .. } = worker.plan.shape {
        return begin_lanes(worker).await;
    }
    let queue = Queue::new(&worker, Failure::ClientLate);
    let mut number = 0_usize;
    while let Some(begin) = queue.next() {
        let due = worker.phases.started() + begin.due;
        let mut now = Instant::now();
        if now < due {
            sleep_until(due).await;
            now = Instant::now();
        } else if number.is_multiple_of(YIELD_EVERY) {
            // Behind: let those already begun be read.
            tokio::task::yield_now().await;
        }
        number += 1;
        queue.begun();
        tokio::spawn(client::live(Arc::clone(&worker), begin));
        worker.tally().begin_late.add(nanos(now - due));
    }
}

/// Begins the lanes of a closed loop; each takes one stream after the other until none is left.
async fn begin_lanes(worker: Arc<Worker>) {
    let queue = Arc::new(Queue::new(&worker, Failure::NotBegun));
    for due in worker.plan.lanes(worker.number) {
        sleep_until(worker.phases.started() + due).await;
        let (worker, queue) = (Arc::clone(&worker), Arc::clone(&queue));
        tokio::spawn(async move {
            while let Some(begin) = queue.next() {
                queue.begun();
                // A stream of a closed loop is due when the one before it has ended.
                let due = Duration::from_nanos(worker.phases.now_ns());
                client::live(Arc::clone(&worker), Begin { due, ..begin }).await;
            }
        });
    }
}

/// The streams of a worker that are still to begin; counts those that the run's end overtook.
struct Queue {
    worker: Arc<Worker>,
    begins: Mutex<Box<dyn Iterator<Item = Begin> + Send>>,
    left: AtomicU64,
    overtaken: Failure,
}

impl Queue {
    fn new(worker: &Arc<Worker>, overtaken: Failure) -> Self {
        let begins = || worker.plan.begins(worker.number);
        Self {
            worker: Arc::clone(worker),
            left: AtomicU64::new(begins().count() as u64),
            begins: Mutex::new(begins()),
            overtaken,
        }
    }

    fn next(&self) -> Option<Begin> {
        self.begins.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    /// Counts one as begun. Only this worker's thread counts, so the order is `Relaxed`.
    fn begun(&self) {
        self.left.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.worker.tally().add_failed(self.overtaken, self.left.load(Ordering::Relaxed));
    }
}

/// The CPU time of the calling thread, and the run's clock with it.
#[derive(Clone, Copy, Debug)]
struct Mark {
    cpu: Duration,
    clock_ns: u64,
}

impl Mark {
    fn now(phases: &Phases) -> Self {
        // Where the system does not tell, the thread counts as idle.
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
        Self { cpu, clock_ns: phases.now_ns() }
    }

    /// Returns which part of the time until `later` the thread was busy.
    fn busy_until(self, later: Self) -> f64 {
        let cpu_ns = nanos(later.cpu.saturating_sub(self.cpu));
        verdict::share(cpu_ns, later.clock_ns.saturating_sub(self.clock_ns))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// How many streams a worker that is behind begins before it reads: few, so that a late ramp does not make reading late.
const YIELD_EVERY: usize = 16;
