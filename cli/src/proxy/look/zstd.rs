//! Zstandard frames, decoded for the look when the last byte of a frame is there. Used by `decode`.
//!
//! A decoder must keep a window of megabytes, which a few bytes can ask for. So that no waiting request owns one, the encoded
//! bytes are kept, which its client had to send, and the window lives for one call only. Layout: RFC 8878, section 3.1.1.

use std::io::{self, Read, Write};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The frames of one body.
#[derive(Debug)]
pub(super) struct Frames {
    /// The frame that is not whole yet.
    held: Vec<u8>,
    limit: usize,
    /// Where the next block of the held frame begins; zero while its header is not whole.
    next_block: usize,
}

impl Frames {
    /// Holds `limit` encoded bytes at most.
    pub(super) fn new(limit: usize) -> Self {
        Self { held: Vec::new(), limit, next_block: 0 }
    }

    /// Takes the next bytes and decodes each frame that is whole into `sink`.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut impl Write) -> io::Result<()> {
        if self.held.len() + bytes.len() > self.limit {
            return Err(io::Error::other("the encoded body is over the limit"));
        }
        self.held.extend_from_slice(bytes);
        while let Some(length) = self.walk()? {
            let frame: Vec<u8> = self.held.drain(..length).collect();
            self.next_block = 0;
            decode(&frame, sink)?;
        }
        Ok(())
    }

    /// The length of the held frame, if it is whole.
    fn walk(&mut self) -> io::Result<Option<usize>> {
        let Some(&descriptor) = self.held.get(MAGIC.len()) else { return Ok(None) };
        if !self.held.starts_with(MAGIC) {
            return Err(io::Error::other("no zstd frame"));
        }
        if self.next_block == 0 {
            self.next_block = header_length(descriptor);
        }
        loop {
            let Some(block) = self.held.get(self.next_block..self.next_block + BLOCK_HEADER) else { return Ok(None) };
            let header = u32::from_le_bytes([block[0], block[1], block[2], 0]);
            let (is_last, kind, size) = (header & 1 == 1, header >> 1 & 3, (header >> 3) as usize);
            let length = if kind == RUN { 1 } else { size };
            if size > BLOCK_MAX {
                return Err(io::Error::other("a zstd block larger than allowed"));
            }
            let end = self.next_block + BLOCK_HEADER + length;
            if !is_last {
                self.next_block = end;
                continue;
            }
            let whole = end + if descriptor & HAS_CHECKSUM == 0 { 0 } else { 4 };
            return Ok((self.held.len() >= whole).then_some(whole));
        }
    }
}

fn header_length(descriptor: u8) -> usize {
    let is_single_segment = descriptor & 0x20 != 0;
    let window = usize::from(!is_single_segment);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_size = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        shift => 1 << shift,
    };
    MAGIC.len() + 1 + window + dictionary + content_size
}

fn decode(mut frame: &[u8], sink: &mut impl Write) -> io::Result<()> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_MAX);
    decoder.init(&mut frame).map_err(io::Error::other)?;
    let mut piece = [0; 8 * 1024];
    loop {
        decoder.decode_blocks(&mut frame, BlockDecodingStrategy::UptoBlocks(1)).map_err(io::Error::other)?;
        loop {
            let length = decoder.read(&mut piece)?;
            if length == 0 {
                break;
            }
            sink.write_all(&piece[..length])?;
        }
        if decoder.is_finished() {
            return Ok(());
        }
    }
}

const MAGIC: &[u8; 4] = &[0x28, 0xB5, 0x2F, 0xFD];
const BLOCK_HEADER: usize = 3;
/// The largest block the format allows.
const BLOCK_MAX: usize = 128 * 1024;
/// The kind of block that is one byte, repeated.
const RUN: u32 = 1;
const HAS_CHECKSUM: u8 = 4;
/// What RFC 8878 asks every decoder to support; larger windows are for archives.
const WINDOW_MAX: u64 = 8 * 1024 * 1024;
