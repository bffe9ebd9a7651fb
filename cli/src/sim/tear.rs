//! Cuts a stream where it hurts: inside a character, between CR and LF, around each line end, byte by byte.
//!
//! Used by the script [`Torn`](super::Script::Torn); pure, seeded. Never changes, drops or reorders a byte.

use bytes::Bytes;

use super::dice::Dice;
use super::script::Act;

/// Cuts what is added to it into pieces.
#[derive(Debug)]
pub(crate) struct Tear {
    dice: Dice,
    rest: Bytes,
    manner: Manner,
    follow: Follow,
    between: bool,
}

/// Whether more will be added, so that a byte may wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    More,
    Nothing,
}

/// How one addition is cut; drawn anew for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Bytes,
    Awkward,
    Random,
    Whole,
    /// As `Awkward`, and the last byte comes with the next addition.
    Late,
}

impl Tear {
    /// Makes the tear of one stream.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed, PURPOSE),
            rest: Bytes::new(),
            manner: Manner::Whole,
            follow: Follow::More,
            between: false,
        }
    }

    /// Adds what the stream would send as one chunk.
    pub(crate) fn add(&mut self, bytes: Vec<u8>, follow: Follow) {
        self.rest =
            if self.rest.is_empty() { Bytes::from(bytes) } else { Bytes::from([&self.rest[..], &bytes].concat()) };
        self.manner = MANNERS[self.dice.below(MANNERS.len())];
        self.follow = follow;
        self.between = false;
    }

    /// Takes the next piece or the flush between two; `None` asks for more.
    pub(crate) fn piece(&mut self) -> Option<Act> {
        let late = self.manner == Manner::Late && self.follow == Follow::More;
        let ready = self.rest.len() - usize::from(late && !self.rest.is_empty());
        if ready == 0 {
            return None;
        }
        self.between = !self.between;
        if !self.between {
            return Some(Act::Flush);
        }
        let length = match self.manner {
            Manner::Bytes => 1,
            Manner::Awkward | Manner::Late => awkward(&self.rest),
            Manner::Random => 1 + self.dice.below(PIECE_MAX),
            Manner::Whole => ready,
        };
        Some(Act::Send(self.rest.split_to(length.min(ready))))
    }
}

/// Finds the first awkward place to cut; the whole length when there is none.
fn awkward(bytes: &[u8]) -> usize {
    let line_end = |byte: u8| matches!(byte, b'\r' | b'\n');
    (1..bytes.len())
        .find(|&place| {
            let (before, after) = (bytes[place - 1], bytes[place]);
            let inside_character = after & 0b1100_0000 == 0b1000_0000;
            inside_character || line_end(before) || line_end(after) || before == b':'
        })
        .unwrap_or(bytes.len())
}

const MANNERS: [Manner; 5] = [Manner::Bytes, Manner::Awkward, Manner::Random, Manner::Whole, Manner::Late];

/// Random pieces are short, so that one event makes many.
const PIECE_MAX: usize = 9;

const PURPOSE: u64 = 0x7465_6172;

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(tear: &mut Tear) -> Vec<Bytes> {
        let mut pieces = Vec::new();
        let mut flushed = true;
        while let Some(act) = tear.piece() {
            match act {
                Act::Send(piece) => {
                    assert!(flushed && !piece.is_empty());
                    pieces.push(piece);
                    flushed = false;
                }
                Act::Flush => flushed = true,
                other => panic!("{other:?}"),
            }
        }
        pieces
    }

    #[test]
    fn awkward_cuts_lie_inside_characters_and_around_line_ends() {
        let mut rest = Bytes::from("data: é\r\n\r\n");
        let mut cuts = Vec::new();
        while !rest.is_empty() {
            cuts.push(rest.split_to(awkward(&rest)));
        }
        let expected: [&[u8]; 7] = [b"data:", b" \xc3", b"\xa9", b"\r", b"\n", b"\r", b"\n"];
        assert_eq!(cuts, expected);
    }

    #[test]
    fn every_byte_comes_out_once_in_order_with_a_flush_between() {
        let event = "event: x\r\ndata: 🌊 naïve\r\n\r\n";
        let mut singles = 0;
        for seed in 0..50 {
            let mut tear = Tear::new(seed);
            let mut out = Vec::new();
            for index in 0..20 {
                let follow = if index == 19 { Follow::Nothing } else { Follow::More };
                tear.add(event.as_bytes().to_vec(), follow);
                let pieces = pieces(&mut tear);
                singles += pieces.iter().filter(|piece| piece.len() == 1).count();
                out.extend(pieces.concat());
                assert!(event.len() * (index + 1) - out.len() <= 1);
            }
            assert_eq!(out, event.repeat(20).into_bytes());
        }
        assert!(singles > 5_000);
    }
}
