//! What a demo is to do: settings as the user gives them, and the plan they become once they make sense.

use std::time::Duration;

use super::Error;
use heartline::Heartline;

/// The four figures of a demo, as the user gives them; [`plan`](Self::plan) checks them.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Streams in the burst.
    pub streams: usize,
    /// Longest wait for a first token, about.
    pub wait: Duration,
    /// Silence after which the gateway cuts a response.
    pub cut_after: Duration,
    /// Time between heartbeats.
    pub interval: Duration,
}

impl Default for Settings {
    /// Returns 200 streams that wait up to 8 s behind a gateway that cuts after 3 s, with a heartbeat every second.
    fn default() -> Self {
        Self {
            streams: 200,
            wait: Duration::from_secs(8),
            cut_after: Duration::from_secs(3),
            interval: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// Checks that the settings can show anything.
    ///
    /// # Errors
    ///
    /// An error with [`is_settings`](Error::is_settings) that says which two figures contradict each other.
    pub fn plan(self) -> Result<Plan, Error> {
        let Self { streams, wait, cut_after, interval } = self;
        let refused = |message: String| Err(Error::settings(message));
        if !(1..=STREAMS_MAX).contains(&streams) {
            return refused(format!(
                "{streams} streams: a demo takes 1 to {STREAMS_MAX}; use 'heartline load' to hold more"
            ));
        }
        // The library's own limits: what it refuses could not be shown.
        Heartline::builder().interval(interval).build().map_err(|error| Error::settings(error.to_string()))?;
        if cut_after <= interval {
            return refused(format!(
                "a heartbeat every {interval:?} is too late for a cut after {cut_after:?}; make the interval shorter"
            ));
        }
        if wait <= cut_after {
            return refused(format!(
                "with a wait of {wait:?} nothing is silent for {cut_after:?}; make the wait longer"
            ));
        }
        if wait > WAIT_MAX {
            return refused(format!("a wait of {wait:?} is too long to watch; make it {WAIT_MAX:?} at most"));
        }
        Ok(Plan { streams, wait, cut_after, interval })
    }
}

/// Checked [`Settings`]: whatever holds one can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) streams: usize,
    pub(super) wait: Duration,
    pub(super) cut_after: Duration,
    pub(super) interval: Duration,
}

impl Plan {
    /// Returns how many files the demo holds open at most.
    pub fn open_files(&self) -> u64 {
        self.streams as u64 * FILES_PER_STREAM + FILES_OF_THE_PROCESS
    }
}

/// Every stream takes a port between gateway and engine, and Linux lends 28,231 of them for one address by default.
const STREAMS_MAX: usize = 10_000;

/// Somebody is watching; longer waits belong to `heartline load`.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// Both ends of two connections: load to gateway, gateway to engine.
const FILES_PER_STREAM: u64 = 4;

/// Standard streams, listeners, the runtime's own files, and room for a few more.
const FILES_OF_THE_PROCESS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = Settings::default();
        change(&mut settings);
        let error = settings.plan().expect_err("a contradiction");
        assert!(error.is_settings());
        error.to_string()
    }

    #[test]
    fn the_defaults_make_sense() {
        let plan = Settings::default().plan().expect("valid");
        assert_eq!(plan.open_files(), 864);
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        let seconds = Duration::from_secs;
        assert!(refusal(|it| it.streams = 0).contains("1 to 10000"));
        assert!(refusal(|it| it.streams = 10_001).contains("heartline load"));
        assert!(refusal(|it| it.interval = Duration::from_millis(99)).contains("below the minimum of 100ms"));
        assert!(refusal(|it| it.interval = Duration::ZERO).contains("interval"));
        assert!(refusal(|it| it.interval = seconds(3)).contains("make the interval shorter"));
        assert!(refusal(|it| it.wait = seconds(3)).contains("make the wait longer"));
        assert!(refusal(|it| it.wait = seconds(601)).contains("600s at most"));
    }
}
