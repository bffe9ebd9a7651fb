//! The rounds of one run: every server in turn, the order moved on by one each round; called by `main`.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::pair::{Late, Pair, Window};
use crate::settings::{Settings, Variant};

/// Everything that was measured; `report` makes medians of it.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// By the variant's name.
    pub(crate) windows: BTreeMap<&'static str, Vec<Window>>,
    /// Live tokens, by the variant's name; `bare` is no heartbeats at all.
    pub(crate) late: BTreeMap<&'static str, Vec<Late>>,
}

/// Runs every round.
///
/// # Errors
///
/// A sentence that says which server lost streams, and how many.
pub(crate) fn run(settings: &Settings) -> Result<Figures, String> {
    let begun = Instant::now();
    let mut figures = Figures::default();
    for round in 0..settings.rounds {
        for place in 0..Variant::BEATING.len() {
            let variant = Variant::BEATING[(round + place) % Variant::BEATING.len()];
            if !settings.runs(variant) {
                continue;
            }
            let window = Pair::open(settings, variant, 0)?.measure(settings.window)?;
            eprintln!(
                "{:>4.0} s  round {} of {}: {:9} {:6.2} µs per heartbeat, {:.1} % delivered",
                begun.elapsed().as_secs_f64(),
                round + 1,
                settings.rounds,
                variant.name(),
                window.cpu_us_per_heartbeat,
                window.delivered * 100.0
            );
            figures.windows.entry(variant.name()).or_default().push(window);
        }
    }
    if settings.runs(Variant::Bare) {
        // Memory only: it does not vary from round to round.
        let window = Pair::open(settings, Variant::Bare, 0)?.measure(crate::settings::INTERVAL)?;
        figures.windows.entry(Variant::Bare.name()).or_default().push(window);
    }
    for round in 0..settings.rounds {
        for place in 0..2 {
            let variant = [Variant::Bare, Variant::Heartline][(round + place) % 2];
            if !settings.runs(variant) {
                continue;
            }
            let late = Pair::open(settings, variant, settings.live)?.measure_late(settings.window)?;
            eprintln!(
                "{:>4.0} s  live tokens: {:9} p50 {:.2}, p99 {:.2}, p99.9 {:.2}, max {:.2} ms late, {} tokens",
                begun.elapsed().as_secs_f64(),
                variant.name(),
                late.p50,
                late.p99,
                late.p99_9,
                late.max,
                late.tokens
            );
            figures.late.entry(variant.name()).or_default().push(late);
        }
    }
    Ok(figures)
}
