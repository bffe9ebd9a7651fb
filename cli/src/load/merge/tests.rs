//! Tests of `merge`: parts equal the whole, and what must not be added is refused.

use super::*;
use crate::load::test_report::of_part;

/// Parts as they come back from their files, in any order.
fn parts(of: u32) -> Vec<(String, Report)> {
    let read = |index| {
        let written = serde_json::to_string(&of_part(index, of)).unwrap();
        (format!("shard-{index}.json"), serde_json::from_str(&written).unwrap())
    };
    (0..of).rev().map(read).collect()
}

fn refused(reports: Vec<(String, Report)>) -> String {
    let error = merge(reports, &[]).unwrap_err();
    assert!(error.is_config());
    error.to_string()
}

#[test]
fn four_shards_merged_equal_one_run_of_the_same_plan() {
    let merged = merge(parts(4), &[]).unwrap();
    let whole = of_part(0, 1);
    assert_eq!(merged.histograms, whole.histograms, "count by count");
    let plain = |report: &Report| {
        let mut report = report.clone();
        report.merged = None;
        report.slices = None;
        report.settings.shards = 1;
        // The whole says it of itself, the merged one of its shard; compared below.
        report.client.reasons.clear();
        serde_json::to_value(&report).unwrap()
    };
    assert_eq!(plain(&merged), plain(&whole));
    assert_eq!(whole.client.reasons, ["1 of 100 streams did not open: 1 status_503"]);
    assert_eq!(merged.client.reasons, ["shard 2 of 4: 1 of 25 streams did not open: 1 status_503"]);
    let found = merged.merged.unwrap();
    assert_eq!(found.parts.iter().map(|part| part.shard.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(found.notes.is_empty());
}

#[test]
fn percentiles_are_those_of_all_streams_and_no_average() {
    let mut reports = parts(2);
    // Forty of one part's streams and none of the other's were silent for long.
    let mut long = crate::load::spread::Spread::new();
    long.add_times(60_000_000_000, 40);
    reports[0].1.histograms.silence = long;
    let silence = merge(reports, &[]).unwrap().silence_ms.unwrap();
    assert_eq!(silence.max, 60_000.0);
    assert!(silence.p90 > 59_000.0 && silence.p50 < 200.0, "{silence:?}");
}

#[test]
fn a_missing_shard_is_refused_unless_allowed() {
    let mut reports = parts(4);
    reports.remove(1);
    let message = refused(reports.clone());
    assert!(message.contains("of 4 shards these are missing: 2") && message.contains("--allow missing"), "{message}");
    let merged = merge(reports, &[Allowed::Missing]).unwrap();
    assert_eq!(merged.streams.requested, 75);
    assert_eq!(merged.merged.unwrap().notes, ["of 4 shards these are missing: 2"]);
}

#[test]
fn a_shard_that_is_there_twice_is_refused_unless_allowed() {
    let mut reports = parts(2);
    reports.push(("copy.json".to_owned(), reports[0].1.clone()));
    let message = refused(reports.clone());
    assert!(message.contains("shard-1.json and copy.json are both shard 1 of 2"), "{message}");
    assert_eq!(merge(reports, &[Allowed::Duplicate]).unwrap().streams.requested, 150);
}

#[test]
fn parts_of_different_plans_are_refused_unless_allowed() {
    let mut reports = parts(2);
    reports[1].1.settings.seed = 8;
    reports[1].1.settings.rate_per_second = 1;
    let message = refused(reports.clone());
    assert!(message.contains("rate_per_second 1 and 2000, and 1 more"), "{message}");
    assert!(merge(reports, &[Allowed::Mixed]).is_ok());
    assert!(refused(Vec::new()).contains("nothing to merge"));
}

#[test]
fn a_part_that_was_invalid_makes_the_whole_invalid() {
    let mut reports = parts(2);
    for (_, report) in &mut reports {
        report.client.reasons.clear();
        report.client.valid = true;
    }
    assert!(merge(reports.clone(), &[]).unwrap().client.valid);
    reports[0].1.client.reasons.push("client limit: busy".to_owned());
    let merged = merge(reports, &[]).unwrap();
    assert!(!merged.client.valid);
    assert_eq!(merged.client.reasons, ["shard 1 of 2: client limit: busy"]);
}

#[test]
fn only_the_overlap_of_the_hold_phases_is_judged() {
    use crate::load::slices::{Came, Slices, note_silence};
    let planned = Duration::from_secs(20);
    let ns = |ms: u64| ms * 1_000_000;
    let window = crate::load::phases::Window { from_ns: 0, to_ns: ns(20_000) };
    let mut reports = parts(2);
    for (_, report) in &mut reports {
        let mut slices = Slices::new();
        for at in (0..20_000).step_by(100) {
            let came = Came { events: 1, heartbeats: 1, bytes: 3, gap_ns: Some(ns(100)), between_heartbeats_ns: None };
            slices.add(ns(at), planned, came);
        }
        let mut longest = Default::default();
        // The longest silence is at the very beginning, the next one in the middle.
        note_silence(&mut longest, window, planned, 0, ns(900));
        note_silence(&mut longest, window, planned, ns(9_000), ns(9_300));
        slices.add_silences(&longest);
        report.slices = Some(slices);
    }
    // The one that came later keeps its beginning and loses its end; the other one the other way round.
    reports[0].1.hold.from_unix_ms += 1_500;
    let merged = merge(reports.clone(), &[]).unwrap();
    assert_eq!((merged.events.total, merged.bytes), (2 * 180, 2 * 540), "two of twenty slices are left out of each");
    let silence = merged.silence_ms.unwrap();
    assert_eq!((silence.p50.round(), silence.max), (300.0, 900.0), "of the two only the later one saw the first");
    assert_eq!(merged.hold, Hold { from_unix_ms: reports[0].1.hold.from_unix_ms, length_ms: 18_000 });
    assert_eq!(merged.events.per_second, 20.0);

    reports[0].1.hold.from_unix_ms += 9_000;
    let message = refused(reports.clone());
    assert!(
        message.contains("began up to 10.5 s apart and have 9.5 s in common") && message.contains("--start-at"),
        "{message}"
    );
    assert!(merge(reports, &[Allowed::Apart]).is_ok());
}

#[test]
fn clocks_that_differ_by_little_cost_nothing() {
    let mut reports = parts(2);
    reports[0].1.hold.from_unix_ms += TOGETHER_MS;
    assert_eq!(merge(reports, &[]).unwrap().events.total, 99 * 11);
}
