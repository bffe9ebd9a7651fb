//! The text an engine writes: tokens chosen by seed, awkward ones among them.
//!
//! Called by the script for each token; the text of a token depends on the seed and its number only.

use super::dice::mix;

/// Returns the text of the token with this number.
pub(crate) fn word(seed: u64, index: u32) -> &'static str {
    let drawn = mix(seed ^ mix(u64::from(index) ^ PURPOSE));
    // The length of a constant array fits, and the remainder is below it.
    WORDS[(drawn % WORDS.len() as u64) as usize]
}

/// Returns the whole text of an answer with this many tokens.
pub(crate) fn text(seed: u64, tokens: u32) -> String {
    (0..tokens).map(|index| word(seed, index)).collect()
}

/// Returns a number of 64 bits as the end of an identifier.
pub(crate) fn identifier(seed: u64) -> String {
    format!("{:016x}", mix(seed ^ IDENTIFIER))
}

const PURPOSE: u64 = 0x776f_7264;
const IDENTIFIER: u64 = 0x6964;

/// Characters of one to four bytes, escapes, white space, and text that looks like the framing around it.
const WORDS: &[&str] = &[
    " the",
    " a",
    " line",
    " heart",
    " beats",
    " stream",
    " of",
    " tokens",
    " waits",
    " and",
    " goes",
    " on",
    ".",
    ",",
    "\n",
    "\n\n",
    " \"quoted\"",
    " back\\slash",
    " tab\t",
    " Wärme",
    " façade",
    " naïve",
    " числа",
    " 光",
    " 心拍",
    " 🌊",
    " 👩\u{200d}🔬",
    " data: [DONE]",
    "\nevent: message_stop\n",
    " {\"done\":true}",
    " :",
    " …",
    "\u{2028}",
    "",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_depends_on_the_seed_and_the_length_only() {
        assert_eq!(text(4, 50), text(4, 50));
        assert!(text(4, 50).starts_with(&text(4, 20)));
        assert_ne!(text(4, 50), text(5, 50));
    }

    #[test]
    fn every_word_is_used() {
        let used: std::collections::HashSet<&str> = (0..2_000).map(|index| word(0, index)).collect();
        assert_eq!(used.len(), WORDS.len());
    }
}
