//! The table and the JSON file made of one run's figures; called by `main`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::lane::Window;
use crate::rounds::{Figures, Measured};
use crate::settings::Settings;
use crate::target::{self, Reached, Verdict};
use crate::under_test::Variant;

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
    for (streams, sweeps) in &figures.sweeps {
        let (live, rounds) = (settings.live, settings.sweep_rounds);
        let _ = writeln!(
            text,
            "\n{live} live streams of 50 tokens a second among {streams} through heartline, {rounds} windows each, µs under way\n\n\
             {:20} {:>8} {:>8} {:>8}",
            "", "p50", "p99", "p99.9"
        );
        for (variant, measured) in sweeps {
            let of = |figure: fn(&Window) -> f64| measured.median(figure);
            let (p50, p99, p99_9) =
                (of(|window| window.p50_us), of(|window| window.p99_us), of(|window| window.p99_9_us));
            let _ = writeln!(text, "{:20} {p50:>8.0} {p99:>8.0} {p99_9:>8.0}", variant.name());
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
    let _ = writeln!(text, "\n{:56} {:>8} {:>8}  {:>15}", "target", "at most", "reached", "95 % between");
    for target in target::all(figures) {
        let (most, Reached { median, low, high }, verdict) = (target.most, target.reached, target.verdict());
        let _ = writeln!(text, "{:56} {most:>8.2} {median:>8.2}  {low:>7.2} {high:>7.2}  {verdict}", target.name);
    }
    text
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
    let sweeps = figures.sweeps.iter().map(|(streams, measured)| (streams.to_string(), of(measured)));
    let targets = target::all(figures).into_iter().map(|target| {
        let Reached { median, low, high } = target.reached;
        let verdict = match target.verdict() {
            Verdict::Undecided => "undecided".to_owned(), // without its advice
            verdict => verdict.to_string(),
        };
        let between = [number(low), number(high)];
        let row = json!({ "most": target.most, "reached": number(median), "between": between, "verdict": verdict });
        (target.name, row)
    });
    let document = json!({
        "rate": settings.rate,
        "rounds": settings.rounds,
        "window_s": settings.window.as_secs(),
        "streams": Value::Object(compared.collect()),
        "sweeps": Value::Object(sweeps.collect()),
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
