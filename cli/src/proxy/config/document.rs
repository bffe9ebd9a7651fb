//! Reads the text of a settings file. Called by `Config::layered`.

use super::layer::Layer;
use super::place::Source;
use crate::proxy::Error;

/// Reads a file into a layer of settings.
///
/// # Errors
///
/// One line: line and column, what is wrong, and for an unknown key the one that was probably meant.
pub(super) fn parse(file: Source<'_>) -> Result<Layer, Error> {
    toml::from_str(file.text).map_err(|error| {
        let message = plain(error.message());
        Error::config(error.span().map_or_else(|| message.clone(), |span| file.at(span.start, &message)))
    })
}

/// The parser's message in one line and in our words.
fn plain(message: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some(rest) = message.strip_prefix("unknown field `") else { return message };
    let Some((unknown, rest)) = rest.split_once('`') else { return message };
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let meant = known.iter().map(|known| (distance(unknown, known), known)).min();
    match meant {
        Some((distance, known)) if distance <= 1 + unknown.len() / 4 => {
            format!("the key {unknown} is unknown: write {known}")
        }
        _ => format!("the key {unknown} is unknown here: write one of {}, or leave it out", known.join(", ")),
    }
}

/// How many characters must be put in, left out or replaced to make `b` of `a`; `-` is as good as `_`.
fn distance(a: &str, b: &str) -> usize {
    let a = a.replace('-', "_").to_lowercase();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str) -> String {
        let message = parse(Source { name: None, text }).expect_err("refused").to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    #[test]
    fn an_unknown_key_is_answered_with_the_one_that_was_meant() {
        assert_eq!(refused("listn = \"127.0.0.1:1\""), "line 1, column 1: the key listn is unknown: write listen");
        let message = refused("[[upstream]]\nurl = \"http://a\"\nmax-silence = \"1m\"\n");
        assert_eq!(message, "line 3, column 1: the key max-silence is unknown: write max_silence");
        let message = refused("[limits]\ncolour = 3\n");
        assert!(
            message.starts_with("line 2, column 1: ") && message.contains("write one of connections, "),
            "{message}"
        );
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_placed() {
        for (text, place, words) in [
            ("drain_timeout = 30", "line 1, column 17", "write 30s, 30ms or 30m"),
            ("drain_timeout = true", "line 1, column 17", "expected a length of time"),
            ("trusted = [\"10.0.0.0/8\", \"here\"]", "line 1, column 26", "write for example"),
            ("[[upstream]]\nurl = \"engine\"\n", "line 2, column 7", "write http://engine"),
            ("[defaults]\nmax_silence = \"on\"\n", "line 2, column 15", "or off"),
            ("listen = 127.0.0.1:80", "line 1, column", ""),
            ("listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"", "line 2, column 1", ""),
        ] {
            let message = refused(text);
            assert!(message.starts_with(place) && message.contains(words), "{text}: {message}");
        }
    }
}
