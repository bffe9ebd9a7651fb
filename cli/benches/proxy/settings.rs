//! What one run of the proxy bench does: parsed from its flags by `main`, read by everything else.

use std::path::PathBuf;
use std::time::Duration;

/// Files a process opens beside its streams: runtime, pipes, listeners, the pool.
const FILES_SPARE: u64 = 200;

/// The variants and parts that can be chosen.
pub(crate) const NAMES: [&str; 7] = ["direct", "nginx", "haproxy", "heartline", "other", "sweeps", "soak"];

/// One run's sizes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Streams held by each variant, one set of rounds for each number.
    pub(crate) streams: Vec<usize>,
    /// Events a second over all streams of a variant.
    pub(crate) rate: usize,
    /// Windows of each variant; the figures are medians over them.
    pub(crate) rounds: usize,
    /// How long one window is.
    pub(crate) window: Duration,
    /// Live streams among idle ones in the part about sweeps, at 50 events a second each.
    pub(crate) live: usize,
    /// Requests of the soak.
    pub(crate) requests: usize,
    /// What runs.
    pub(crate) only: Vec<String>,
    /// Where the figures go; `target/heartline/proxy.json` when absent.
    pub(crate) json: Option<PathBuf>,
}

impl Settings {
    /// Reads the flags.
    ///
    /// # Errors
    ///
    /// A sentence that names the flag which is unknown or has no usable value.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let quick = arguments.iter().any(|flag| flag == "--quick") || !arguments.iter().any(|flag| flag == "--bench");
        let mut settings = Self {
            streams: if quick { vec![200] } else { vec![2_000, 9_000] },
            rate: if quick { 2_000 } else { 10_000 },
            rounds: if quick { 2 } else { 15 },
            window: if quick { Duration::from_secs(1) } else { Duration::from_secs(2) },
            live: if quick { 20 } else { 200 },
            requests: if quick { 2_000 } else { 100_000 },
            only: NAMES.map(String::from).to_vec(),
            json: None,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--bench" | "--quick" => {}
                "--streams" => {
                    settings.streams = value()?.split(',').map(|text| number(flag, text)).collect::<Result<_, _>>()?;
                }
                "--rate" => settings.rate = number(flag, value()?)?,
                "--rounds" => settings.rounds = number(flag, value()?)?,
                "--window" => settings.window = Duration::from_secs(number(flag, value()?)? as u64),
                "--live" => settings.live = number(flag, value()?)?,
                "--requests" => settings.requests = number(flag, value()?)?,
                "--json" => settings.json = Some(PathBuf::from(value()?)),
                "--only" => {
                    settings.only = value()?.split(',').map(String::from).collect();
                    if let Some(name) = settings.only.iter().find(|name| !NAMES.contains(&name.as_str())) {
                        return Err(format!("--only: {name} is none of {}", NAMES.join(", ")));
                    }
                }
                // A name filter, as cargo passes it to every bench: this one has one name.
                filter if !filter.starts_with('-') => {}
                unknown => return Err(format!("unknown flag {unknown}")),
            }
        }
        Ok(settings)
    }

    /// True when `name` takes part in this run.
    pub(crate) fn runs(&self, name: &str) -> bool {
        self.only.iter().any(|only| only == name)
    }

    /// The most streams at once.
    pub(crate) fn streams_max(&self) -> usize {
        self.streams.iter().copied().max().unwrap_or(0)
    }

    /// Open files that one process needs: a proxy has two for each stream.
    pub(crate) fn files(&self) -> u64 {
        2 * self.streams_max() as u64 + FILES_SPARE
    }
}

/// A count of at least one, `9k` meaning 9,000.
fn number(flag: &str, text: &str) -> Result<usize, String> {
    let (digits, factor) = text.strip_suffix('k').map_or((text, 1), |digits| (digits, 1_000));
    match digits.parse::<usize>() {
        Ok(count) if count > 0 => Ok(count * factor),
        _ => Err(format!("{flag}: {text} is no count above 0")),
    }
}
