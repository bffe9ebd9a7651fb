//! Not public: a door to the byte machine for this package's own benches, property tests and fuzz target. It may change
//! in any release.

use bytes::Bytes;

use crate::content::Watch;
use crate::format::Format;
use crate::heartbeat::Form;
use crate::inject::{Beat, EndPlace, Injector};

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
