//! Checks invariant I1 for one stream, one chunking and one choice of moments for heartbeats.
//!
//! Used by the property tests, by the replay of the fuzz corpus, and by the fuzz target itself. Two questions are
//! asked. Does every reader get the same from the stream with and without heartbeats? And has each heartbeat exactly
//! the bytes its place allows, so that nothing is neutral only because nothing was written?

use bytes::Bytes;
use heartline::__private::Machine;
use heartline::{Form, Format};

use super::oracle::Oracle;
use super::reference::{decode, decode_eager, decode_strict, document, field, lines, records};

/// One stream with heartbeats, played step by step.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) format: Format,
    pub(crate) shape: Shape,
    pub(crate) steps: Vec<Step>,
}

/// What happens next.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The stream goes on with these bytes, as one frame.
    Pass(Bytes),
    /// A heartbeat is due.
    Beat,
}

/// A form, and what the test knows of it.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) form: Form,
    pub(crate) bytes: &'static [u8],
    /// No blank line in it.
    pub(crate) is_quiet: bool,
    /// The name of the event that clients see, if it is one.
    pub(crate) event: Option<&'static str>,
}

/// What a scenario did, so that a test can see that it tested something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: usize,
    pub(crate) refused: usize,
}

/// Every kind of form.
pub(crate) fn shapes() -> Vec<Shape> {
    let shape = |form, bytes, is_quiet, event| Shape { form, bytes, is_quiet, event };
    let custom = |bytes: &'static [u8], is_quiet| shape(Form::custom(bytes).unwrap(), bytes, is_quiet, None);
    let event = Form::event(EVENT, "1\n2").unwrap();
    vec![
        shape(Form::newline(), b"\n", false, None),
        shape(Form::comment(), b":\n", true, None),
        shape(Form::comment_block("data: x").unwrap(), b": data: x\n\n", false, None),
        custom(b": id: 1\n: data: [DONE]\n", true),
        custom(b"\n\n:x\n", false),
        custom(b":\n\n:\n", false),
        shape(event, b"event: beat-of-heart\ndata: 1\ndata: 2\n\n", false, Some(EVENT)),
        shape(Form::anthropic_ping(), b"event: ping\ndata: {\"type\": \"ping\"}\n\n", false, Some("ping")),
        shape(Form::off(), b"", true, None),
        shape(Form::newline_between(), b"\n", false, None),
    ]
}

/// Reads a scenario from any bytes. The first chooses the format, the second the form; of the rest, 0x1E is a due
/// heartbeat, 0x1F the end of a frame, and everything else the stream.
pub(crate) fn parse(input: &[u8]) -> Option<Scenario> {
    let (&[format, form], stream) = input.split_first_chunk()?;
    let format = [Format::EventStream, Format::Ndjson, Format::Json][usize::from(format) % 3];
    let shapes = shapes();
    let shape = shapes[usize::from(form) % shapes.len()].clone();
    let mut steps = Vec::new();
    for part in stream.split_inclusive(|byte| matches!(byte, 0x1E | 0x1F)) {
        let (bytes, beat) = match part.split_last() {
            Some((0x1E, bytes)) => (bytes, true),
            Some((0x1F, bytes)) => (bytes, false),
            _ => (part, false),
        };
        steps.push(Step::Pass(Bytes::copy_from_slice(bytes)));
        steps.extend(beat.then_some(Step::Beat));
    }
    Some(Scenario { format, shape, steps })
}

/// Plays the scenario. The error says what differs.
pub(crate) fn check(scenario: &Scenario) -> Result<Tally, String> {
    let mut machine = Machine::new(scenario.format);
    let mut oracle = Oracle::new(scenario);
    let mut wire = Vec::new();
    let mut tally = Tally::default();
    for step in &scenario.steps {
        match step {
            Step::Pass(bytes) => {
                let whole = machine.is_whole_token(bytes).then(|| format!("{machine:?}"));
                let (passed, has_bytes) = machine.pass(bytes.clone());
                if whole.is_some_and(|before| passed != bytes || !has_bytes || before != format!("{machine:?}")) {
                    return Err(format!("{bytes:?} is no whole token"));
                }
                wire.extend_from_slice(&passed);
                oracle.pass(bytes);
            }
            Step::Beat => {
                let beat = machine.beat(&scenario.shape.form);
                let expected = oracle.beat();
                if let Some(expected) = expected
                    && beat.as_deref().unwrap_or_default() != expected
                {
                    let stream = String::from_utf8_lossy(oracle.stream());
                    return Err(format!("after {stream:?}: {beat:?} where {expected:?} belongs"));
                }
                tally.sent += usize::from(beat.is_some());
                tally.refused += usize::from(beat.is_none());
                wire.extend_from_slice(&beat.unwrap_or_default());
            }
        }
    }
    wire.extend_from_slice(&machine.flush().unwrap_or_default());
    compare(scenario, oracle.stream(), &wire)?;
    compare_content(scenario, oracle.stream())?;
    Ok(tally)
}

/// Does every reader get the same from both?
pub(crate) fn compare(scenario: &Scenario, stream: &[u8], wire: &[u8]) -> Result<(), String> {
    let differs = |reader: &str, without: String, with: String| {
        let wire = String::from_utf8_lossy(wire);
        let stream = String::from_utf8_lossy(stream);
        (without != with)
            .then(|| format!("{reader}: {with} instead of {without}; stream {stream:?}, with heartbeats {wire:?}"))
            .map_or(Ok(()), Err)
    };
    match scenario.format {
        Format::Ndjson => differs("lines", format!("{:?}", records(stream)), format!("{:?}", records(wire))),
        Format::Json => differs("document", format!("{:?}", document(stream)), format!("{:?}", document(wire))),
        _ => {
            let is_own = |name: &str| scenario.shape.event == Some(name);
            let conformant = |bytes: &[u8]| {
                let mut decoded = decode(bytes);
                decoded.events.retain(|event| !is_own(&event.name));
                format!("{decoded:?}")
            };
            let strict = |bytes: &[u8]| {
                let mut events = decode_strict(bytes);
                events.retain(|event| !is_own(&event.name));
                format!("{events:?}")
            };
            differs("conformant", conformant(stream), conformant(wire))?;
            differs("strict", strict(stream), strict(wire))?;
            if scenario.shape.is_quiet {
                let eager = |bytes: &[u8]| format!("{:?}", decode_eager(bytes));
                differs("eager", eager(stream), eager(wire))?;
            }
            let has_id = lines(stream).iter().any(|line| matches!(field(line), ("id", value) if !value.is_empty()));
            if scenario.shape.form == Form::newline_between() && !has_id {
                let cut = |bytes: &[u8]| {
                    let mut lines = lines(bytes);
                    lines.retain(|line| !line.is_empty());
                    format!("{lines:?}")
                };
                differs("by hand, every line that is not blank", cut(stream), cut(wire))?;
            }
            Ok(())
        }
    }
}

/// Whether there was content does not depend on how the stream was cut, nor on heartbeats.
fn compare_content(scenario: &Scenario, stream: &[u8]) -> Result<(), String> {
    if stream.len() > LINE_BYTES_LONG {
        return Ok(());
    }
    let whole = Bytes::copy_from_slice(stream);
    let (_, bytes) = Machine::new(scenario.format).pass(whole.clone());
    let (_, content) = Machine::new(scenario.format).pass_watched(whole);
    let (mut torn, mut torn_watched) = (Machine::new(scenario.format), Machine::new(scenario.format));
    let (mut has_bytes, mut has_content) = (false, false);
    for step in &scenario.steps {
        match step {
            Step::Pass(bytes) => {
                has_bytes |= torn.pass(bytes.clone()).1;
                let is_whole = torn_watched.is_whole_watched_token(bytes);
                let (_, content) = torn_watched.pass_watched(bytes.clone());
                if is_whole && !content {
                    return Err(format!("{bytes:?} is no whole token of content"));
                }
                has_content |= content;
            }
            Step::Beat if scenario.format == Format::EventStream => {
                torn_watched.beat(&scenario.shape.form);
            }
            Step::Beat => {}
        }
    }
    let is_marked = stream.starts_with(b"\xEF");
    if has_bytes != bytes && scenario.format != Format::Ndjson || has_content != content && !is_marked {
        return Err(format!(
            "content: {has_bytes}, {has_content} in pieces, {bytes}, {content} whole: {:?}",
            String::from_utf8_lossy(stream)
        ));
    }
    Ok(())
}

const EVENT: &str = "beat-of-heart";
/// Longer lines count as content while they grow.
const LINE_BYTES_LONG: usize = 4096;
