//! How the body of an HTTP/1.1 answer is framed (RFC 9112, section 6), decoded wherever the bytes are cut. Pure; driven by
//! `proxy::wire` and `load::http1`, in a few bytes a stream, since nothing of the body is kept.

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Chunks, up to one of length 0.
    Chunked(Chunk),
    /// So many bytes.
    Length(u64),
    /// Everything up to the connection's end.
    UntilClose,
}

/// What ends a line between chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// CRLF and nothing else, for who passes the body on: a reader that takes a lone LF for an end sees another body than
    /// one that does not.
    Crlf,
    /// A lone LF too, as most readers have it, for who only reads.
    CrlfOrLf,
}

/// A place in a chunked body; [`Framing::next`] moves from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// In the length, of which so much is known in so many digits.
    Size { bytes: u64, digits: u8 },
    /// After the length, before the end of its line.
    Extension { bytes: u64, read: u16 },
    /// Behind the `\r` of that line.
    SizeEnd { bytes: u64 },
    /// In the data.
    Data { left: u64 },
    /// Behind the data.
    DataEnd,
    /// Behind the `\r` that follows the data.
    DataOver,
    /// In a line after the last chunk, so many bytes into it, after so many bytes of such lines.
    Trailer { column: u16, read: u16 },
    /// Behind the `\r` of the blank line that ends the body.
    TrailerEnd,
    /// The body is over.
    Over,
}

/// The next part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'b> {
    /// Bytes of the body.
    Data(&'b [u8]),
    /// Bytes of the lines after the last chunk, without the blank line that ends them.
    Trailer(&'b [u8]),
    /// The body is over.
    End,
    /// All input is used up.
    Starved,
}

/// What came is not framed as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Framing {
    /// The beginning of a chunked body.
    pub(crate) const CHUNKED: Self = Self::Chunked(Chunk::START);

    /// Takes the next part off `input`, in which the lines between chunks end like `lines`.
    ///
    /// # Errors
    ///
    /// When the bytes are not framed as said.
    pub(crate) fn next<'b>(&mut self, lines: Lines, input: &mut &'b [u8]) -> Result<Part<'b>, Malformed> {
        match self {
            Self::UntilClose => Ok(split(input, u64::MAX).map_or(Part::Starved, Part::Data)),
            Self::Length(0) => Ok(Part::End),
            Self::Length(left) => {
                let Some(data) = split(input, *left) else { return Ok(Part::Starved) };
                *left -= data.len() as u64;
                Ok(Part::Data(data))
            }
            Self::Chunked(chunk) => chunk.next(lines, input),
        }
    }

    /// Whether the body is over.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Over))
    }

    /// Whether the connection's end now is the body's end.
    pub(crate) fn may_end(self) -> bool {
        self == Self::UntilClose || self.is_over()
    }
}

impl Chunk {
    const START: Self = Self::Size { bytes: 0, digits: 0 };

    fn next<'b>(&mut self, lines: Lines, input: &mut &'b [u8]) -> Result<Part<'b>, Malformed> {
        loop {
            match *self {
                Self::Over => return Ok(Part::End),
                Self::Data { left } => {
                    let Some(data) = split(input, left) else { return Ok(Part::Starved) };
                    let left = left - data.len() as u64;
                    *self = if left == 0 { Self::DataEnd } else { Self::Data { left } };
                    return Ok(Part::Data(data));
                }
                Self::Trailer { column: 0, .. } if lines == Lines::CrlfOrLf && input.first() == Some(&b'\n') => {
                    *self = Self::Over;
                    *input = &input[1..];
                }
                Self::Trailer { column, read } if !matches!((column, input.first()), (0, Some(b'\r') | None)) => {
                    return self.trailer(input, column, read);
                }
                _ => {
                    let Some((&byte, rest)) = input.split_first() else { return Ok(Part::Starved) };
                    *self = self.after(byte, lines)?; // what is wrong stays in front, to be found again
                    *input = rest;
                }
            }
        }
    }

    /// Takes what there is of a line after the last chunk.
    fn trailer<'b>(&mut self, input: &mut &'b [u8], column: u16, read: u16) -> Result<Part<'b>, Malformed> {
        let end = memchr::memchr(b'\n', input).map(|at| at as u64 + 1);
        let Some(line) = split(input, end.unwrap_or(u64::MAX)) else { return Ok(Part::Starved) };
        if (column, line) == (0, b"\n") {
            return Err(Malformed); // the blank line to some readers, and not to others
        }
        let length = u16::try_from(line.len()).map_err(|_| Malformed)?;
        let read = read.checked_add(length).filter(|read| *read <= LINE_BYTES_MAX).ok_or(Malformed)?;
        let column = if end.is_some() { 0 } else { column + length };
        *self = Self::Trailer { column, read };
        Ok(Part::Trailer(line))
    }

    /// Moves on by a byte that belongs to no data.
    fn after(self, byte: u8, lines: Lines) -> Result<Self, Malformed> {
        match (self, byte) {
            (Self::Size { bytes, digits: 1.. } | Self::Extension { bytes, .. }, b'\n') if lines == Lines::CrlfOrLf => {
                Ok(Self::sized(bytes))
            }
            (Self::DataEnd, b'\n') if lines == Lines::CrlfOrLf => Ok(Self::START),
            (Self::Size { bytes, digits }, _) => match char::from(byte).to_digit(16) {
                Some(_) if digits == DIGITS_MAX => Err(Malformed),
                Some(digit) => Ok(Self::Size { bytes: bytes * 16 + u64::from(digit), digits: digits + 1 }),
                None if digits == 0 => Err(Malformed),
                None => match byte {
                    b'\r' => Ok(Self::SizeEnd { bytes }),
                    b';' | b' ' | b'\t' => Ok(Self::Extension { bytes, read: 0 }),
                    _ => Err(Malformed),
                },
            },
            (Self::Extension { bytes, .. }, b'\r') => Ok(Self::SizeEnd { bytes }),
            (Self::Extension { .. }, b'\n') | (Self::Extension { read: LINE_BYTES_MAX, .. }, _) => Err(Malformed),
            (Self::Extension { bytes, read }, _) => Ok(Self::Extension { bytes, read: read + 1 }),
            (Self::SizeEnd { bytes }, b'\n') => Ok(Self::sized(bytes)),
            (Self::DataEnd, b'\r') => Ok(Self::DataOver),
            (Self::DataOver, b'\n') => Ok(Self::START),
            (Self::Trailer { .. }, b'\r') => Ok(Self::TrailerEnd),
            (Self::TrailerEnd, b'\n') => Ok(Self::Over),
            _ => Err(Malformed),
        }
    }

    const fn sized(bytes: u64) -> Self {
        if bytes == 0 { Self::Trailer { column: 0, read: 0 } } else { Self::Data { left: bytes } }
    }
}

/// Takes up to `bytes_max` bytes off `input`; `None` when it is empty.
fn split<'b>(input: &mut &'b [u8], bytes_max: u64) -> Option<&'b [u8]> {
    if input.is_empty() {
        return None;
    }
    let length = usize::try_from(bytes_max).map_or(input.len(), |max| max.min(input.len()));
    let (data, rest) = input.split_at(length);
    *input = rest;
    Some(data)
}

/// Fifteen digits of a length: 2⁶⁰ bytes cannot overflow, and leading zeros have their end.
const DIGITS_MAX: u8 = 15;
/// The most that the extensions of one chunk, and all trailers together, may take.
const LINE_BYTES_MAX: u16 = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body decodes to: its data, its trailers and whether it ended.
    type Decoded = Result<(String, String, bool), Malformed>;

    /// Decodes `bytes` in pieces of `size` bytes.
    fn decode(framing: Framing, bytes: &[u8], size: usize) -> Decoded {
        decode_lines(framing, Lines::Crlf, bytes, size)
    }

    fn decode_lines(mut framing: Framing, lines: Lines, bytes: &[u8], size: usize) -> Decoded {
        let (mut data, mut trailers) = (Vec::new(), Vec::new());
        for mut piece in bytes.chunks(size) {
            loop {
                match framing.next(lines, &mut piece)? {
                    Part::Data(part) => data.extend_from_slice(part),
                    Part::Trailer(part) => trailers.extend_from_slice(part),
                    Part::End | Part::Starved => break,
                }
            }
        }
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ok((text(data), text(trailers), framing.may_end()))
    }

    #[test]
    fn chunks_decode_wherever_they_are_cut() {
        let body = b"5;ext=\"a\"\r\nhello\r\n00A \r\n, 10 bytes\r\n1\r\n!\r\n0\r\nx-a: 1\r\nx-b: 2\r\n\r\nrest";
        let expected = ("hello, 10 bytes!".to_owned(), "x-a: 1\r\nx-b: 2\r\n".to_owned(), true);
        for size in 1..=body.len() {
            assert_eq!(decode(Framing::CHUNKED, body, size), Ok(expected.clone()), "{size}");
        }
    }

    #[test]
    fn a_lone_line_feed_ends_a_line_for_who_only_reads() {
        let body = b"5;ext=\"a\"\r\nhello\r\n00A \r\n, 10 bytes\r\n1\n!\n0\r\nx-trailer: 1\r\n\r\nrest";
        let expected = ("hello, 10 bytes!".to_owned(), "x-trailer: 1\r\n".to_owned(), true);
        for size in 1..=body.len() {
            assert_eq!(decode_lines(Framing::CHUNKED, Lines::CrlfOrLf, body, size), Ok(expected.clone()), "{size}");
            assert_eq!(decode(Framing::CHUNKED, body, size), Err(Malformed), "{size}");
        }
        for bare in [b"1\n!\n0\n\n".as_slice(), b"1;a\n!\n0\nx: 1\n\n"] {
            assert_eq!(
                decode_lines(Framing::CHUNKED, Lines::CrlfOrLf, bare, 1).map(|it| (it.0, it.2)),
                Ok(("!".to_owned(), true))
            );
        }
    }

    #[test]
    fn an_end_before_the_last_chunk_is_no_end() {
        let said = |data: &str, ended| Ok((data.to_owned(), String::new(), ended));
        assert_eq!(decode(Framing::CHUNKED, b"5\r\nhel", 3), said("hel", false));
        assert_eq!(decode(Framing::CHUNKED, b"5\r\nhello\r\n0\r\n", 99), said("hello", false));
        assert_eq!(decode(Framing::CHUNKED, b"0\r\n\r", 99), said("", false));
        assert_eq!(decode(Framing::Length(9), b"hello", 2), said("hello", false));
        assert_eq!(decode(Framing::Length(4), b"hello", 2), said("hell", true));
        assert_eq!(decode(Framing::UntilClose, b"hello", 2), said("hello", true));
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for body in [
            "x\r\n",
            "\r\n",
            "5\r\nhello!",
            "5\r\nhello\n",
            "5\nhello\r\n",
            "5;a\nhello\r\n",
            "5x\r\n",
            "-1\r\n",
            "fffffffffffffffff\r\n",
            "0\r\n\rx",
            "0\r\na: b\r\n\n",
        ] {
            for size in [1, 4, 99] {
                assert_eq!(decode(Framing::CHUNKED, body.as_bytes(), size), Err(Malformed), "{body:?}");
            }
        }
        for body in ["x\r\n", "\r\n", "\n", "5\r\nhello!", "5x\r\n", "fffffffffffffffff\r\n"] {
            assert_eq!(decode_lines(Framing::CHUNKED, Lines::CrlfOrLf, body.as_bytes(), 4), Err(Malformed), "{body:?}");
        }
        for endless in ["0\r\n".to_owned() + &"a: b\r\n".repeat(10_000), "1;".to_owned() + &"a".repeat(20_000)] {
            for lines in [Lines::Crlf, Lines::CrlfOrLf] {
                assert_eq!(decode_lines(Framing::CHUNKED, lines, endless.as_bytes(), 1_000), Err(Malformed));
            }
        }
    }
}
