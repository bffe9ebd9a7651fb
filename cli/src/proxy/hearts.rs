//! The broadcasters: one for each distinct interval, cadence and pair of caps, kept over a reload. Owned by `shared`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::config::HeartSettings;
use super::error::Error;
use super::state::IntervalTotals;
use heartline::{Cadence, Heartline, Totals};

/// Every broadcaster that is in use.
#[derive(Default)]
pub(super) struct Hearts {
    all: Mutex<Vec<Known>>,
    /// What the broadcasters that were forgotten came to, by interval. Locked inside `all`'s lock, never around it.
    forgotten: Mutex<BTreeMap<Duration, Totals>>,
}

/// One broadcaster.
struct Known {
    key: Key,
    heart: Heartline,
    /// Whether an engine of the settings in force uses it.
    is_named: bool,
}

/// The settings in which broadcasters differ; a stream's form is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    interval: Duration,
    cadence: Cadence,
    max_silence: Option<Duration>,
    max_lifetime: Option<Duration>,
}

impl Hearts {
    /// The broadcaster for these settings, made when there is none.
    ///
    /// # Errors
    ///
    /// An interval or a cap out of range, as [`Builder::build`](heartline::Builder::build) says it.
    pub(super) fn of(&self, settings: &HeartSettings) -> Result<Heartline, Error> {
        let key = Key {
            interval: settings.interval,
            cadence: settings.cadence,
            max_silence: settings.max_silence,
            max_lifetime: settings.max_lifetime,
        };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter_mut().find(|known| known.key == key) {
            known.is_named = true;
            return Ok(known.heart.clone());
        }
        let mut builder = Heartline::builder()
            .interval(settings.interval)
            .cadence(settings.cadence)
            .drain_abort_after(DRAIN_ABORT_AFTER);
        if let Some(max_silence) = settings.max_silence {
            builder = builder.max_silence(max_silence);
        }
        if let Some(max_lifetime) = settings.max_lifetime {
            builder = builder.max_lifetime(max_lifetime);
        }
        let heart = builder.build().map_err(|error| Error::config(error.to_string()))?;
        all.push(Known { key, heart: heart.clone(), is_named: true });
        Ok(heart)
    }

    /// Every broadcaster.
    pub(super) fn all(&self) -> Vec<Heartline> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|known| known.heart.clone()).collect()
    }

    /// Forgets those that neither the engines of the settings in force use nor anyone else: a request that began before a
    /// reload may still wait for its engine, and become a stream of an old broadcaster, to be listed and drained.
    pub(super) fn forget(&self, used: &[Heartline]) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut forgotten = self.forgotten.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain_mut(|Known { heart, is_named, .. }| {
            *is_named = used.iter().any(|used| used.id() == heart.id());
            // Streams hold it too; and no handle comes from nothing: only `of` and `all` make one, under this lock.
            let stays = *is_named || heart.is_shared();
            if !stays {
                *forgotten.entry(heart.interval()).or_default() += heart.totals();
            }
            stays
        });
    }

    /// What the ended streams came to, by interval; those of forgotten broadcasters are among them.
    pub(super) fn totals(&self) -> Vec<IntervalTotals> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = self.forgotten.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for Known { heart, .. } in &*all {
            *sums.entry(heart.interval()).or_default() += heart.totals();
        }
        let is_in_use = |interval| {
            all.iter().any(|known| known.heart.interval() == interval && (known.is_named || known.heart.active() > 0))
        };
        let sums = sums.into_iter();
        sums.map(|(interval, totals)| IntervalTotals { interval, is_in_use: is_in_use(interval), totals }).collect()
    }
}

impl fmt::Debug for Hearts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// How long a stream inside an event may take to reach its end once the deadline of a drain has passed.
const DRAIN_ABORT_AFTER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_broadcaster_serves_every_engine_of_its_interval() {
        let hearts = Hearts::default();
        let thirty = HeartSettings::default();
        let ten = HeartSettings { interval: Duration::from_secs(10), ..thirty.clone() };
        let first = hearts.of(&thirty).unwrap();
        assert_eq!(hearts.of(&thirty).unwrap().id(), first.id());
        assert_ne!(hearts.of(&ten).unwrap().id(), first.id());
        assert_eq!(hearts.all().len(), 2);
        hearts.forget(&[first]);
        assert_eq!(hearts.all().len(), 1);
    }

    #[tokio::test]
    async fn a_forgotten_broadcaster_leaves_its_sums() {
        let hearts = Hearts::default();
        let heart = hearts.of(&HeartSettings::default()).unwrap();
        let body = http_body_util::Full::new(bytes::Bytes::from("data: 1\n\n"));
        drop(heart.keep_alive(body));
        let mut waiting = Some(heart); // a request that may still become a stream
        for (is_in_use, known) in [(true, 1), (false, 1), (false, 0)] {
            let totals = hearts.totals();
            assert_eq!((totals.len(), totals[0].totals.streams, totals[0].is_in_use), (1, 1, is_in_use));
            assert_eq!(hearts.all().len(), known);
            if !is_in_use {
                waiting = None;
            }
            hearts.forget(&[]);
            while waiting.is_none() && !hearts.all().is_empty() {
                tokio::task::yield_now().await; // its task ends
                hearts.forget(&[]);
            }
        }
    }

    #[test]
    fn a_refused_interval_is_a_refused_setting() {
        let never = HeartSettings { interval: Duration::ZERO, ..HeartSettings::default() };
        assert!(Hearts::default().of(&never).unwrap_err().is_config());
    }
}
