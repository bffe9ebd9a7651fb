//! `/metrics`: the recorder of this process and its text form for Prometheus. Called by `answer`.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::super::{Handle, meter};
use super::hops::Worth;

/// Installs a recorder for the process, unless there is one, and describes the metrics.
pub(super) fn install() -> Option<&'static PrometheusHandle> {
    /// One for all proxies of the process, as metrics are.
    static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    let recorder = RECORDER.get_or_init(|| {
        let builder = [
            ("heartline_silence_seconds", &SILENCE[..]),
            ("heartline_sweep_duration_seconds", &SWEEP[..]),
            ("heartline_sweep_lag_seconds", &SWEEP[..]),
        ];
        let builder = builder.into_iter().try_fold(PrometheusBuilder::new(), |builder, (name, bounds)| {
            builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)
        });
        let recorder = builder.ok()?.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).ok()?;
        heartline::describe_metrics();
        meter::describe();
        Some(handle)
    });
    recorder.as_ref()
}

/// Everything recorded until now, and the figures of this moment.
pub(super) fn render(recorder: &PrometheusHandle, proxy: &Handle) -> String {
    meter::state(&proxy.state());
    for worth in Worth::at_all(&proxy.totals(), &proxy.streams()) {
        meter::cuts_avoided(worth.limit(), worth.avoided);
    }
    recorder.run_upkeep();
    recorder.render()
}

/// Seconds of silence: up to an interval of 30 s and a sweep, then what went wrong.
const SILENCE: [f64; 10] = [0.5, 1.0, 5.0, 10.0, 15.0, 20.0, 30.0, 35.0, 60.0, 100.0];
/// Seconds of a sweep, from an idle one to one that outlasts its interval.
const SWEEP: [f64; 9] = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0];
