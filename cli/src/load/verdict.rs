//! Whether a run's figures can be believed. Pure; asked by `report`. An invalid run outranks whatever its figures say.

use std::time::Duration;

use super::plan::Plan;
use super::spread::Distribution;
use super::tally::Tally;
use super::timeline::Timeline;
use super::{Failure, Shape};

/// What the verdict looks at besides the plan and the counts.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub(super) held_min: usize,
    pub(super) hold_ns: u64,
    /// When the hold phase began, in milliseconds since 1970.
    pub(super) hold_from_unix_ms: u64,
    pub(super) lag_ms: Option<Distribution>,
    pub(super) interrupted: bool,
    pub(super) timeline: Timeline,
}

/// Returns why the run is invalid, most telling first; nothing when it is valid.
pub(super) fn reasons(plan: &Plan, tally: &Tally, evidence: &Evidence) -> Vec<String> {
    let mut reasons = Vec::new();
    if evidence.interrupted {
        reasons.push(format!(
            "interrupted: the hold phase lasted {:.1} s of {:.1} s",
            evidence.hold_ns as f64 / 1e9,
            plan.shape.length().as_secs_f64()
        ));
    }
    reasons.extend(missing(plan, tally));
    reasons.extend(shortfall(plan, tally, evidence));
    reasons.extend(lag(plan.interval, evidence.lag_ms));
    reasons.extend(saturation(tally, evidence.hold_ns));
    let begin_late = Duration::from_nanos(tally.begin_late.ns_max());
    if begin_late > BEGIN_LATE_MAX {
        reasons.push(format!(
            "client limit: streams were begun up to {} ms late; use a lower --rate",
            begin_late.as_millis()
        ));
    }
    reasons
}

/// Streams that never opened, by kind, the client's own limits named as such.
fn missing(plan: &Plan, tally: &Tally) -> Option<String> {
    let missing = (plan.streams as u64).saturating_sub(tally.opened);
    if missing == 0 {
        return None;
    }
    let mut kinds: Vec<_> = tally.failed.iter().filter(|(failure, _)| failure.is_before_open()).collect();
    kinds.sort_by_key(|(_, streams)| std::cmp::Reverse(**streams));
    let kinds: Vec<_> = kinds
        .into_iter()
        .map(|(failure, streams)| {
            let whose = match failure {
                Failure::ConnectUnfinished | Failure::HeadersUnfinished => " (still waiting when the run ended)",
                Failure::NotBegun => " (the run ended before their turn)",
                Failure::CutBeforeHeaders => " (by --cut-after)",
                _ if failure.is_client_limit() => " (client limit)",
                _ => "",
            };
            format!("{streams} {}{whose}", failure.kind())
        })
        .collect();
    Some(format!("{missing} of {} streams did not open: {}", plan.streams, kinds.join(", ")))
}

/// Streams that opened and did not stay, or that did not end where they should have.
fn shortfall(plan: &Plan, tally: &Tally, evidence: &Evidence) -> Option<String> {
    let cut: u64 =
        tally.failed.iter().filter(|(failure, _)| !failure.is_before_open()).map(|(_, streams)| *streams).sum();
    match plan.shape {
        Shape::Hold(_) => {
            let held_min = evidence.held_min as u64;
            (held_min < tally.opened).then(|| {
                format!(
                    "{held_min} of {} opened streams were held throughout the hold phase: {} ended, {cut} were cut or failed",
                    tally.opened, tally.completed
                )
            })
        }
        Shape::Complete(within) | Shape::Closed { within, .. } => unfinished(tally, cut, within),
        Shape::Open { .. } => unfinished(tally, cut, plan.drain),
    }
}

/// Streams that were to run to their own end and did not: the deadline is this harness's, not the server's.
fn unfinished(tally: &Tally, cut: u64, within: Duration) -> Option<String> {
    let left = tally.opened.saturating_sub(tally.completed + cut);
    (left > 0)
        .then(|| format!("{left} streams had not ended after {:.1} s, this harness's own limit", within.as_secs_f64()))
}

/// Timers that fired late: silences and latencies were measured that much too long, or too short.
fn lag(interval: Duration, lag_ms: Option<Distribution>) -> Option<String> {
    let lag_ms = lag_ms?;
    let interval_ms = interval.as_secs_f64() * 1e3;
    let p99_max = (interval_ms * LAG_P99_SHARE).clamp(LAG_P99_MS.0, LAG_P99_MS.1);
    let max_max = (interval_ms * LAG_MAX_SHARE).clamp(LAG_MAX_MS.0, LAG_MAX_MS.1);
    if lag_ms.p99 > p99_max {
        return Some(format!(
            "client limit: one timer in a hundred fired more than {:.0} ms late ({p99_max:.0} ms allowed); \
             use fewer streams, or leave the client a core",
            lag_ms.p99
        ));
    }
    (lag_ms.max > max_max).then(|| {
        format!(
            "client limit: everything here stood still for {:.0} ms once ({max_max:.0} ms allowed); run it again",
            lag_ms.max
        )
    })
}

/// A worker whose thread had no time left.
fn saturation(tally: &Tally, hold_ns: u64) -> Option<String> {
    (tally.busy_max > BUSY_MAX && hold_ns >= BUSY_JUDGED_FROM_NS).then(|| {
        format!(
            "client limit: a worker was busy {:.0} % of the hold phase; use fewer streams or more workers",
            tally.busy_max * 100.0
        )
    })
}

/// Returns what part of `whole` the `part` is; 0 of nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A timer late by a twentieth of the interval moves a silence by as much, at p99.
const LAG_P99_SHARE: f64 = 0.05;

/// Within these bounds: below, lateness is the timer wheel's millisecond and the kernel's scheduling; above, gaps between
/// tokens and times to the first one are wrong, however long the interval.
const LAG_P99_MS: (f64, f64) = (20.0, 50.0);

/// One stall may move the longest silence by this much of the interval.
const LAG_MAX_SHARE: f64 = 0.15;

/// Within these bounds: a shorter stall is everyday on a busy machine, a longer one is seen by every stream at once.
const LAG_MAX_MS: (f64, f64) = (150.0, 1_000.0);

/// Above this a worker reads late whatever the timers say: one thread near its core's end has queues.
const BUSY_MAX: f64 = 0.9;

/// A shorter phase says nothing about how busy a thread is: it is over before the streams have been opened.
const BUSY_JUDGED_FROM_NS: u64 = 200_000_000;

/// Streams begun later than this were another ramp than the one asked for.
const BEGIN_LATE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Settings;

    fn plan(streams: usize) -> Plan {
        let mut settings = Settings::new("http://x/".parse().unwrap());
        settings.streams = streams;
        settings.interval = Duration::from_secs(1);
        Plan::new(&settings, "127.0.0.1:80".parse().unwrap(), 1)
    }

    fn all_held(streams: usize) -> (Tally, Evidence) {
        let mut tally = Tally::new();
        tally.opened = streams as u64;
        let evidence = Evidence {
            held_min: streams,
            hold_ns: 10_000_000_000,
            hold_from_unix_ms: 0,
            lag_ms: Some(Distribution { p50: 0.5, p90: 1.0, p99: 2.0, p99_9: 3.0, max: 40.0 }),
            interrupted: false,
            timeline: Timeline::default(),
        };
        (tally, evidence)
    }

    #[test]
    fn a_run_that_held_all_streams_is_valid() {
        let (tally, evidence) = all_held(10);
        assert_eq!(reasons(&plan(10), &tally, &evidence), [""; 0]);
    }

    #[test]
    fn a_client_limit_is_named_as_one() {
        let (mut tally, evidence) = all_held(7);
        tally.add_failed(Failure::ClientPorts, 2);
        tally.add_failed(Failure::Status(503), 1);
        assert_eq!(
            reasons(&plan(10), &tally, &evidence),
            ["3 of 10 streams did not open: 2 client_ports (client limit), 1 status_503"]
        );
    }

    #[test]
    fn streams_that_end_cleanly_are_a_shortfall_and_not_cut() {
        let (mut tally, mut evidence) = all_held(10);
        tally.completed = 4;
        evidence.held_min = 6;
        let reasons = reasons(&plan(10), &tally, &evidence);
        assert_eq!(reasons.len(), 1);
        assert!(reasons[0].contains("6 of 10") && reasons[0].contains("4 ended, 0 were cut"), "{reasons:?}");
    }

    #[test]
    fn a_stall_of_the_machine_is_said() {
        let (tally, mut evidence) = all_held(10);
        evidence.lag_ms.as_mut().unwrap().max = 812.0;
        let reasons = reasons(&plan(10), &tally, &evidence);
        assert!(reasons[0].contains("stood still for 812 ms"), "{reasons:?}");
    }

    #[test]
    fn a_worker_without_time_left_is_said() {
        let (mut tally, evidence) = all_held(10);
        tally.busy_max = 0.95;
        let reasons = reasons(&plan(10), &tally, &evidence);
        assert!(reasons[0].contains("busy 95 %"), "{reasons:?}");
    }
}
