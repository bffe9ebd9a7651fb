//! The parts of one run: all variants in turn for each number of streams, live tokens among idle streams, the soak. Called
//! by `main`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::lane::{Lane, Window};
use crate::settings::Settings;
use crate::soak::{self, Soak};
use crate::under_test::Variant;

/// Time between two tokens of a live stream in the part about sweeps.
const TOKEN_INTERVAL: Duration = Duration::from_millis(20);

/// What the windows of one variant came to.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) windows: Vec<Window>,
    pub(crate) memory_bytes: f64,
}

/// Everything that was measured; `report` makes medians of it.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// By the number of streams, then by variant.
    pub(crate) compared: BTreeMap<usize, BTreeMap<Variant, Measured>>,
    /// Live tokens among idle streams, with heartbeats and without.
    pub(crate) sweeps: BTreeMap<Variant, Measured>,
    pub(crate) soak: Option<Soak>,
}

/// Runs every part.
///
/// # Errors
///
/// A sentence that says which variant lost streams, and how many.
pub(crate) fn run(settings: &Settings) -> Result<Figures, String> {
    let begun = Instant::now();
    let mut figures = Figures::default();
    let compared: Vec<Variant> = Variant::COMPARED
        .into_iter()
        .filter(|variant| settings.runs(variant.name()))
        .filter(|variant| here(*variant))
        .collect();
    for &streams in &settings.streams {
        if compared.is_empty() {
            break;
        }
        let interval = Duration::from_secs(1).mul_f64(streams as f64 / settings.rate as f64);
        let lanes = open(&begun, &compared, streams, streams, interval)?;
        figures.compared.insert(streams, turns(&begun, lanes, settings)?);
    }
    if settings.runs("sweeps") {
        let streams = settings.streams_max();
        let lanes = open(&begun, &[Variant::Unbeating, Variant::Beating], streams, settings.live, TOKEN_INTERVAL)?;
        figures.sweeps = turns(&begun, lanes, settings)?;
    }
    if settings.runs("soak") {
        figures.soak = Some(soak::run(settings.requests, &begun)?);
    }
    Ok(figures)
}

fn open(
    begun: &Instant,
    variants: &[Variant],
    streams: usize,
    live: usize,
    interval: Duration,
) -> Result<Vec<Lane>, String> {
    let mut lanes = Vec::new();
    for &variant in variants {
        let lane = Lane::open(variant, streams, live, interval)?;
        say(begun, &format!("{streams} streams open: {}", variant.name()));
        lanes.push(lane);
    }
    Ok(lanes)
}

/// Windows in turn, the order moved on by one each round.
fn turns(begun: &Instant, mut lanes: Vec<Lane>, settings: &Settings) -> Result<BTreeMap<Variant, Measured>, String> {
    let mut all: BTreeMap<Variant, Measured> = BTreeMap::new();
    for lane in &lanes {
        all.entry(lane.variant).or_default().memory_bytes = lane.memory_bytes;
    }
    let count = lanes.len();
    for round in 0..settings.rounds {
        for place in 0..count {
            let lane = &mut lanes[(round + place) % count];
            let window = lane.measure(settings.window)?;
            say(
                begun,
                &format!(
                    "round {} of {}: {:18} {:6.2} µs an event, {:6.0} µs under way, p99 {:6.0}, {:5.1} % of {} delivered",
                    round + 1,
                    settings.rounds,
                    lane.variant.name(),
                    window.cpu_us,
                    window.p50_us,
                    window.p99_us,
                    window.delivered * 100.0,
                    window.events,
                ),
            );
            all.entry(lane.variant).or_default().windows.push(window);
        }
    }
    Ok(all)
}

fn here(variant: Variant) -> bool {
    if !variant.is_here() && variant != Variant::Other {
        eprintln!("proxy: {} is not installed and is skipped (apt-get install {0})", variant.name());
    }
    variant.is_here()
}

/// Says how far the run has come.
pub(crate) fn say(begun: &Instant, what: &str) {
    eprintln!("{:>4.0} s  {what}", begun.elapsed().as_secs_f64());
}
