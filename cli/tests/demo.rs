//! The demo as a library user runs it: real sockets, a burst that is over within a second or two.
use std::time::Duration;

use heartline_cli::demo::{self, Figures, Plan, Run, Settings, Verdict};

/// A small burst: half of it waits for longer than the gateway's patience.
fn plan() -> Plan {
    let settings = Settings {
        streams: 24,
        wait: Duration::from_millis(800),
        cut_after: Duration::from_millis(400),
        interval: Duration::from_millis(100),
    };
    settings.plan().expect("the figures fit each other")
}

#[tokio::test]
async fn every_stream_is_accounted_for_in_both_runs() {
    let report = demo::run(&plan(), |_| {}).await.expect("the demo runs on one thread too");
    let all = |figures: &Figures| figures.completed + figures.cut + figures.failed;
    assert_eq!((all(&report.without), all(&report.with)), (24, 24), "{report}");

    assert!(report.without.cut > 0 && report.without.completed > 0, "{report}");
    assert_eq!(report.with.completed, 24, "{report}");
    assert!(report.events_identical);
    let verdict = Verdict::of(&report);
    assert!(verdict.is_pass(), "{verdict}");

    // Those who waited for longer than the patience got a token with heartbeats only.
    assert!(report.without.ttft_ms.max < report.with.ttft_ms.max, "{report}");
    assert!(report.without.silence_ms.max >= Some(300.0), "{report}");
}

#[tokio::test]
async fn progress_is_told_of_both_runs_in_their_order() {
    let mut seen = Vec::new();
    let report = demo::run(&plan(), |progress| seen.push(progress)).await.expect("the demo runs");
    let runs: Vec<Run> = seen.iter().map(|progress| progress.run).collect();
    let turn = runs.iter().position(|run| *run == Run::With).expect("the second run is told of");
    assert!(turn > 0 && runs[..turn].iter().all(|run| *run == Run::Without));
    assert!(runs[turn..].iter().all(|run| *run == Run::With));
    assert!(seen.iter().all(|progress| progress.streams == 24 && progress.ended <= 24));
    assert_eq!(seen.last().map(|progress| progress.ended), Some(24), "{report}");
}
