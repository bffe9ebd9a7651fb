//! Reports of a run that never was: a hundred streams whose every figure follows from their number. The tests of
//! `merge`, `threshold`, `compare` and of what is made of a report use it.

use std::time::Duration;

use super::asked::Asked;
use super::plan::Plan;
use super::tally::Tally;
use super::timeline::Timeline;
use super::verdict::Evidence;
use super::{Failure, Phase, Progress, Report, Settings, Shape, Shard};

const MS: u64 = 1_000_000;

/// Returns the settings of the whole plan.
pub(super) fn settings() -> Settings {
    let mut settings = Settings::new("http://127.0.0.1:1/events".parse().expect("a URL"));
    settings.streams = 100;
    settings.shape = Shape::Hold(Duration::from_secs(20));
    settings.interval = Duration::from_secs(1);
    settings.seed = 7;
    settings
}

/// Runs part `index` of `of`: what each of its streams measured follows from the stream's number, so that the parts
/// together measured what the whole would have.
pub(super) fn of_part(index: u32, of: u32) -> Report {
    let mut settings = settings();
    settings.shard = Shard { index, of };
    let plan = Plan::new(&settings, ([127, 0, 0, 1], 1).into(), 1);
    let mut tally = Tally::new();
    for worker in 0..plan.workers {
        for begin in plan.begins(worker) {
            let number = begin.index as u64;
            if number == 50 {
                tally.add_failed(Failure::Status(503), 1);
                continue;
            }
            tally.opened += 1;
            tally.connect.add(number * MS / 10);
            tally.headers.add(number * MS / 7);
            tally.first_byte.add(number * MS / 3);
            tally.add_silence((100 + number) * MS);
            tally.events += 11;
            tally.bytes += 11 * number;
            tally.beats.total += 20;
            for _ in 0..10 {
                tally.gap.add((10 + number % 13) * MS);
            }
        }
    }
    let held_min = tally.opened as usize;
    let evidence = Evidence {
        held_min,
        hold_ns: 20_000 * MS,
        hold_from_unix_ms: 1_764_616_000_000,
        lag_ms: None,
        interrupted: false,
        timeline: Timeline::default(),
    };
    Report::new(&plan, Asked::of(&settings), tally, evidence)
}

/// A report of one hundred streams, one of them cut after half a minute, for the tests of what is made of a report.
pub(super) fn sample() -> Report {
    let mut settings = Settings::new("http://127.0.0.1:8900/events".parse().expect("a URL"));
    settings.interval = Duration::from_secs(1);
    let plan = Plan::new(&settings, ([127, 0, 0, 1], 8900).into(), 1);
    let mut tally = Tally::new();
    (tally.opened, tally.completed, tally.bytes, tally.beats.total) = (100, 2, 1_900, 1_900);
    tally.add_failed(Failure::CutReset, 1);
    for stream in 1..=100 {
        tally.add_silence(1_000_000_000 + stream * 300_000);
        tally.ttft.add(stream * 20_000_000);
        tally.connect.add(stream * 3_000);
    }
    tally.add_silence(31_000_000_000);
    for _ in 0..1_900 {
        tally.beats.kinds.add(b"\n");
    }
    let mut timeline = Timeline::default();
    for second in 0..=20 {
        timeline.note(&Progress {
            phase: if second < 2 { Phase::Ramp } else { Phase::Hold },
            elapsed: Duration::from_secs(second),
            held: Duration::from_secs(second.saturating_sub(2)),
            requested: 100,
            open: 100 - (second / 7) as usize,
            settled: 100,
            ended: (second / 7) as usize,
            heartbeats: second * 100,
            events: 0,
        });
    }
    let evidence = Evidence {
        held_min: 98,
        hold_ns: 18_000_000_000,
        hold_from_unix_ms: 1_796_000_000_000,
        lag_ms: None,
        interrupted: false,
        timeline,
    };
    Report::new(&plan, Asked::of(&settings), tally, evidence)
}
