//! Reports of a run that never was: a hundred streams whose every figure follows from their number. The tests of
//! `merge`, `threshold` and `compare` use it.

use std::time::Duration;

use super::asked::Asked;
use super::plan::Plan;
use super::tally::Tally;
use super::verdict::Evidence;
use super::{Failure, Report, Settings, Shape, Shard};

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
    };
    Report::new(&plan, Asked::of(&settings), tally, evidence)
}
