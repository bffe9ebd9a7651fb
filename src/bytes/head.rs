//! Line heads: the few beginnings of a line that matter to heartbeats, matched one byte at a time.
//!
//! A stream may be cut anywhere, so that a head can arrive over several frames. The words below form a tree, built
//! when the crate is compiled from the signs of all APIs (`api`); a [`Head`] is a place in it, one byte long. `boundary`
//! and `content` walk it.

use crate::api::{Api, Sign};

/// A place in the tree of words: how much of a line's beginning has been recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head(u8);

/// What the beginning of a line has turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing that matters, or not yet.
    None,
    /// A `data:` field whose value has not begun.
    Data,
    /// An `id:` field with a value that is not empty.
    Id,
    /// The last event of a known API.
    Terminator,
    /// The same, if the line ends here.
    TerminatorAtEnd,
    /// A ping of a known API.
    Ping,
    /// The same, if the line ends here.
    PingAtEnd,
}

impl Head {
    /// A line whose first byte is awaited.
    pub(crate) const START: Self = Self(2);
    /// A line that is none of the words.
    pub(crate) const OTHER: Self = Self(0);
    /// A comment.
    pub(crate) const COMMENT: Self = Self(1);

    /// The place after one more byte of the line, which is no line end.
    #[inline]
    pub(crate) const fn step(self, byte: u8) -> Self {
        let node = &TREE[self.0 as usize];
        let mut next = node.child;
        while next != NOWHERE {
            let child = &TREE[next as usize];
            if child.byte == byte {
                return Self(next);
            }
            next = child.sibling;
        }
        // One space may follow a colon (the field's, or JSON's). More of them match as well: such a stream at worst
        // gets comments where it could have had blank lines.
        if byte == b' ' && node.byte == b':' {
            return self;
        }
        Self(node.otherwise)
    }

    /// What has been recognised.
    #[inline]
    pub(crate) const fn mark(self) -> Mark {
        TREE[self.0 as usize].mark
    }

    /// True if no further byte of this line can change anything.
    #[inline]
    pub(crate) const fn is_settled(self) -> bool {
        self.0 <= Self::COMMENT.0
    }

    /// Reads the longest of the usual beginnings of a line at once: the place after it, and what follows it.
    #[inline]
    pub(crate) fn skip_lead(line: &[u8]) -> (Self, &[u8]) {
        let (name, response, rest) = if let Some(rest) = line.strip_prefix(b"data: {\"") {
            let Some(rest) = rest.strip_prefix(b"type\":\"") else {
                return (const { Self::after(b"data:{\"") }, rest);
            };
            (const { Self::after(TYPED) }, const { Self::after(b"data:{\"type\":\"response.") }, rest)
        } else if let Some(rest) = line.strip_prefix(b"event: ") {
            (const { Self::after(b"event:") }, const { Self::after(b"event:response.") }, rest)
        } else {
            return (Self::START, line);
        };
        match rest.strip_prefix(b"response.") {
            Some(rest) => (response, rest),
            None => (name, rest),
        }
    }

    /// True, at a look, for the usual token line `data: {"id":…`: no word begins like it.
    #[inline]
    pub(crate) fn is_plain(line: &[u8]) -> bool {
        const USUAL: &[u8; 8] = b"data: {\"";
        line.len() > USUAL.len() && line[..USUAL.len()] == *USUAL && line[USUAL.len()] != b't'
    }

    const fn after(word: &[u8]) -> Self {
        let mut head = Self::START;
        let mut at = 0;
        while at < word.len() {
            head = head.step(word[at]);
            at += 1;
        }
        head
    }
}

#[derive(Clone, Copy)]
struct Node {
    byte: u8,
    child: u8,
    sibling: u8,
    otherwise: u8,
    mark: Mark,
}

const fn plant() -> [Node; 256] {
    let blank = Node { byte: 0, child: NOWHERE, sibling: NOWHERE, otherwise: Head::OTHER.0, mark: Mark::None };
    let mut tree = [blank; 256];
    tree[Head::COMMENT.0 as usize].otherwise = Head::COMMENT.0;
    tree[IDENTIFIED as usize].mark = Mark::Id;
    let mut used = IDENTIFIED + 1;
    // Of two words that part, the later one is tried first.
    used = plant_word(&mut tree, used, [b"id:", b"", b""], Mark::Id);
    used = plant_word(&mut tree, used, [b"id: ", b"", b""], Mark::Id);
    let mut at = 0;
    while at < Api::ALL.len() {
        let api = Api::ALL[at];
        used = plant_signs(&mut tree, used, api.pings(), Mark::Ping, Mark::PingAtEnd);
        used = plant_signs(&mut tree, used, api.ends(), Mark::Terminator, Mark::TerminatorAtEnd);
        used = plant_signs(&mut tree, used, api.failed_ends(), Mark::Terminator, Mark::TerminatorAtEnd);
        at += 1;
    }
    plant_word(&mut tree, used, [b"data:", b"", b""], Mark::Data);
    tree
}

/// The words of some signs: field and value without the optional space. The JSON ones end with the name's quote, so that
/// `response.completed` is not found in a longer name. A field somewhere in a document is no beginning of a line.
const fn plant_signs(tree: &mut [Node; 256], mut used: u8, signs: &[Sign], inside: Mark, at_end: Mark) -> u8 {
    let mut at = 0;
    while at < signs.len() {
        match signs[at] {
            Sign::Data(text) => used = plant_word(tree, used, [b"data:", text.as_bytes(), b""], inside),
            Sign::Event(name) => {
                used = plant_word(tree, used, [b"event:", name.as_bytes(), b""], at_end);
                used = plant_word(tree, used, [TYPED, name.as_bytes(), b"\""], inside);
            }
            Sign::Field(_) => {}
        }
        at += 1;
    }
    used
}

/// Adds one word, given in pieces, and returns how many nodes are used then.
const fn plant_word(tree: &mut [Node; 256], mut used: u8, pieces: [&[u8]; 3], mark: Mark) -> u8 {
    let mut place = Head::START.0;
    let mut piece = 0;
    while piece < pieces.len() {
        let bytes = pieces[piece];
        let mut at = 0;
        while at < bytes.len() {
            let mut next = tree[place as usize].child;
            while next != NOWHERE && tree[next as usize].byte != bytes[at] {
                next = tree[next as usize].sibling;
            }
            if next == NOWHERE {
                next = used;
                used += 1; // too many words end the compiler's evaluation here
                tree[next as usize].byte = bytes[at];
                tree[next as usize].sibling = tree[place as usize].child;
                tree[place as usize].child = next;
            }
            place = next;
            at += 1;
        }
        piece += 1;
    }
    // `id:` is no mark by itself: only a byte after it and its one space makes the value not empty.
    if matches!(mark, Mark::Id) {
        tree[place as usize].otherwise = IDENTIFIED;
    } else {
        tree[place as usize].mark = mark;
    }
    used
}

/// No node: 0 is never anyone's child.
const NOWHERE: u8 = 0;
/// The value of an `id:` field has begun.
const IDENTIFIED: u8 = 3;
/// As many as a byte can tell apart, so that no look at one needs a check. The words take 139.
static TREE: [Node; 256] = plant();

/// How a line of data begins that says first what it is.
const TYPED: &[u8] = b"data:{\"type\":\"";

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word that stands for an API, as it was written by hand before the APIs had files.
    const WORDS: [(&[u8], Mark); 12] = [
        (b"event:ping", Mark::PingAtEnd),
        (b"event:message_stop", Mark::TerminatorAtEnd),
        (b"event:response.incomplete", Mark::TerminatorAtEnd),
        (b"event:response.failed", Mark::TerminatorAtEnd),
        (b"event:response.completed", Mark::TerminatorAtEnd),
        (b"data:[DONE]", Mark::Terminator),
        (b"data:{\"type\":\"ping\"", Mark::Ping),
        (b"data:{\"type\":\"message_stop\"", Mark::Terminator),
        (b"data:{\"type\":\"response.incomplete\"", Mark::Terminator),
        (b"data:{\"type\":\"response.failed\"", Mark::Terminator),
        (b"data:{\"type\":\"response.completed\"", Mark::Terminator),
        (b"data:", Mark::Data),
    ];

    fn walk(line: &[u8]) -> Mark {
        let mut head = Head::START;
        for &byte in line {
            head = head.step(byte);
            if head.mark() == Mark::Terminator || head.mark() == Mark::Id {
                break;
            }
        }
        head.mark()
    }

    #[test]
    fn every_word_is_found_with_and_without_its_space() {
        for (word, mark) in WORDS {
            assert_eq!(walk(word), mark);
            let spaced = String::from_utf8(word.to_vec()).unwrap().replacen(':', ": ", 1);
            assert_eq!(walk(spaced.as_bytes()), mark, "{spaced}");
        }
        assert_eq!(walk(b"data: {\"type\": \"message_stop\", \"x\": 1}"), Mark::Terminator);
    }

    #[test]
    fn an_id_counts_from_its_first_byte_of_value() {
        for line in ["id:1", "id: 1", "id:  ", "id:\0", "id: \0", "id::"] {
            assert_eq!(walk(line.as_bytes()), Mark::Id, "{line:?}");
        }
        for line in ["id", "id:", "id: ", "i", "idx:1", "ID: 1", " id: 1"] {
            assert_eq!(walk(line.as_bytes()), Mark::None, "{line:?}");
        }
    }

    #[test]
    fn near_misses_are_nothing() {
        for line in [
            "data: [DONE",
            "data [DONE]",
            "xdata: [DONE]",
            "event: message_stopped",
            "event: pong",
            "data: {\"type\":\"response.completed_",
            "data: {\"type\":\"message_start\"",
        ] {
            assert_eq!(walk(line.as_bytes()), Mark::None, "{line}");
        }
    }

    #[test]
    fn a_lead_read_at_once_is_the_same_as_read_by_bytes() {
        for line in [
            "data: {\"type\":\"ping\"",
            "data: {\"id\":1}",
            "event: ping",
            "event: response.failed",
            "data: {\"type\":\"response.x",
            "data: [DONE]",
            "data: {",
            "",
        ] {
            let (mut head, rest) = Head::skip_lead(line.as_bytes());
            rest.iter().for_each(|&byte| head = head.step(byte));
            assert_eq!(head, Head::after(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_plain_line_begins_no_word() {
        assert!(Head::is_plain(b"data: {\"id\":\"chatcmpl-1\"}"));
        for (word, _) in WORDS {
            assert!(word.strip_prefix(b"data:{\"").is_none_or(|rest| rest[0] == b't'), "{word:?}");
        }
        for byte in (u8::MIN..=u8::MAX).filter(|byte| !b"t ".contains(byte)) {
            assert_eq!(Head::after(b"data:{\"").step(byte), Head::OTHER, "{byte}");
        }
    }
}
