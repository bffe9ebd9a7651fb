//! One of the demo's two runs: a fresh engine, a gateway in front of it, and the load through both.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Uri, uri};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::gateway::Gateway;
use super::plan::Plan;
use super::report::Figures;
use super::{Error, Progress};
use crate::load::{self, Shape, Target, Targets, digest_of};
use crate::sim::{self, Delay, Engine, Heartbeat, Script};
use heartline::{Form, Format};

/// Which of the two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// The engine sends no heartbeats.
    Without,
    /// The engine sends heartbeats; everything else is the same.
    With,
}

/// What one run found.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) figures: Figures,
    /// Every stream that completed decoded to exactly the engine's events.
    pub(super) identical: bool,
}

impl Run {
    /// Lets every stream live to its end, and stops what was started for it.
    ///
    /// Dropping the future stops the load and the gateway at once; the engine then has no clients left.
    pub(super) async fn live(
        self,
        plan: &Plan,
        targets: Arc<[Target]>,
        mut progress: impl FnMut(Progress),
    ) -> Result<Outcome, Error> {
        let engine = Engine::bind(self.engine(plan)).await?;
        let gateway = Gateway::bind(engine.local_addr(), plan.cut_after).map_err(Error::internal)?;
        let (url, cuts) = (url(gateway.local_addr())?, gateway.cuts());

        let (stop, stopped) = oneshot::channel::<()>();
        let engine = tokio::spawn(engine.run_until(async move { drop(stopped.await) }));
        // Dropped before the engine is told to stop: it then has no connection to wait for.
        let hop = JoinSet::from_iter([gateway.run_until(pending())]);
        let report = load::run(demand(plan, url, targets), |seen| {
            progress(Progress { run: self, streams: plan.streams, ended: seen.ended, elapsed: seen.elapsed });
        })
        .await?;
        drop(hop);
        drop(stop);
        engine.await.map_err(Error::internal)?;

        Ok(Outcome {
            figures: Figures::new(plan.streams, cuts.count(), &report),
            identical: report.digests.as_expected == report.streams.completed,
        })
    }

    /// The engine of this run: requests queue for their prefill, so that the last one waits for about the plan's wait.
    fn engine(self, plan: &Plan) -> sim::Settings {
        sim::Settings {
            heartbeat: match self {
                Self::Without => Heartbeat::Off,
                Self::With => Heartbeat::Form(Form::newline()),
            },
            ..engine(plan)
        }
    }
}

/// What both engines have in common.
fn engine(plan: &Plan) -> sim::Settings {
    sim::Settings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        script: Script::Cliff,
        prefill: Delay::fixed(plan.wait.div_f64(plan.streams as f64)),
        itl: Delay::fixed(token_every(plan)),
        tokens: TOKENS,
        interval: plan.interval,
        grace: Duration::ZERO,
        ..sim::Settings::default()
    }
}

/// What each stream asks for, and what it must decode to; the same for both runs.
pub(super) fn targets(plan: &Plan) -> Result<Arc<[Target]>, Error> {
    let engine = engine(plan);
    // A seed of its own gives each stream a text of its own: swapped streams would show.
    let target = |seed: usize| {
        let path = format!("{PATH}?seed={seed}");
        let body = sim::expected_body(&engine, &path, REQUEST);
        let mut target = Target::new(Bytes::from_static(REQUEST));
        target.path = Some(path.parse().map_err(Error::internal)?);
        target.expected = Some(digest_of(Format::EventStream, &body));
        Ok(target)
    };
    (0..plan.streams).map(target).collect()
}

/// The load: a burst of requests, each followed to its own end.
fn demand(plan: &Plan, url: Uri, targets: Arc<[Target]>) -> load::Settings {
    let mut settings = load::Settings::new(url);
    settings.method = Method::POST;
    settings.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    settings.targets = Targets::List(targets);
    settings.streams = plan.streams;
    settings.rate_per_second = rate_per_second(plan);
    settings.shape = Shape::Complete(plan.wait + plan.cut_after + token_every(plan) * TOKENS + SLACK);
    settings.interval = plan.interval;
    settings
}

/// All requests within a twentieth of the wait: a burst, seen from the engine.
fn rate_per_second(plan: &Plan) -> u32 {
    let rate = plan.streams as f64 * 20.0 / plan.wait.as_secs_f64();
    // A plan has 10,000 streams at most, and a cast of a larger figure would saturate.
    (rate.ceil() as u32).max(RATE_MIN)
}

/// Tokens come well within the patience of the gateway.
fn token_every(plan: &Plan) -> Duration {
    TOKEN_EVERY_MAX.min(plan.interval / 4)
}

fn url(gateway: SocketAddr) -> Result<Uri, Error> {
    uri::Builder::new()
        .scheme("http")
        .authority(gateway.to_string())
        .path_and_query(PATH)
        .build()
        .map_err(Error::internal)
}

const PATH: &str = "/v1/chat/completions";

const REQUEST: &[u8] =
    br#"{"model":"demo","stream":true,"messages":[{"role":"user","content":"Summarise this long report."}]}"#;

/// Enough to see tokens flow after the wait.
const TOKENS: u32 = 24;

/// 50 tokens a second, as a busy engine gives one stream.
const TOKEN_EVERY_MAX: Duration = Duration::from_millis(20);

/// Below it even a handful of streams would come one after the other instead of at once.
const RATE_MIN: u32 = 200;

/// How late the last stream may be on a busy machine before it counts as failed.
const SLACK: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::super::plan::Settings;
    use super::*;

    fn plan() -> Plan {
        Settings::default().plan().expect("the defaults are valid")
    }

    #[test]
    fn the_last_request_of_the_queue_waits_for_the_plans_wait() {
        assert_eq!(Run::With.engine(&plan()).prefill, Delay::fixed(Duration::from_millis(40)));
        assert_eq!(rate_per_second(&plan()), 500);
    }

    #[test]
    fn the_two_engines_differ_in_their_heartbeats_only() {
        let without = sim::Settings { heartbeat: Heartbeat::Form(Form::newline()), ..Run::Without.engine(&plan()) };
        assert_eq!(format!("{without:?}"), format!("{:?}", Run::With.engine(&plan())));
        assert_eq!(Run::Without.engine(&plan()).heartbeat, Heartbeat::Off);
    }

    #[test]
    fn every_stream_expects_a_text_of_its_own() {
        let targets = targets(&plan()).expect("well-formed paths");
        let expected: std::collections::HashSet<_> = targets.iter().map(|target| target.expected).collect();
        assert_eq!(expected.len(), 200);
        assert!(targets.iter().all(|target| target.expected.is_some_and(|digest| digest.events > u64::from(TOKENS))));
    }
}
