//! The table and the JSON file made of one run's figures; called by `main`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::lane::Window;
use crate::rounds::{Figures, Measured};
use crate::settings::Settings;
use crate::under_test::Variant;

/// Memory that may come and go with the allocator over a soak, in MB.
const SOAK_GROWTH_MB: f64 = 4.0;

/// The table a run ends with: medians, ratios, and each target beside what was reached.
pub(crate) fn table(settings: &Settings, figures: &Figures) -> String {
    let mut text = String::new();
    let (rounds, seconds) = (settings.rounds, settings.window.as_secs());
    for (streams, compared) in &figures.compared {
        let _ = writeln!(
            text,
            "\n{streams} streams, {} events a second over all, {rounds} windows of {seconds} s each, medians\n",
            settings.rate
        );
        let _ = writeln!(
            text,
            "{:10} {:>9} {:>8} {:>10} {:>10} {:>10} {:>10} {:>12}",
            "", "µs/event", "/nginx", "p50 µs", "added µs", "p99 µs", "delivered", "B a stream"
        );
        for (variant, measured) in compared {
            let _ = writeln!(
                text,
                "{:10} {:>9.2} {:>8.2} {:>10.0} {:>10.0} {:>10.0} {:>9.1}% {:>12.0}",
                variant.name(),
                measured.median(|window| window.cpu_us),
                cpu_ratio(compared, *variant),
                measured.median(|window| window.p50_us),
                added(compared, *variant),
                measured.median(|window| window.p99_us),
                measured.median(|window| window.delivered) * 100.0,
                measured.memory_bytes,
            );
        }
    }
    if !figures.sweeps.is_empty() {
        let _ = writeln!(
            text,
            "\n{} live streams of 50 tokens a second among {} through heartline, µs under way     p50      p99    p99.9",
            settings.live,
            settings.streams_max()
        );
        for (variant, measured) in &figures.sweeps {
            let of = |figure: fn(&Window) -> f64| measured.median(figure);
            let (p50, p99, p99_9) =
                (of(|window| window.p50_us), of(|window| window.p99_us), of(|window| window.p99_9_us));
            let _ = writeln!(text, "{:77} {p50:>8.0} {p99:>8.0} {p99_9:>8.0}", variant.name());
        }
    }
    if let Some(soak) = &figures.soak {
        let [before, half, last] = soak.resident_bytes.map(|bytes| bytes as f64 / 1e6);
        let _ = writeln!(
            text,
            "\nsoak: {} answers read whole, {} left, {} failed in {:.0} s; then {} exchanges, {} connections, \
             {} descriptors more than before; resident {before:.1} MB before, {half:.1} after half, {last:.1} after",
            soak.whole, soak.left, soak.failed, soak.seconds, soak.exchanges, soak.connections, soak.files
        );
    }
    let _ = writeln!(text, "\n{:56} {:>8} {:>8}", "target", "at most", "reached");
    for (target, most, reached) in targets(figures) {
        let verdict = if reached.is_nan() {
            "not run"
        } else if reached <= most {
            "met"
        } else {
            "missed"
        };
        let _ = writeln!(text, "{target:56} {most:>8.2} {reached:>8.2}  {verdict}");
    }
    text
}

fn targets(figures: &Figures) -> Vec<(String, f64, f64)> {
    let mut targets = Vec::new();
    for (streams, compared) in &figures.compared {
        let cpu = cpu_ratio(compared, Variant::Heartline);
        targets.push((format!("{streams} streams: CPU per event, of nginx's"), 1.1, cpu));
        let latency = added(compared, Variant::Heartline) / added(compared, Variant::Nginx);
        targets.push((format!("{streams} streams: added median latency, of nginx's"), 1.0, latency));
    }
    targets.push(("live tokens' p99, of no heartbeats".into(), 1.1, sweeps_ratio(figures)));
    if let Some(soak) = &figures.soak {
        let left = soak.exchanges + soak.connections + soak.files.max(0) as u64 + soak.failed;
        targets.push(("soak: exchanges, connections, descriptors left; failed".into(), 0.0, left as f64));
        let grown = (soak.resident_bytes[2] - soak.resident_bytes[1]) as f64 / 1e6;
        targets.push(("soak: MB grown since half of it".into(), SOAK_GROWTH_MB, grown));
    }
    targets
}

/// Writes the figures where CI and the documentation look for them, and says where.
pub(crate) fn write_json(settings: &Settings, figures: &Figures) -> std::io::Result<PathBuf> {
    let path = settings.json.clone().unwrap_or_else(default_path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let of = |measured: &BTreeMap<Variant, Measured>| {
        let rows = measured.iter().map(|(variant, measured)| {
            let row = json!({
                "cpu_us_per_event": number(measured.median(|window| window.cpu_us)),
                "p50_us": number(measured.median(|window| window.p50_us)),
                "p99_us": number(measured.median(|window| window.p99_us)),
                "p99_9_us": number(measured.median(|window| window.p99_9_us)),
                "delivered": number(measured.median(|window| window.delivered)),
                "resident_bytes_per_stream": number(measured.memory_bytes),
            });
            (variant.name().to_owned(), row)
        });
        Value::Object(rows.collect::<Map<_, _>>())
    };
    let compared = figures.compared.iter().map(|(streams, measured)| (streams.to_string(), of(measured)));
    let targets = targets(figures).into_iter().map(|(target, most, reached)| (target, json!([most, number(reached)])));
    let document = json!({
        "rate": settings.rate,
        "rounds": settings.rounds,
        "window_s": settings.window.as_secs(),
        "streams": Value::Object(compared.collect()),
        "sweeps": of(&figures.sweeps),
        "targets": Value::Object(targets.collect()),
    });
    std::fs::write(&path, format!("{document:#}\n"))?;
    Ok(path)
}

impl Measured {
    fn median(&self, figure: fn(&Window) -> f64) -> f64 {
        median(self.windows.iter().map(figure).collect())
    }
}

/// The median over the rounds of one variant's CPU per event over nginx's in the same round.
fn cpu_ratio(compared: &BTreeMap<Variant, Measured>, variant: Variant) -> f64 {
    let (Some(own), Some(nginx)) = (compared.get(&variant), compared.get(&Variant::Nginx)) else { return f64::NAN };
    median(own.windows.iter().zip(&nginx.windows).map(|(own, nginx)| own.cpu_us / nginx.cpu_us).collect())
}

/// The median over the rounds of what a variant adds to the direct connection's median in the same round, in µs.
fn added(compared: &BTreeMap<Variant, Measured>, variant: Variant) -> f64 {
    let (Some(own), Some(direct)) = (compared.get(&variant), compared.get(&Variant::Direct)) else { return f64::NAN };
    median(own.windows.iter().zip(&direct.windows).map(|(own, direct)| own.p50_us - direct.p50_us).collect())
}

fn sweeps_ratio(figures: &Figures) -> f64 {
    let of =
        |variant| figures.sweeps.get(&variant).map_or(f64::NAN, |measured| measured.median(|window| window.p99_us));
    of(Variant::Beating) / of(Variant::Unbeating)
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

/// `heartline/proxy.json` in the folder that cargo builds to: this binary lies in its `release/deps`.
fn default_path() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(3).map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("heartline").join("proxy.json")
}
