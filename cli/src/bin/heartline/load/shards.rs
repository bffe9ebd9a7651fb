//! The arguments of `heartline load` that share one plan among processes, here or on several machines.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use heartline_cli::load::{Settings, Shard};
use heartline_cli::values;
use http::Uri;

/// Which part of the plan is run here, and by how many processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "More than one process")]
pub(crate) struct ShardArgs {
    /// Processes that share the run on this machine, each with an open-file limit of its own.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64), conflicts_with = "shard")]
    pub(crate) procs: Option<u32>,
    /// Run part I of N of the plan, counted from 0; the plan is the same whatever N is, and 'load merge' adds the parts.
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "json", conflicts_with = "thresholds")]
    pub(crate) shard: Option<Shard>,
    /// When the run starts, the same for all shards: 2026-12-01T12:00:00Z, or seconds since 1970; the hold phase then
    /// begins at a time the plan says.
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    pub(crate) start_at: Option<SystemTime>,
    /// This process is one of `--procs`.
    #[arg(long, hide = true)]
    pub(crate) part: Option<Part>,
}

/// One of the processes that share a run: which part, when it starts, and where the streams come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) shard: Shard,
    pub(crate) start_at: SystemTime,
    pub(crate) url: Uri,
}

impl ShardArgs {
    /// Puts the arguments into settings.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.shard = self.shard.unwrap_or_default();
        settings.start_at = self.start_at;
        if let Some(part) = &self.part {
            settings.shard = part.shard;
            settings.start_at = Some(part.start_at);
        }
    }
}

/// Written as one argument: `0/4 1764616000.25 http://127.0.0.1:8900/events`.
impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = self.start_at.duration_since(UNIX_EPOCH).unwrap_or_default();
        write!(f, "{}/{} {}.{:09} {}", self.shard.index, self.shard.of, start.as_secs(), start.subsec_nanos(), self.url)
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(' ');
        let mut word = || words.next().ok_or_else(|| "a part has three words".to_owned());
        let (shard, start_at) = (shard(word()?)?, values::instant(word()?)?);
        Ok(Self { shard, start_at, url: word()?.parse().map_err(|error| format!("{error}"))? })
    }
}

/// Parses `2/8`.
fn shard(text: &str) -> Result<Shard, String> {
    let malformed = || "not a part; write I/N, counted from 0, for example 0/4".to_owned();
    let (index, of) = text.split_once('/').ok_or_else(malformed)?;
    let index: u32 = index.trim().parse().map_err(|_| malformed())?;
    let of: u32 = of.trim().parse().map_err(|_| malformed())?;
    if index < of {
        Ok(Shard { index, of })
    } else {
        Err(format!("there is no part {index} of {of}; they are counted from 0"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_part_is_counted_from_0() {
        assert_eq!(shard("0/4"), Ok(Shard { index: 0, of: 4 }));
        assert!(shard("4/4").unwrap_err().contains("counted from 0"));
        for text in ["", "1", "a/b", "1/", "-1/4", "1/4/2"] {
            assert!(shard(text).unwrap_err().contains("0/4"), "{text}");
        }
    }

    #[test]
    fn a_part_survives_being_an_argument() {
        let part = Part {
            shard: Shard { index: 3, of: 4 },
            start_at: UNIX_EPOCH + Duration::from_millis(1_796_126_400_050),
            url: Uri::from_static("http://127.0.0.1:1/events?a=b"),
        };
        assert_eq!(part.to_string().parse(), Ok(part));
    }
}
