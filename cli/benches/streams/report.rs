//! The table and the JSON file made of one run's figures; called by `main`.

use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::pair::{Late, Window};
use crate::rounds::Figures;
use crate::settings::{Settings, Variant};

/// The table a run ends with: medians, ratios, and each target beside what was reached.
pub(crate) fn table(settings: &Settings, figures: &Figures) -> String {
    let mut text = String::new();
    let cpu = |name| figures.median(name, |window| window.cpu_us_per_heartbeat);
    let ratio = |name, base| cpu(name) / cpu(base);
    let _ = writeln!(
        text,
        "\n{} streams, one heartbeat a second, {} rounds of {} s, {} workers\n",
        settings.streams,
        settings.rounds,
        settings.window.as_secs(),
        settings.workers
    );
    let _ = writeln!(
        text,
        "{:10} {:>9} {:>8} {:>8} {:>8} {:>10} {:>10} {:>11} {:>11} {:>11}",
        "server", "µs/beat", "/floor", "/axum", "/sleep", "client µs", "allocs", "delivered", "heap B", "resident B"
    );
    for variant in Variant::BEATING.into_iter().chain([Variant::Bare]) {
        let name = variant.name();
        if !figures.windows.contains_key(name) {
            continue;
        }
        let of = |figure: fn(&Window) -> f64| figures.median(name, figure);
        let (heap, resident) = (of(|window| window.heap_bytes), of(|window| window.rss_bytes));
        if variant == Variant::Bare {
            let _ = writeln!(text, "{name:10} {:>91} {resident:>11.0}", format!("{heap:.0}"));
            continue;
        }
        let _ = writeln!(
            text,
            "{name:10} {:>9.2} {:>8.2} {:>8.2} {:>8.2} {:>10.2} {:>10.2} {:>10.1}% {heap:>11.0} {resident:>11.0}",
            cpu(name),
            ratio(name, "floor"),
            ratio(name, "axum"),
            ratio(name, "sleep"),
            of(|window| window.client_us_per_heartbeat),
            of(|window| window.allocations_per_heartbeat),
            of(|window| window.delivered) * 100.0,
        );
    }
    if !figures.late.is_empty() {
        let _ = writeln!(
            text,
            "\n{} live streams of 50 tokens a second among them, ms late     p50      p99    p99.9",
            settings.live
        );
        for (name, shown) in [("bare", "no heartbeats"), ("heartline", "heartline")] {
            let of = |figure: fn(&Late) -> f64| figures.median_late(name, figure);
            let _ = writeln!(
                text,
                "{shown:55} {:>8.2} {:>8.2} {:>8.2}",
                of(|late| late.p50),
                of(|late| late.p99),
                of(|late| late.p99_9)
            );
        }
    }
    let over = figures.heap_over_bare("heartline");
    let late = figures.median_late("heartline", |late| late.p99) / figures.median_late("bare", |late| late.p99);
    let _ = writeln!(text, "\n{:52} {:>8} {:>8}", "target, for 9,000 streams", "at most", "reached");
    for (target, most, reached) in [
        ("CPU per heartbeat, of the floor", 1.5, ratio("heartline", "floor")),
        ("CPU per heartbeat, of axum", 0.7, ratio("heartline", "axum")),
        ("CPU per heartbeat, of one Sleep per stream", 0.75, ratio("heartline", "sleep")),
        ("heap over a bare body, bytes per stream", 150.0, over),
        ("live tokens' p99, of no heartbeats", 1.1, late),
    ] {
        let verdict = if reached.is_nan() {
            "not run"
        } else if reached <= most {
            "met"
        } else {
            "missed"
        };
        let _ = writeln!(text, "{target:52} {most:>8.2} {reached:>8.2}  {verdict}");
    }
    text
}

/// Writes the figures where CI and the documentation look for them, and says where.
pub(crate) fn write_json(settings: &Settings, figures: &Figures) -> std::io::Result<PathBuf> {
    let path = settings.json.clone().unwrap_or_else(default_path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let cpu = |name| number(figures.median(name, |window| window.cpu_us_per_heartbeat));
    let resident = |name| number(figures.median(name, |window| window.rss_bytes));
    let late = |name| {
        let of = |figure: fn(&Late) -> f64| number(figures.median_late(name, figure));
        json!({ "p50": of(|late| late.p50), "p99": of(|late| late.p99), "p99_9": of(|late| late.p99_9) })
    };
    let document = json!({
        "streams": settings.streams,
        "rounds": settings.rounds,
        "cpu_us_per_heartbeat": {
            "floor": cpu("floor"), "axum": cpu("axum"), "sleep": cpu("sleep"), "heartline": cpu("heartline"),
        },
        "heap_bytes_over_bare": {
            "sleep": number(figures.heap_over_bare("sleep")), "heartline": number(figures.heap_over_bare("heartline")),
        },
        "rss_bytes_per_stream": {
            "bare": resident("bare"), "axum": resident("axum"), "sleep": resident("sleep"), "heartline": resident("heartline"),
        },
        "live_ms": { "none": late("bare"), "heartline": late("heartline") },
    });
    std::fs::write(&path, format!("{document:#}\n"))?;
    Ok(path)
}

impl Figures {
    /// The median over all rounds of one server, NaN when it did not run.
    fn median(&self, name: &str, figure: fn(&Window) -> f64) -> f64 {
        median(self.windows.get(name).map_or(Vec::new(), |windows| windows.iter().map(figure).collect()))
    }

    fn median_late(&self, name: &str, figure: fn(&Late) -> f64) -> f64 {
        median(self.late.get(name).map_or(Vec::new(), |rounds| rounds.iter().map(figure).collect()))
    }

    fn heap_over_bare(&self, name: &str) -> f64 {
        self.median(name, |window| window.heap_bytes) - self.median("bare", |window| window.heap_bytes)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// Two decimals, `null` for what was not measured.
fn number(value: f64) -> Value {
    if value.is_finite() { json!((value * 100.0).round() / 100.0) } else { Value::Null }
}

/// `heartline/streams.json` in the folder that cargo builds to: this binary lies in its `release/deps`.
fn default_path() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(3).map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("heartline").join("streams.json")
}
