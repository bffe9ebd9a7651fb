//! Not public: a door to the byte machine and the sweep for this package's own benches, property tests and fuzz target.
//! It may change in any release.

use std::sync::Arc;

use bytes::Bytes;

use crate::beat::core::Core;
use crate::beat::registry::Cursor;
use crate::beat::sweep::{self, Batch, Rules};
use crate::broadcaster::Heartline;
use crate::bytes::boundary::Boundary;
use crate::bytes::content::Watch;
use crate::bytes::inject::{Beat, EndPlace, Injector};
use crate::forms::format::Format;
use crate::forms::heartbeat::Form;

/// One stream's byte state.
#[derive(Debug)]
pub struct Machine(Injector);

impl Machine {
    /// The state of a stream that has not begun.
    #[must_use]
    pub const fn new(format: Format) -> Self {
        Self(Injector::new(format))
    }

    /// Passes bytes of the stream, as without `max_silence`: what may go on, and whether it has content.
    #[inline]
    pub fn pass(&mut self, data: Bytes) -> (Bytes, bool) {
        let passed = self.0.pass(data, Watch::Bytes);
        (passed.data, passed.content)
    }

    /// The same, as with `max_silence`.
    pub fn pass_watched(&mut self, data: Bytes) -> (Bytes, bool) {
        let passed = self.0.pass(data, Watch::Content);
        (passed.data, passed.content)
    }

    /// True for a frame that may go on without being passed, as the usual token may; both ways must come to the same.
    #[must_use]
    pub fn is_whole_token(&self, data: &[u8]) -> bool {
        self.0.is_whole_token(data, Watch::Bytes)
    }

    /// The same, as with `max_silence`.
    #[must_use]
    pub fn is_whole_watched_token(&self, data: &[u8]) -> bool {
        self.0.is_whole_token(data, Watch::Content)
    }

    /// The heartbeat to write now, `None` for hold and never.
    pub fn beat(&mut self, form: &Form) -> Option<Bytes> {
        match self.0.beat(form) {
            Beat::Send(bytes) => Some(bytes),
            Beat::Hold | Beat::Never => None,
        }
    }

    /// True where an error event might be written.
    #[must_use]
    pub fn is_at_boundary(&self) -> bool {
        self.0.end_place() == EndPlace::AtBoundary
    }

    /// What must go out before the end.
    pub fn flush(&mut self) -> Option<Bytes> {
        self.0.flush()
    }
}

/// A broadcaster's sweep, driven by hand instead of by its interval task.
#[expect(missing_debug_implementations, reason = "lives within a bench")]
pub struct Sweep {
    core: Arc<Core>,
    rules: Rules,
    batch: Batch,
}

impl Sweep {
    /// The sweep of `heart`, whose own task must not be running meanwhile.
    #[must_use]
    pub fn new(heart: &Heartline) -> Self {
        let core = Arc::clone(&heart.core);
        Self { rules: Rules::new(&core.settings), core, batch: Batch::default() }
    }

    /// Makes the whole of visit `tick`, eight of which are an interval; returns how many slices it took.
    pub fn visit(&mut self, tick: u32) -> usize {
        let Self { core, rules, batch } = self;
        core.set_tick(tick);
        let (mut cursor, mut slices) = (Cursor::default(), 1);
        while sweep::slice(core, &mut cursor, tick, batch, |entry| {
            sweep::decide(entry, || entry.sender.last(), tick, rules)
        }) {
            slices += 1;
        }
        slices
    }
}

/// The boundary machine alone.
#[derive(Debug)]
pub struct Reader(Boundary);

impl Reader {
    /// The state of an event stream that has not begun.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "as the machine it is for measuring")]
    pub const fn new() -> Self {
        Self(Boundary::new())
    }

    /// Reads the stream's next bytes; true if there are fields in it.
    #[inline]
    pub fn advance(&mut self, bytes: &[u8]) -> bool {
        self.0.advance(bytes)
    }
}
