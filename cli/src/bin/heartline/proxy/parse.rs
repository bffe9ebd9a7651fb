//! How flags become what the layers of the proxy's settings hold.

use std::str::FromStr;

use heartline_cli::proxy::{Error, OrOff};
use heartline_cli::values;

/// Reads a word with the same words and errors as in the file.
pub(super) fn read<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// A value, or the word `off`.
pub(super) fn or_off<T: Clone + Send + Sync + 'static>(
    reader: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<OrOff<T>, String> + Clone + Send + Sync + 'static {
    move |text| values::or_off(text, reader).map(OrOff::from)
}
