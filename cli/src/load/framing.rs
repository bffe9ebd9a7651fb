//! How the body of an HTTP/1.1 response is framed (RFC 9112, section 6), decoded wherever the bytes are cut. Pure; driven
//! by `http1`, in a few bytes a stream, because nothing of the body is kept.

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// Chunks, up to one of length 0.
    Chunked(Chunk),
    /// So many bytes.
    Length(u64),
    /// Everything up to the connection's end.
    UntilClose,
}

/// A place in a chunked body; [`Framing::next`] moves from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// In the length, of which so much is known in so many digits.
    Size { bytes: u64, digits: u8 },
    /// After the length, before its line's end.
    Extension { bytes: u64, read: u16 },
    /// In the data.
    Data { left: u64 },
    /// Between the data and the line end after it.
    DataEnd,
    /// At the start of a line after the last chunk.
    Trailer { read: u16 },
    /// Within such a line.
    TrailerLine { read: u16 },
    /// The body is over.
    Over,
}

/// The next part of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'b> {
    /// Bytes of the body.
    Data(&'b [u8]),
    /// The body is over.
    End,
    /// All input is used up.
    Starved,
}

/// What came is not framed as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Framing {
    /// The beginning of a chunked body.
    pub(super) const CHUNKED: Self = Self::Chunked(Chunk::START);

    /// Takes the next part off `input`.
    ///
    /// # Errors
    ///
    /// When the bytes are not framed as said.
    pub(super) fn next<'b>(&mut self, input: &mut &'b [u8]) -> Result<Part<'b>, Malformed> {
        match self {
            Self::UntilClose => Ok(split(input, u64::MAX).map_or(Part::Starved, Part::Data)),
            Self::Length(0) => Ok(Part::End),
            Self::Length(left) => {
                let Some(data) = split(input, *left) else { return Ok(Part::Starved) };
                *left -= data.len() as u64;
                Ok(Part::Data(data))
            }
            Self::Chunked(chunk) => loop {
                match *chunk {
                    Chunk::Over => return Ok(Part::End),
                    Chunk::Data { left } => {
                        let Some(data) = split(input, left) else { return Ok(Part::Starved) };
                        let left = left - data.len() as u64;
                        *chunk = if left == 0 { Chunk::DataEnd } else { Chunk::Data { left } };
                        return Ok(Part::Data(data));
                    }
                    _ => {
                        let Some((&byte, rest)) = input.split_first() else { return Ok(Part::Starved) };
                        *input = rest;
                        *chunk = chunk.after(byte)?;
                    }
                }
            },
        }
    }

    /// Tells whether the connection's end now is the body's end.
    pub(super) fn may_end(self) -> bool {
        matches!(self, Self::UntilClose | Self::Length(0) | Self::Chunked(Chunk::Over))
    }
}

impl Chunk {
    const START: Self = Self::Size { bytes: 0, digits: 0 };

    /// Moves on by a byte that is no data. A lone LF ends a line, as most readers have it.
    fn after(self, byte: u8) -> Result<Self, Malformed> {
        match self {
            Self::Size { bytes, digits } => match char::from(byte).to_digit(16) {
                Some(_) if digits == DIGITS_MAX => Err(Malformed),
                Some(digit) => Ok(Self::Size { bytes: bytes * 16 + u64::from(digit), digits: digits + 1 }),
                None if digits == 0 => Err(Malformed),
                None => match byte {
                    b'\n' => Ok(Self::sized(bytes)),
                    b'\r' | b';' | b' ' | b'\t' => Ok(Self::Extension { bytes, read: 0 }),
                    _ => Err(Malformed),
                },
            },
            Self::Extension { bytes, .. } if byte == b'\n' => Ok(Self::sized(bytes)),
            Self::Extension { read: LINE_BYTES_MAX, .. } => Err(Malformed),
            Self::Extension { bytes, read } => Ok(Self::Extension { bytes, read: read + 1 }),
            Self::DataEnd => match byte {
                b'\r' => Ok(Self::DataEnd),
                b'\n' => Ok(Self::START),
                _ => Err(Malformed),
            },
            Self::Trailer { read: LINE_BYTES_MAX } | Self::TrailerLine { read: LINE_BYTES_MAX } => Err(Malformed),
            Self::Trailer { read } => match byte {
                b'\r' => Ok(Self::Trailer { read: read + 1 }),
                b'\n' => Ok(Self::Over),
                _ => Ok(Self::TrailerLine { read: read + 1 }),
            },
            Self::TrailerLine { read } if byte == b'\n' => Ok(Self::Trailer { read: read + 1 }),
            Self::TrailerLine { read } => Ok(Self::TrailerLine { read: read + 1 }),
            // `next` does not ask here.
            Self::Data { .. } | Self::Over => Ok(self),
        }
    }

    fn sized(bytes: u64) -> Self {
        if bytes == 0 { Self::Trailer { read: 0 } } else { Self::Data { left: bytes } }
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

/// The most that extensions of one chunk, and all trailers together, may take.
const LINE_BYTES_MAX: u16 = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `bytes` in pieces of `size` bytes; the data, and whether the body ended.
    fn decode(mut framing: Framing, bytes: &[u8], size: usize) -> Result<(Vec<u8>, bool), Malformed> {
        let mut data = Vec::new();
        for mut piece in bytes.chunks(size) {
            loop {
                match framing.next(&mut piece)? {
                    Part::Data(part) => data.extend_from_slice(part),
                    Part::End => return Ok((data, true)),
                    Part::Starved => break,
                }
            }
        }
        Ok((data, framing.may_end()))
    }

    #[test]
    fn chunks_decode_wherever_they_are_cut() {
        let body = b"5;ext=\"a\"\r\nhello\r\n00A \r\n, 10 bytes\r\n1\n!\n0\r\nx-trailer: 1\r\n\r\nrest";
        for size in 1..=body.len() {
            assert_eq!(decode(Framing::CHUNKED, body, size), Ok((b"hello, 10 bytes!".to_vec(), true)), "{size}");
        }
    }

    #[test]
    fn an_end_before_the_last_chunk_is_no_end() {
        assert_eq!(decode(Framing::CHUNKED, b"5\r\nhel", 3), Ok((b"hel".to_vec(), false)));
        assert_eq!(decode(Framing::CHUNKED, b"5\r\nhello\r\n0\r\n", 99), Ok((b"hello".to_vec(), false)));
        assert_eq!(decode(Framing::Length(9), b"hello", 2), Ok((b"hello".to_vec(), false)));
        assert_eq!(decode(Framing::Length(4), b"hello", 2), Ok((b"hell".to_vec(), true)));
        assert_eq!(decode(Framing::UntilClose, b"hello", 2), Ok((b"hello".to_vec(), true)));
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for body in ["x\r\n", "\r\n", "5\r\nhello!", "5x\r\n", "fffffffffffffffff\r\n"] {
            assert_eq!(decode(Framing::CHUNKED, body.as_bytes(), 4), Err(Malformed), "{body}");
        }
        let endless = format!("0\r\n{}", "a: b\r\n".repeat(10_000));
        assert_eq!(decode(Framing::CHUNKED, endless.as_bytes(), 1_000), Err(Malformed));
    }
}
