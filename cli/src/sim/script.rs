//! The script of one request as a list of steps, made one by one: pure, seeded, without I/O or a clock.
//!
//! Played by [`ScriptBody`](super::body::ScriptBody); read at once by [`expected_body`](crate::sim::expected_body).

use std::time::Duration;

use bytes::Bytes;

use super::call::Call;
use super::choices::{LineEnd, Script};
use super::dice::{Dice, mix};
use super::tear::{Follow, Tear};
use super::wire::Wire;
use super::writer::{self, Part, Writer};
use heartline::Format;

/// One thing to do, and how long after the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) after: Duration,
    pub(crate) act: Act,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Wait for all earlier requests, then take the engine alone for so long.
    Prefill(Duration),
    /// Send these bytes as one chunk.
    Send(Bytes),
    /// Let what was sent leave before anything else is.
    Flush,
    /// Break the connection; the last step.
    Abort,
    /// Do nothing for ever; the last step.
    Hang,
}

/// The steps of one request that are still to come; ends where the answer ends cleanly.
#[derive(Debug)]
pub(crate) struct Plan {
    call: Box<Call>,
    pace: Dice,
    writer: Writer,
    tear: Option<Tear>,
    stage: Stage,
    /// Delays of parts that turned out to have no bytes.
    owed: Duration,
}

/// Where the plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Only the cliff begins here; to `Open`.
    Prefill,
    /// To `Token(0)`, or to `Over` when the script hangs or the answer is one document.
    Open,
    /// To the next token, to `Abort`, or to `Over` after the last one.
    Token(u32),
    /// To `Over`.
    Abort,
    /// No exit.
    Over,
}

/// Plans the answer to a call; `index` is the request's number, which moves delays but never bytes.
pub(crate) fn plan(call: Box<Call>, index: u64) -> Plan {
    let terms = &call.terms;
    let mut drawn = Dice::new(terms.seed, TORN);
    let torn = terms.script == Script::Torn;
    let ends = LineEnd::ALL[drawn.below(LineEnd::ALL.len())];
    let bom = drawn.below(2) == 0;
    let ends = terms.line_end.unwrap_or(if torn { ends } else { LineEnd::Lf });
    let mut wire = Wire::new(ends, terms.seed);
    if terms.bom.unwrap_or(torn && bom) && call.is_streamed() && call.api.format() == Format::EventStream {
        wire.bom();
    }
    let own = if terms.seed_is_own { 0 } else { index };
    Plan {
        pace: Dice::new(mix(terms.seed) ^ own, PACE),
        tear: torn.then(|| Tear::new(terms.seed ^ mix(own))),
        stage: if terms.script == Script::Cliff { Stage::Prefill } else { Stage::Open },
        owed: Duration::ZERO,
        writer: Writer::new(wire),
        call,
    }
}

impl Plan {
    /// Whether the answer is an error whose headers can still say so.
    pub(crate) fn fails_as_document(&self) -> bool {
        !self.call.is_streamed() && self.call.terms.script == Script::LateError
    }

    /// Whether the step given out last was the last one.
    pub(crate) fn is_spent(&self) -> bool {
        self.stage == Stage::Over && self.tear.is_none()
    }

    /// Draws the wait for a token, with the silence of a stall in front of the one it holds back.
    fn wait(&mut self, index: u32) -> Duration {
        let terms = &self.call.terms;
        let silent = terms.script == Script::Stall && index == self.call.turn();
        let stall = if silent { terms.stall.draw(&mut self.pace) } else { Duration::ZERO };
        let between = if index == 0 { Duration::ZERO } else { terms.itl.draw(&mut self.pace) };
        stall + between
    }

    fn opening_wait(&mut self) -> Duration {
        // The cliff has waited for its prefill instead.
        if self.call.terms.script == Script::Cliff {
            return Duration::ZERO;
        }
        self.call.terms.ttft.draw(&mut self.pace)
    }

    /// Makes the only step of an answer that is not streamed: the waits of all its tokens, then the document.
    fn document(&mut self) -> Step {
        let script = self.call.terms.script;
        let failing = script == Script::LateError;
        let until = if failing { self.call.turn() } else { self.call.tokens };
        let mut after = self.opening_wait();
        for index in 0..until {
            after += self.wait(index);
        }
        self.stage = Stage::Over;
        let mut json =
            if failing { self.call.api.error_document(&writer::late()) } else { writer::document(&self.call) }
                .into_bytes();
        match script {
            Script::Disconnect | Script::DisconnectInside => {
                json.truncate(json.len() / 2);
                self.stage = Stage::Abort;
            }
            _ => {}
        }
        self.send(after, json)
    }

    /// Makes the next step of a stream; the stage is `Token(index)`.
    fn token(&mut self, index: u32) -> Step {
        let after = std::mem::take(&mut self.owed) + self.wait(index);
        let script = self.call.terms.script;
        let part = if index == self.call.tokens { Part::Close } else { Part::Token(index) };
        let turned = index == self.call.turn();
        let (part, stage) = match script {
            Script::Disconnect if turned => {
                self.stage = Stage::Over;
                return Step { after: after.max(ABORT_AFTER), act: Act::Abort };
            }
            Script::DisconnectInside if turned => (part, Stage::Abort),
            Script::LateError if turned => (Part::Error, Stage::Over),
            _ if part == Part::Close => (part, Stage::Over),
            _ => (part, Stage::Token(index + 1)),
        };
        self.stage = stage;
        let mut bytes = self.written(part);
        if stage == Stage::Abort {
            bytes.truncate(bytes.len() / 2);
        }
        self.send(after, bytes)
    }

    fn written(&mut self, part: Part) -> Vec<u8> {
        self.writer.write(&self.call, part)
    }

    /// Sends whole bytes, or hands them to the tear, whose pieces follow.
    fn send(&mut self, after: Duration, bytes: Vec<u8>) -> Step {
        let follow = if self.stage == Stage::Over { Follow::Nothing } else { Follow::More };
        let act = match &mut self.tear {
            None => Act::Send(Bytes::from(bytes)),
            Some(tear) => {
                tear.add(bytes, follow);
                Act::Flush
            }
        };
        Step { after, act }
    }
}

impl Iterator for Plan {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(act) = self.tear.as_mut().and_then(Tear::piece) {
            return Some(Step { after: Duration::ZERO, act });
        }
        match self.stage {
            Stage::Prefill => {
                self.stage = Stage::Open;
                let takes = self.call.terms.prefill.draw(&mut self.pace);
                Some(Step { after: Duration::ZERO, act: Act::Prefill(takes) })
            }
            Stage::Open if self.call.terms.script == Script::Hang => {
                self.stage = Stage::Over;
                Some(Step { after: Duration::ZERO, act: Act::Hang })
            }
            Stage::Open if !self.call.is_streamed() => Some(self.document()),
            Stage::Open => {
                self.owed = self.opening_wait();
                self.stage = Stage::Token(0);
                let bytes = self.written(Part::Open);
                if bytes.is_empty() {
                    return Some(self.token(0));
                }
                let after = std::mem::take(&mut self.owed);
                Some(self.send(after, bytes))
            }
            Stage::Token(index) => Some(self.token(index)),
            Stage::Abort => {
                self.stage = Stage::Over;
                let after = self.call.terms.itl.draw(&mut self.pace).max(ABORT_AFTER);
                Some(Step { after, act: Act::Abort })
            }
            Stage::Over => None,
        }
    }
}

const TORN: u64 = 0x746f_726e;
const PACE: u64 = 0x7061_6365;

/// An abort waits at least so long: a server may drop bytes that an abort follows at once.
const ABORT_AFTER: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
