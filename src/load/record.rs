//! The measure of one stream: told what happens to it, works out silences, gaps and latencies. Owned by the stream's task.

use std::sync::Arc;

use crate::Format;

use super::reader::Reader;
use super::worker::Worker;
use super::{Digest, Failure};

/// One stream's record; dropping it closes the books, so that a stream the run's end overtakes is counted too.
#[derive(Debug)]
pub(super) struct Record {
    worker: Arc<Worker>,
    reader: Reader,
    expected: Option<Digest>,
    intended_ns: u64,
    /// When the last byte came, or the request was sent: what a hop's timer counts from.
    last_byte_ns: u64,
    last_event_ns: Option<u64>,
    silence_ns_max: Option<u64>,
    stage: Stage,
    spoken: Spoken,
}

/// How far the stream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No connection yet. Left for `Waiting` or `Over`.
    Connecting,
    /// The request is sent. Left for `Open` or `Over`.
    Waiting,
    /// The response has begun with a 2xx. Left for `Over`.
    Open,
    /// Counted; nothing follows.
    Over,
}

/// What the body has held so far; only ever moves on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoken {
    Nothing,
    Bytes,
    Events,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Completed,
    Failed(Failure),
    /// The run's end came first.
    Held,
}

impl Record {
    /// Begins the record of a stream that was meant to begin at `intended_ns` on the run's clock.
    pub(super) fn begin(worker: Arc<Worker>, intended_ns: u64) -> Self {
        Self {
            worker,
            reader: Reader::of(None),
            expected: None,
            intended_ns,
            last_byte_ns: intended_ns,
            last_event_ns: None,
            silence_ns_max: None,
            stage: Stage::Connecting,
            spoken: Spoken::Nothing,
        }
    }

    /// Says what the stream must have decoded to when it completes.
    pub(super) fn expect(&mut self, expected: Option<Digest>) {
        self.expected = expected;
    }

    /// Notes that the connection stands and the request is being sent.
    pub(super) fn connected(&mut self) {
        let now_ns = self.worker.phases.now_ns();
        self.stage = Stage::Waiting;
        self.last_byte_ns = now_ns;
        self.worker.tally().connect.add(now_ns - self.intended_ns);
    }

    /// Notes that a 2xx response has begun, with a body of this format.
    pub(super) fn opened(&mut self, format: Option<Format>) {
        let now_ns = self.worker.phases.now_ns();
        self.stage = Stage::Open;
        self.reader = Reader::of(format);
        self.silent_until(now_ns);
        self.worker.phases.stream_opened();
        let mut tally = self.worker.tally();
        tally.opened += 1;
        tally.headers.add(now_ns - self.intended_ns);
    }

    /// Notes bytes of the body that arrived at `now_ns`.
    ///
    /// # Errors
    ///
    /// When an event is longer than the decoder's bound.
    pub(super) fn arrived(&mut self, now_ns: u64, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        let arrival = self.reader.push(bytes).map_err(|_| Failure::EventTooLong)?;
        self.silent_until(now_ns);
        let judged = self.worker.phases.window().contains(now_ns);
        let since_intended_ns = now_ns - self.intended_ns;
        let last_event_ns = self.last_event_ns;
        if arrival.events > 0 {
            self.last_event_ns = Some(now_ns);
        }
        let mut tally = self.worker.tally();
        if self.spoken == Spoken::Nothing {
            self.spoken = Spoken::Bytes;
            tally.first_byte.add(since_intended_ns);
        }
        if arrival.events > 0 && self.spoken == Spoken::Bytes {
            self.spoken = Spoken::Events;
            tally.ttft.add(since_intended_ns);
        }
        if !judged {
            return Ok(());
        }
        tally.bytes += bytes.len() as u64;
        tally.beats.total += u64::from(arrival.is_heartbeat());
        if arrival.events > 0 {
            tally.events += u64::from(arrival.events);
            if let Some(last_event_ns) = last_event_ns {
                tally.gap.add(now_ns - last_event_ns);
            }
            for _ in 1..arrival.events {
                tally.gap.add(0);
            }
        }
        Ok(())
    }

    /// Closes the record of a stream whose body ended as it should.
    pub(super) fn completed(mut self) {
        let now_ns = self.worker.phases.now_ns();
        let events = self.reader.finish();
        if events > 0 && self.worker.phases.window().contains(now_ns) {
            self.worker.tally().events += events;
        }
        if events > 0 && self.spoken != Spoken::Events {
            self.worker.tally().ttft.add(now_ns - self.intended_ns);
        }
        self.end(now_ns, End::Completed);
    }

    /// Closes the record of a stream that failed.
    pub(super) fn failed(mut self, failure: Failure) {
        let now_ns = self.worker.phases.now_ns();
        self.end(now_ns, End::Failed(failure));
    }

    /// Ends a silence that began with the last byte.
    fn silent_until(&mut self, now_ns: u64) {
        let silence = self.worker.phases.window().silence(self.last_byte_ns, now_ns);
        self.silence_ns_max = self.silence_ns_max.max(silence);
        self.last_byte_ns = now_ns;
    }

    fn end(&mut self, now_ns: u64, end: End) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if stage == Stage::Over {
            return;
        }
        self.silent_until(now_ns);
        if stage == Stage::Open {
            self.worker.phases.open_stream_ended(now_ns);
        } else {
            self.worker.phases.stream_failed_to_open();
        }
        let mut tally = self.worker.tally();
        // What a refused or rejected request waited for is no silence of a stream; one that never spoke is.
        if (stage == Stage::Open || end == End::Failed(Failure::HeadersUnfinished))
            && let Some(silence_ns) = self.silence_ns_max
        {
            tally.add_silence(silence_ns);
        }
        match end {
            End::Completed => {
                tally.completed += 1;
                tally.digests.add(self.reader.digest(), self.expected);
            }
            End::Failed(failure) => tally.add_failed(failure, 1),
            End::Held => {}
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let end = match self.stage {
            Stage::Over => return,
            Stage::Open => End::Held,
            Stage::Waiting => End::Failed(Failure::HeadersUnfinished),
            Stage::Connecting => End::Failed(Failure::ConnectUnfinished),
        };
        let now_ns = self.worker.phases.now_ns();
        self.end(now_ns, end);
    }
}
