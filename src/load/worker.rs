//! One thread that begins its share of the streams and reads them. Started by `run`, one runtime each, nothing shared
//! but the clock: no lock is contended, a canary sees the very thread it judges, and its CPU time is the client's alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::sync::{oneshot, watch};

use super::canary::{self, Canary};
use super::client::{self, Template};
use super::phases::Phases;
use super::plan::Plan;
use super::tally::Tally;
use super::{Failure, LoadError, Phase, Targets, verdict};

/// What the streams of one worker share.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) plan: Arc<Plan>,
    pub(super) phases: Arc<Phases>,
    pub(super) template: Template,
    pub(super) targets: Targets,
    pub(super) canary: Canary,
    tally: Mutex<Tally>,
}

impl Worker {
    /// Creates a worker that has not begun.
    pub(super) fn new(
        number: usize,
        plan: Arc<Plan>,
        phases: Arc<Phases>,
        template: Template,
        targets: Targets,
    ) -> Arc<Self> {
        Arc::new(Self {
            number,
            plan,
            phases,
            template,
            targets,
            canary: Canary::default(),
            tally: Mutex::new(Tally::new()),
        })
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
    let mut late = Late { left: worker.plan.begins(worker.number).count() as u64, worker };
    let worker = Arc::clone(&late.worker);
    for (number, begin) in worker.plan.begins(worker.number).enumerate() {
        let due = worker.phases.started() + begin.due;
        let mut now = tokio::time::Instant::now();
        if now < due {
            tokio::time::sleep_until(due).await;
            now = tokio::time::Instant::now();
        } else if number.is_multiple_of(YIELD_EVERY) {
            // Behind: let those already begun be read.
            tokio::task::yield_now().await;
        }
        late.left -= 1;
        tokio::spawn(client::live(Arc::clone(&worker), begin));
        worker.tally().begin_late.add(nanos(now - due));
    }
}

/// Counts the streams that the run's end overtook before they were begun.
struct Late {
    worker: Arc<Worker>,
    left: u64,
}

impl Drop for Late {
    fn drop(&mut self) {
        self.worker.tally().add_failed(Failure::ClientLate, self.left);
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
