//! What an engine does when nobody asks for anything else, and the words in which each choice is written.
//!
//! Made by the command line, the demo and tests; checked once by [`Engine::bind`](crate::sim::Engine::bind).

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::choices::{Heartbeat, LineEnd, Script, WaitMode};
use super::delay::Delay;
use super::error::Error;
use heartline::Form;
use heartline::Heartline;
use heartline::api::Api;

/// All that can be chosen about an engine; start from [`Settings::default`] and change what matters.
///
/// # Examples
///
/// ```
/// use heartline_cli::sim::{Delay, Script, Settings};
/// use std::time::Duration;
///
/// let settings = Settings {
///     listen: "127.0.0.1:0".parse().unwrap(),
///     script: Script::Cliff,
///     prefill: Delay::from(Duration::from_millis(40)),
///     ..Settings::default()
/// };
/// assert!(settings.validate().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The API that `/` answers in, always streaming; every API is served at its own paths too.
    pub api: Api,
    /// What happens to a request.
    pub script: Script,
    /// From a request's arrival to its first token; not used by [`Script::Cliff`].
    pub ttft: Delay,
    /// Between one token and the next.
    pub itl: Delay,
    /// How long [`Script::Cliff`] works on one request alone before its first token.
    pub prefill: Delay,
    /// The silence that [`Script::Stall`] adds after half of the tokens.
    pub stall: Delay,
    /// How many tokens an answer has, at most [`TOKENS_MAX`].
    pub tokens: u32,
    /// When the response's headers are sent.
    pub wait_headers: WaitMode,
    /// Which heartbeat, if any, the engine embeds in what it streams.
    pub heartbeat: Heartbeat,
    /// Whether heartbeats also go into JSON answers that are not streamed.
    pub heartbeat_json: bool,
    /// The time between two heartbeats of one stream.
    pub interval: Duration,
    /// Makes the text, the identifiers, the cuts and every drawn delay; equal seeds give equal bytes.
    pub seed: u64,
    /// How lines end in event streams and NDJSON; `None` is LF, drawn from the seed by [`Script::Torn`].
    pub line_end: Option<LineEnd>,
    /// Whether an event stream begins with a byte order mark; `None` is no, drawn from the seed by [`Script::Torn`].
    pub bom: Option<bool>,
    /// Whether the events of `/events` carry an `id:`.
    pub ids: bool,
    /// How long streams may go on after a shutdown was asked for.
    pub grace: Duration,
}

impl Settings {
    /// Checks every setting, as [`Engine::bind`](crate::sim::Engine::bind) does.
    ///
    /// # Errors
    ///
    /// An error with [`Error::is_settings`] that names the setting and its limit.
    pub fn validate(&self) -> Result<(), Error> {
        if self.tokens > TOKENS_MAX {
            let tokens = self.tokens;
            return Err(Error::settings(format!("{tokens} tokens are more than {TOKENS_MAX} at most")));
        }
        if self.grace > GRACE_MAX {
            return Err(Error::settings(format!("a grace of {:?} is longer than {GRACE_MAX:?} at most", self.grace)));
        }
        self.broadcaster().map(drop)
    }

    /// Makes the broadcaster of the engine's heartbeats; `None` when they are off.
    pub(crate) fn broadcaster(&self) -> Result<Option<Heartline>, Error> {
        let form = match &self.heartbeat {
            Heartbeat::Off => return Ok(None),
            // Chosen for each request.
            Heartbeat::Auto => Form::default(),
            Heartbeat::Form(form) => form.clone(),
        };
        let heart = Heartline::builder().interval(self.interval).form(form).build();
        heart.map(Some).map_err(|error| Error::settings(error.to_string()))
    }
}

impl Default for Settings {
    /// A steady OpenAI-style engine on port 8900: first token after 2 s, 64 tokens 20 ms apart, no heartbeats.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8900)),
            api: Api::OPENAI_CHAT,
            script: Script::Steady,
            ttft: Delay::fixed(Duration::from_secs(2)),
            itl: Delay::fixed(Duration::from_millis(20)),
            prefill: Delay::fixed(Duration::from_millis(40)),
            stall: Delay::fixed(Duration::from_secs(30)),
            tokens: 64,
            wait_headers: WaitMode::Usual,
            heartbeat: Heartbeat::Off,
            heartbeat_json: false,
            interval: Duration::from_secs(30),
            seed: 0,
            line_end: None,
            bom: None,
            ids: false,
            grace: Duration::from_secs(1),
        }
    }
}

/// The most tokens an answer may have: a JSON answer of that length is about 6 MB.
pub const TOKENS_MAX: u32 = 1_000_000;

/// A shutdown that waits longer than this is taken for a mistake.
const GRACE_MAX: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_settings_are_valid() {
        assert!(Settings::default().validate().is_ok());
    }

    #[test]
    fn a_refused_setting_is_named_with_its_limit() {
        let tokens = Settings { tokens: TOKENS_MAX + 1, ..Settings::default() };
        let error = tokens.validate().unwrap_err();
        assert!(error.is_settings());
        assert_eq!(error.to_string(), "1000001 tokens are more than 1000000 at most");
        let grace = Settings { grace: Duration::from_secs(7_200), ..Settings::default() };
        assert!(grace.validate().unwrap_err().to_string().contains("grace"));
        let interval = Settings { heartbeat: Heartbeat::Auto, interval: Duration::ZERO, ..Settings::default() };
        assert!(interval.validate().unwrap_err().to_string().contains("interval is 0"));
    }
}
