//! One variant with all of its streams: an engine, what is between, and a client, ready for windows. Used by `rounds`.

use std::thread;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::under_test::{UnderTest, Variant};

/// Longest wait for all streams to open.
const OPEN_MAX: Duration = Duration::from_secs(120);

/// How long an engine writes before its window begins, so that the window has no beginning of its own.
const RUN_UP: Duration = Duration::from_millis(300);

/// An open variant. Fields are dropped from the client's end on.
pub(crate) struct Lane {
    pub(crate) variant: Variant,
    client: Process,
    middle: UnderTest,
    engine: Process,
    streams: u64,
    /// Resident bytes of the proxy for each stream.
    pub(crate) memory_bytes: f64,
}

/// One window of one variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Processor time of the proxy for each event that arrived, in µs.
    pub(crate) cpu_us: f64,
    /// Events that arrived, of those that the engine wrote.
    pub(crate) delivered: f64,
    /// Events that arrived.
    pub(crate) events: u64,
    /// Time from the engine's write to the client's read, in µs.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p99_9_us: f64,
}

impl Lane {
    /// Opens `streams` streams, `live` of which get an event every `interval` while the engine is told to write.
    pub(crate) fn open(variant: Variant, streams: usize, live: usize, interval: Duration) -> Result<Self, String> {
        let mut engine = Process::role("engine", &[interval.as_millis().max(1).to_string()])?;
        let port = engine.hear_port("")?;
        let middle = UnderTest::start(variant, port, streams)?;
        let before = middle.resident_bytes();
        let client = Process::role("client", &[middle.port.to_string(), streams.to_string(), live.to_string()])?;
        let mut lane = Self { variant, engine, middle, client, streams: streams as u64, memory_bytes: 0.0 };
        let begun = Instant::now();
        while lane.seen()?[0] < lane.streams {
            if begun.elapsed() > OPEN_MAX {
                let name = variant.name();
                return Err(format!("{name}: {} of {streams} streams opened", lane.seen()?[0]));
            }
            thread::sleep(Duration::from_millis(20));
        }
        lane.memory_bytes = (lane.middle.resident_bytes() - before) as f64 / streams as f64;
        Ok(lane)
    }

    /// Lets the engine write for one window.
    pub(crate) fn measure(&mut self, window: Duration) -> Result<Window, String> {
        self.engine.ask("run")?;
        thread::sleep(RUN_UP);
        self.client.ask("reset")?;
        let (cpu, seen, written) = (self.middle.cpu_ns(), self.seen()?, self.engine.ask("figures")?);
        thread::sleep(window);
        let (cpu, after) = (self.middle.cpu_ns() - cpu, self.seen()?);
        let written = self.engine.ask("figures")?[0] - written[0];
        let late = self.client.ask("late")?;
        self.engine.ask("pause")?;
        thread::sleep(RUN_UP);
        let name = self.variant.name();
        let [opened, ended, events, _] = after[..] else { return Err("the client's answer has another shape".into()) };
        if ended > 0 || opened < self.streams {
            return Err(format!("{name}: streams are missing: {opened} opened, {ended} ended, of {}", self.streams));
        }
        let events = events - seen[2];
        let &[_, p50, p99, p99_9, _] = &late[..] else { return Err("the client's answer has another shape".into()) };
        let [p50_us, p99_us, p99_9_us] = [p50, p99, p99_9].map(|ns| ns as f64 / 1_000.0);
        Ok(Window {
            cpu_us: cpu as f64 / 1_000.0 / events.max(1) as f64,
            delivered: events as f64 / written.max(1) as f64,
            events,
            p50_us,
            p99_us,
            p99_9_us,
        })
    }

    /// Streams opened, streams ended, events, bytes.
    fn seen(&mut self) -> Result<Vec<u64>, String> {
        self.client.ask("seen")
    }
}
