//! The measure of one stream: told what happens to it, works out silences, gaps and latencies. Owned by the stream's task.

use std::sync::Arc;

use heartline::Format;

use super::judge::Said;
use super::live::Line;
use super::plan::Begin;
use super::reader::Reader;
use super::slices::{self, Came, Longest};
use super::worker::Worker;
use super::{Digest, Failure};

/// One stream's record; dropping it closes the books, so that a stream the run's end overtakes is counted too.
#[derive(Debug)]
pub(super) struct Record {
    worker: Arc<Worker>,
    reader: Reader,
    expected: Option<Digest>,
    intended_ns: u64,
    /// The stream was meant to begin when beginnings are judged, so its latencies count.
    is_judged: bool,
    /// When the request began to be sent; the intended time before that.
    sent_ns: u64,
    /// When the last byte came, or the request was sent: what a hop's timer counts from.
    last_byte_ns: u64,
    last_event_ns: Option<u64>,
    /// When the last heartbeat came, if no event came since.
    last_heartbeat_ns: Option<u64>,
    heard_heartbeat: bool,
    silence_ns_max: Option<u64>,
    /// The same by slice, where the run is one part of a plan.
    longest: Option<Box<Longest>>,
    /// Where somebody looks on.
    line: Option<Arc<Line>>,
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
    /// Begins the record of a stream.
    pub(super) fn begin(worker: Arc<Worker>, begin: Begin) -> Self {
        let intended_ns = u64::try_from(begin.due.as_nanos()).unwrap_or(u64::MAX);
        Self {
            line: worker.live.is_some().then(|| Line::new(begin.index)),
            longest: worker.plan.is_part().then(Box::default),
            is_judged: begin.due >= worker.plan.judged_from(),
            worker,
            reader: Reader::new(None, None),
            expected: None,
            intended_ns,
            sent_ns: intended_ns,
            last_byte_ns: intended_ns,
            last_event_ns: None,
            last_heartbeat_ns: None,
            heard_heartbeat: false,
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
        self.sent_ns = now_ns;
        if self.is_judged {
            self.worker.tally().connect.add(self.waited_ns(now_ns));
        }
    }

    /// Notes that a 2xx response has begun, with a body of this format.
    pub(super) fn opened(&mut self, format: Option<Format>) {
        let now_ns = self.worker.phases.now_ns();
        self.stage = Stage::Open;
        self.reader = Reader::new(format, self.worker.api);
        self.silent_until(now_ns);
        self.worker.phases.stream_opened();
        if let (Some(live), Some(line)) = (&self.worker.live, &self.line) {
            live.open(line);
        }
        let mut tally = self.worker.tally();
        tally.opened += 1;
        if self.is_judged {
            tally.headers.add(self.waited_ns(now_ns));
        }
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
        let read = self.reader.push(bytes).map_err(|_| Failure::EventTooLong)?;
        let events = read.events();
        let is_heartbeat = read.is_heartbeat();
        self.silent_until(now_ns);
        let judged = self.worker.phases.window().contains(now_ns);
        let waited_ns = self.waited_ns(now_ns);
        let last_event_ns = if events > 0 { self.last_event_ns.replace(now_ns) } else { self.last_event_ns };
        let last_heartbeat_ns = std::mem::replace(&mut self.last_heartbeat_ns, is_heartbeat.then_some(now_ns));
        let first_heartbeat = is_heartbeat && !std::mem::replace(&mut self.heard_heartbeat, true);
        let mut tally = self.worker.tally();
        if self.is_judged {
            if self.spoken == Spoken::Nothing {
                tally.first_byte.add(waited_ns);
            }
            if events > 0 && self.spoken != Spoken::Events {
                tally.ttft.add(waited_ns);
                tally.ttft_from_send.add(now_ns.saturating_sub(self.sent_ns));
            }
            if first_heartbeat {
                tally.first_heartbeat.add(waited_ns);
            }
        }
        self.spoken = if events > 0 || self.spoken == Spoken::Events { Spoken::Events } else { Spoken::Bytes };
        tally.ends_seen += u64::from(read.remarks.ended);
        if !judged {
            return Ok(());
        }
        tally.bytes += bytes.len() as u64;
        if let Some(slices) = &mut tally.slices {
            let came = Came {
                events,
                heartbeats: u32::from(is_heartbeat),
                bytes: bytes.len() as u64,
                gap_ns: last_event_ns.filter(|_| events > 0).map(|last_ns| now_ns - last_ns),
                between_heartbeats_ns: last_heartbeat_ns.filter(|_| is_heartbeat).map(|last_ns| now_ns - last_ns),
            };
            let plan = &self.worker.plan;
            slices.add(now_ns - self.worker.phases.window().from_ns, plan.shape.length(), came);
        }
        if is_heartbeat {
            tally.beats.total += 1;
            tally.beats.kinds.add(bytes);
            if let Some(last_heartbeat_ns) = last_heartbeat_ns {
                tally.beats.between.add(now_ns - last_heartbeat_ns);
            }
        }
        tally.ids_repeated += u64::from(read.remarks.ids_repeated);
        tally.ids_missing += u64::from(read.remarks.ids_missing);
        if events > 0 {
            tally.events += u64::from(events);
            if let Some(last_event_ns) = last_event_ns {
                tally.gap.add(now_ns - last_event_ns);
            }
            for _ in 1..events {
                tally.gap.add(0);
            }
        }
        Ok(())
    }

    /// Returns when the last byte came, or the request was sent.
    pub(super) fn last_byte_ns(&self) -> u64 {
        self.last_byte_ns
    }

    /// Closes the record of a stream whose body ended as HTTP says it should.
    pub(super) fn completed(mut self) {
        let now_ns = self.worker.phases.now_ns();
        let events = self.reader.finish();
        if events > 0 && self.worker.phases.window().contains(now_ns) {
            self.worker.tally().events += events;
        }
        if events > 0 && self.spoken != Spoken::Events && self.is_judged {
            let mut tally = self.worker.tally();
            tally.ttft.add(self.waited_ns(now_ns));
            tally.ttft_from_send.add(now_ns.saturating_sub(self.sent_ns));
        }
        let end = match self.reader.said() {
            None | Some(Said::End) => End::Completed,
            Some(Said::Nothing) => End::Failed(Failure::EndMissing),
            Some(Said::Error) => End::Failed(Failure::ErrorInStream),
        };
        self.end(now_ns, end);
    }

    /// Closes the record of a stream that failed.
    pub(super) fn failed(mut self, failure: Failure) {
        let now_ns = self.worker.phases.now_ns();
        // What the stream said of its error says more than how it ended.
        let told = self.reader.said() == Some(Said::Error);
        self.end(now_ns, End::Failed(if told { Failure::ErrorInStream } else { failure }));
    }

    /// Returns how long the stream's user has waited: from the intended beginning, not from when this client got to it.
    fn waited_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.intended_ns)
    }

    /// Ends a silence that began with the last byte.
    fn silent_until(&mut self, now_ns: u64) {
        if let Some(line) = &self.line {
            line.spoke(self.last_byte_ns, now_ns);
        }
        let window = self.worker.phases.window();
        self.silence_ns_max = self.silence_ns_max.max(window.silence(self.last_byte_ns, now_ns));
        if let Some(longest) = &mut self.longest {
            slices::note_silence(longest, window, self.worker.plan.shape.length(), self.last_byte_ns, now_ns);
        }
        self.last_byte_ns = now_ns;
    }

    fn end(&mut self, now_ns: u64, end: End) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        if stage == Stage::Over {
            return;
        }
        if let (Some(live), Some(line)) = (&self.worker.live, &self.line) {
            live.close(line);
        }
        let silent_from_ns = self.last_byte_ns;
        self.silent_until(now_ns);
        if stage == Stage::Open {
            self.worker.phases.open_stream_ended(now_ns);
        } else {
            self.worker.phases.stream_failed_to_open();
        }
        let mut tally = self.worker.tally();
        // What a refused or rejected request waited for is no silence of a stream; one that never spoke is.
        if (stage == Stage::Open
            || end == End::Failed(Failure::HeadersUnfinished)
            || end == End::Failed(Failure::CutBeforeHeaders))
            && let Some(silence_ns) = self.silence_ns_max
        {
            tally.add_silence(silence_ns);
            if let (Some(slices), Some(longest)) = (&mut tally.slices, &self.longest) {
                slices.add_silences(longest);
            }
        }
        match end {
            End::Completed => {
                tally.completed += 1;
                tally.digests.add(self.reader.digest(), self.expected);
            }
            End::Failed(failure) => tally.add_failed(failure, 1),
            // What should have come since, and did not, counts among the heartbeats missed.
            End::Held => {
                if let Some(since_ns) = self.worker.phases.window().silence(silent_from_ns, now_ns) {
                    tally.beats.since.add(since_ns);
                }
            }
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
