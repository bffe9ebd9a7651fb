//! Decodes a compressed body for the look only, within bounds: `look` pushes what came, `scan` reads what it means.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::Coding;
use super::scan::Scan;
use super::zstd::Frames;

/// From the bytes of a body to its document.
#[derive(Debug)]
pub(super) struct Decoder {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Identity(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
    /// Raw or with a zlib header, which the first byte tells. Goes to `Raw` or `Zlib`.
    Deflate(Sink),
    Raw(Box<DeflateDecoder<Sink>>),
    Zlib(Box<ZlibDecoder<Sink>>),
    Zstd(Frames, Sink),
}

impl Decoder {
    pub(super) fn new(coding: Coding, limit: usize) -> Self {
        let mut sink = Sink { scan: Scan::new(), limit, decoded: 0, encoded: 0 };
        let inner = match coding {
            Coding::Identity => Inner::Identity(sink),
            Coding::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(sink))),
            Coding::Deflate => Inner::Deflate(sink),
            Coding::Zstd => Inner::Zstd(Frames::new(limit), sink),
            Coding::Unknown => {
                sink.scan.give_up();
                Inner::Identity(sink)
            }
        };
        Self { inner }
    }

    pub(super) fn scan(&self) -> &Scan {
        &self.sink().scan
    }

    pub(super) fn scan_mut(&mut self) -> &mut Scan {
        &mut self.sink_mut().scan
    }

    /// Decodes the next bytes of the body and has them scanned.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(&first) = bytes.first() else { return };
        if matches!(self.inner, Inner::Deflate(_)) {
            self.settle_deflate(first);
        }
        for bytes in bytes.chunks(STEP) {
            self.sink_mut().encoded += bytes.len();
            let result = match &mut self.inner {
                Inner::Identity(sink) | Inner::Deflate(sink) => sink.write_all(bytes),
                Inner::Gzip(decoder) => decoder.write_all(bytes).and_then(|()| decoder.flush()),
                Inner::Raw(decoder) => decoder.write_all(bytes).and_then(|()| decoder.flush()),
                Inner::Zlib(decoder) => decoder.write_all(bytes).and_then(|()| decoder.flush()),
                Inner::Zstd(frames, sink) => frames.push(bytes, sink),
            };
            self.judge(result);
            if self.scan().finding().is_over {
                return;
            }
        }
    }

    /// The body is over: what a decoder still holds is scanned.
    pub(super) fn finish(&mut self) {
        let result = match &mut self.inner {
            Inner::Identity(_) | Inner::Deflate(_) | Inner::Zstd(..) => Ok(()),
            Inner::Gzip(decoder) => decoder.try_finish(),
            Inner::Raw(decoder) => decoder.try_finish(),
            Inner::Zlib(decoder) => decoder.try_finish(),
        };
        self.judge(result);
    }

    /// A failure after the document's end is none; every other leaves it unread.
    fn judge(&mut self, result: io::Result<()>) {
        let scan = self.scan_mut();
        if result.is_err() && !scan.finding().is_over {
            scan.give_up();
        }
    }

    /// A zlib header begins with 8, its method, in the low four bits. Raw data that does would begin with a stored block
    /// and set bits in what no encoder sets bits in.
    fn settle_deflate(&mut self, first: u8) {
        let empty = Inner::Identity(Sink { scan: Scan::new(), limit: 0, decoded: 0, encoded: 0 });
        self.inner = match std::mem::replace(&mut self.inner, empty) {
            Inner::Deflate(sink) if first & 0x0F == 8 => Inner::Zlib(Box::new(ZlibDecoder::new(sink))),
            Inner::Deflate(sink) => Inner::Raw(Box::new(DeflateDecoder::new(sink))),
            settled => settled,
        };
    }

    fn sink(&self) -> &Sink {
        match &self.inner {
            Inner::Identity(sink) | Inner::Deflate(sink) | Inner::Zstd(_, sink) => sink,
            Inner::Gzip(decoder) => decoder.get_ref(),
            Inner::Raw(decoder) => decoder.get_ref(),
            Inner::Zlib(decoder) => decoder.get_ref(),
        }
    }

    fn sink_mut(&mut self) -> &mut Sink {
        match &mut self.inner {
            Inner::Identity(sink) | Inner::Deflate(sink) | Inner::Zstd(_, sink) => sink,
            Inner::Gzip(decoder) => decoder.get_mut(),
            Inner::Raw(decoder) => decoder.get_mut(),
            Inner::Zlib(decoder) => decoder.get_mut(),
        }
    }
}

/// Where decoded bytes go; refuses more of them once the look is over.
#[derive(Debug)]
pub(super) struct Sink {
    scan: Scan,
    limit: usize,
    decoded: usize,
    encoded: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit - self.decoded;
        let taken = &bytes[..bytes.len().min(room)];
        self.decoded += taken.len();
        if self.decoded > RATIO_FREE && self.decoded / RATIO_MAX > self.encoded {
            self.scan.give_up();
        }
        self.scan.push(taken);
        if bytes.len() > room && !self.scan.finding().is_over {
            self.scan.stop_short();
        }
        if self.scan.finding().is_over {
            return Err(io::Error::other("the look is over"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Encoded bytes that are counted before they are decoded; so many are no licence for a bomb.
const STEP: usize = 256;
/// JSON with a long history full of repetitions compresses 20 to 50 times; a bomb a thousand times.
const RATIO_MAX: usize = 200;
/// So few decoded bytes are never a bomb.
const RATIO_FREE: usize = 64 * 1024;
