//! The terms of one request: the engine's settings with the overrides of the request's query.
//!
//! Called for each request before anything else is looked at.

use std::borrow::Cow;

use super::choices::{LineEnd, Script, WaitMode};
use super::delay::Delay;
use super::error::Error;
use super::settings::{Settings, TOKENS_MAX};
use crate::values;

/// What holds for one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) script: Script,
    pub(crate) ttft: Delay,
    pub(crate) itl: Delay,
    pub(crate) prefill: Delay,
    pub(crate) stall: Delay,
    pub(crate) tokens: u32,
    pub(crate) wait_headers: WaitMode,
    pub(crate) seed: u64,
    pub(crate) line_end: Option<LineEnd>,
    pub(crate) bom: Option<bool>,
    pub(crate) ids: bool,
    /// The query itself named the seed, so that delays do not depend on the request's number either.
    pub(crate) seed_is_own: bool,
    /// The query itself named the number of tokens, which then beats the limit in the request's body.
    pub(crate) tokens_are_own: bool,
}

impl Terms {
    /// Takes the engine's settings as they are.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            script: settings.script,
            ttft: settings.ttft,
            itl: settings.itl,
            prefill: settings.prefill,
            stall: settings.stall,
            tokens: settings.tokens,
            wait_headers: settings.wait_headers,
            seed: settings.seed,
            line_end: settings.line_end,
            bom: settings.bom,
            ids: settings.ids,
            seed_is_own: false,
            tokens_are_own: false,
        }
    }

    /// Applies the overrides of a query; of a key that comes twice the last one holds.
    ///
    /// # Errors
    ///
    /// One line that names the key and what it takes. Keys that real SDKs send (`beta`, `api-version`, `alt`, `key`) pass.
    pub(crate) fn with_query(mut self, query: &str) -> Result<Self, Error> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (decode(key)?, decode(value)?);
            self.apply(&key, &value).map_err(|error| Error::settings(format!("query {key}: {error}")))?;
        }
        Ok(self)
    }

    fn apply(&mut self, key: &str, value: &str) -> Result<(), Error> {
        match key {
            "script" => self.script = value.parse()?,
            "ttft" => self.ttft = value.parse()?,
            "itl" => self.itl = value.parse()?,
            "prefill" => self.prefill = value.parse()?,
            "stall" => self.stall = value.parse()?,
            "wait" => self.wait_headers = value.parse()?,
            "line_end" => self.line_end = Some(value.parse()?),
            "bom" => self.bom = Some(switch(value)?),
            "ids" => self.ids = switch(value)?,
            "seed" => {
                self.seed = seed(value)?;
                self.seed_is_own = true;
            }
            "tokens" => {
                self.tokens = values::number(value).map_err(Error::settings)?;
                self.tokens_are_own = true;
                if self.tokens > TOKENS_MAX {
                    return Err(Error::settings(format!("{value} is more than {TOKENS_MAX} at most")));
                }
            }
            "beta" | "api-version" | "alt" | "key" => {}
            _ => {
                return Err(Error::settings(format!("no such override; there are {OVERRIDES}")));
            }
        }
        Ok(())
    }
}

fn seed(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|_| Error::settings(format!("'{text}' is no whole number of 0 or more that fits")))
}

fn switch(text: &str) -> Result<bool, Error> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Error::settings(format!("'{text}' is neither on nor off"))),
    }
}

/// Undoes percent-encoding; a `+` is a space.
fn decode(text: &str) -> Result<Cow<'_, str>, Error> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let malformed = || Error::settings(format!("'{text}' is not percent-encoded UTF-8"));
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit().ok_or_else(malformed)?, digit().ok_or_else(malformed)?);
                // Two hexadecimal digits are at most 255.
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| malformed())
}

/// Every override, for the error that names them.
const OVERRIDES: &str = "script, ttft, itl, prefill, stall, tokens, wait, seed, line_end, bom, ids";

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(query: &str) -> Result<Terms, Error> {
        Terms::of(&Settings::default()).with_query(query)
    }

    #[test]
    fn every_override_is_applied() {
        let terms = terms(
            "script=torn&ttft=5ms&itl=uniform%3A1ms..2ms&prefill=3ms&stall=4ms&tokens=7&wait=first-token&seed=9&line_end=crlf&bom=on&ids=on",
        )
        .unwrap();
        assert_eq!(terms.script, Script::Torn);
        assert_eq!(terms.ttft.to_string(), "5ms");
        assert_eq!(terms.itl.to_string(), "uniform:1ms..2ms");
        assert_eq!(terms.prefill.to_string(), "3ms");
        assert_eq!(terms.stall.to_string(), "4ms");
        assert_eq!((terms.tokens, terms.tokens_are_own), (7, true));
        assert_eq!(terms.wait_headers, WaitMode::FirstToken);
        assert_eq!((terms.seed, terms.seed_is_own), (9, true));
        assert_eq!(terms.line_end, Some(LineEnd::Crlf));
        assert_eq!(terms.bom, Some(true));
        assert!(terms.ids);
    }

    #[test]
    fn no_override_leaves_the_settings() {
        let terms = terms("beta=true&api-version=2026-01-01&&").unwrap();
        assert_eq!(terms.tokens, 64);
        assert!(!terms.seed_is_own);
    }

    #[test]
    fn a_bad_override_names_its_key() {
        for (query, expected) in [
            ("ttft=soon", "query ttft: 'soon' is no delay"),
            ("tokens=-1", "query tokens: \"-1\" is not a whole number"),
            ("tokens=1000001", "query tokens: 1000001 is more than"),
            ("seed=", "query seed: '' is no whole number"),
            ("script=boom", "query script: 'boom' is no script"),
            ("bom=maybe", "query bom: 'maybe' is neither on nor off"),
            ("ttf=2s", "query ttf: no such override; there are script, ttft"),
            ("ttft=%2", "'%2' is not percent-encoded"),
            ("ttft=%ff", "'%ff' is not percent-encoded"),
        ] {
            let message = terms(query).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{query}: {message}");
        }
    }
}
