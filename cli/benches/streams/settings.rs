//! What one run of the streams bench does: parsed from its flags by `main`, read by the rounds and the report.

use std::path::PathBuf;
use std::time::Duration;

/// Files a process opens beside its streams: runtime, pipes, listener.
pub(crate) const FILES_SPARE: u64 = 64;

/// Time between two heartbeats of every server.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Time between two tokens of a live stream: 50 tokens a second.
pub(crate) const TOKEN_INTERVAL: Duration = Duration::from_millis(20);

/// The servers that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// A `send(2)` loop over sockets, no HTTP library.
    Floor,
    /// axum's `Sse` and `KeepAlive` under `axum::serve`.
    Axum,
    /// One tokio `Sleep` in every body, on hyper's http1 builder.
    Sleep,
    /// heartline around every body, on hyper's http1 builder.
    Heartline,
    /// Bodies that have sent one byte and then wait forever, on hyper's http1 builder.
    Bare,
}

impl Variant {
    /// The servers that write heartbeats, in the order of the first round.
    pub(crate) const BEATING: [Self; 4] = [Self::Floor, Self::Axum, Self::Sleep, Self::Heartline];

    /// The name used in flags, in the table and in the JSON file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Axum => "axum",
            Self::Sleep => "sleep",
            Self::Heartline => "heartline",
            Self::Bare => "bare",
        }
    }

    /// The variant of that name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Floor, Self::Axum, Self::Sleep, Self::Heartline, Self::Bare]
            .into_iter()
            .find(|variant| variant.name() == name)
    }
}

/// One run's sizes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Streams held by each server.
    pub(crate) streams: usize,
    /// Rounds; the figures are medians over them.
    pub(crate) rounds: usize,
    /// How long each server's heartbeats are counted: whole intervals.
    pub(crate) window: Duration,
    /// Live token streams among `streams` in the part that measures their delay.
    pub(crate) live: usize,
    /// Worker threads of each server's runtime; the floor has one thread by nature.
    pub(crate) workers: usize,
    /// The variants that run.
    pub(crate) only: Vec<Variant>,
    /// Where the figures go; `target/heartline/streams.json` when absent.
    pub(crate) json: Option<PathBuf>,
}

impl Settings {
    /// Reads the flags.
    ///
    /// # Errors
    ///
    /// A sentence that names the flag which is unknown or has no usable value.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let quick = arguments.iter().any(|flag| flag == "--quick") || !arguments.iter().any(|flag| flag == "--bench");
        let (streams, rounds, seconds, live) = if quick { (300, 1, 2, 20) } else { (9_000, 5, 5, 200) };
        let mut settings = Self {
            streams,
            rounds,
            window: Duration::from_secs(seconds),
            live,
            workers: cores,
            only: vec![Variant::Floor, Variant::Axum, Variant::Sleep, Variant::Heartline, Variant::Bare],
            json: None,
        };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--bench" | "--quick" => {}
                "--streams" => settings.streams = number(flag, value()?)?,
                "--rounds" => settings.rounds = number(flag, value()?)?,
                "--window" => settings.window = Duration::from_secs(number(flag, value()?)? as u64),
                "--live" => settings.live = number(flag, value()?)?,
                "--workers" => settings.workers = number(flag, value()?)?,
                "--json" => settings.json = Some(PathBuf::from(value()?)),
                "--only" => {
                    let names = value()?
                        .split(',')
                        .map(|name| Variant::of_name(name).ok_or(format!("--only: no server is called {name}")));
                    settings.only = names.collect::<Result<_, _>>()?;
                }
                // A name filter, as cargo passes it to every bench: this one has one name.
                filter if !filter.starts_with('-') => {}
                unknown => return Err(format!("unknown flag {unknown}")),
            }
        }
        settings.live = settings.live.min(settings.streams);
        Ok(settings)
    }

    /// True when the variant takes part in this run.
    pub(crate) fn runs(&self, variant: Variant) -> bool {
        self.only.contains(&variant)
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
