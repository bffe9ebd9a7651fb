//! What one run of the load bench does: parsed from its flags by `main`.

use std::path::PathBuf;

/// One run's sizes.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long events are counted.
    pub(crate) seconds: u64,
    /// Connections that send events, each one at a time.
    pub(crate) connections: usize,
    /// Events a second on each connection.
    pub(crate) pace: u64,
    /// Streams whose memory is measured.
    pub(crate) memory: usize,
    /// Numbers of streams at which the cost is measured.
    pub(crate) growth: Vec<usize>,
    /// Where the figures go.
    pub(crate) json: PathBuf,
}

impl Settings {
    /// Parses the flags; without cargo's `--bench` the run is quick.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let full = Self {
            seconds: 10,
            connections: 1_000,
            pace: 50,
            memory: 9_000,
            growth: vec![1_000, 10_000, 100_000],
            json: default_path(),
        };
        let quick = Self { seconds: 2, connections: 100, memory: 2_000, growth: vec![500, 2_000], ..full.clone() };
        let is_quick = !arguments.iter().any(|argument| argument == "--bench")
            || arguments.iter().any(|argument| argument == "--quick");
        let mut settings = if is_quick { quick } else { full };
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{flag} needs a value"));
            let number = |text: &String| text.parse().map_err(|_| format!("{flag} {text}: no number"));
            match flag.as_str() {
                "--bench" | "--quick" => {}
                "--seconds" => settings.seconds = number(value()?)? as u64,
                "--connections" => settings.connections = number(value()?)?,
                "--pace" => settings.pace = number(value()?)? as u64,
                "--memory" => settings.memory = number(value()?)?,
                "--growth" => {
                    let list = value()?.split(',').map(|text| number(&text.to_owned())).collect::<Result<_, _>>();
                    settings.growth = list?;
                }
                "--json" => settings.json = value()?.into(),
                other => return Err(format!("{other} is no flag of this bench")),
            }
        }
        Ok(settings)
    }
}

/// `heartline/load.json` in the folder that cargo builds to: this binary lies in its `release/deps`.
fn default_path() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    let target = own.ancestors().nth(3).map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("heartline").join("load.json")
}
