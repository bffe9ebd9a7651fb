//! Patterns of paths: how an API's file, and an operator's own table, say where an API is asked.

use std::fmt;

use crate::error::Error;

/// A pattern of paths, matched segment by segment.
///
/// `/v1/chat` is that path alone. `**/v1/chat` may have anything before it, as gateways and mounted engines have. `*` is one
/// or more letters of a segment: `/models/*/generate`, `/models/*:stream`. Letters count in the case they have; a slash at
/// a path's end does not count.
///
/// ```
/// use heartline::api::Pattern;
///
/// let pattern = Pattern::new("**/models/*/generate")?;
/// assert!(pattern.matches("/v2/models/llama/generate/"));
/// assert!(!pattern.matches("/v2/models/generate") && !pattern.matches("/v2/models/a/b/generate"));
/// # Ok::<(), heartline::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(Box<str>);

impl Pattern {
    /// Checks a pattern.
    ///
    /// # Errors
    ///
    /// When it begins neither with `/` nor with `**/`, names no segment, has an empty one, a query, or two `*` in one segment.
    pub fn new(text: &str) -> Result<Self, Error> {
        let refused = |why: &str| Err(Error::setting(format!("the path pattern {text} {why}")));
        let Some(segments) = text.strip_prefix("**/").or_else(|| text.strip_prefix('/')) else {
            return refused("must begin with / (the whole path) or with **/ (the end of one)");
        };
        if text.contains(['?', '#']) {
            return refused("has a query: only the path counts");
        }
        for segment in segments.split('/') {
            if segment.is_empty() {
                return refused("has an empty segment: leave a / out");
            }
            if segment.matches('*').count() > 1 {
                return refused("has two * in one segment: ** stands at the beginning only");
            }
        }
        Ok(Self(text.into()))
    }

    /// Whether a path, without its query, is of this pattern.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        matches(&self.0, path)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `path` is of `pattern`, which is a valid one.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let end = pattern.strip_prefix("**/");
    let mut given = path.rsplit('/');
    for wanted in end.unwrap_or(pattern).rsplit('/') {
        let Some(segment) = given.next() else { return false };
        let is_like = match wanted.split_once('*') {
            None => wanted == segment,
            Some((start, end)) => {
                segment.len() > start.len() + end.len() && segment.starts_with(start) && segment.ends_with(end)
            }
        };
        if !is_like {
            return false;
        }
    }
    // What is left of an end is what stands before it: at least the root.
    given.next().is_some() == end.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_whole_path_or_the_end_of_one() {
        for (pattern, path, expected) in [
            ("/a/b", "/a/b", true),
            ("/a/b", "/a/b/", true),
            ("/a/b", "/x/a/b", false),
            ("/a/b", "/a/b/c", false),
            ("**/a/b", "/a/b", true),
            ("**/a/b", "/x/y/a/b", true),
            ("**/a/b", "/xa/b", false),
            ("**/a/b", "/b", false),
            ("**/a/b", "a/b", false),
            ("/a/*/b", "/a/x/b", true),
            ("/a/*/b", "/a//b", false),
            ("/a/*/b", "/a/b", false),
            ("**/m/*:go", "/m/x:go", true),
            ("**/m/*:go", "/m/:go", false),
            ("**/m/*:go", "/m/x:gone", false),
            ("/a", "/A", false),
            ("/a", "/", false),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().matches(path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_can_never_match_is_refused() {
        for text in ["", "/", "a/b", "*", "**", "**/", "/a//b", "/a/", "/a/**", "/a/*x*", "/a?b=c"] {
            assert!(Pattern::new(text).unwrap_err().is_setting(), "{text}");
        }
    }
}
