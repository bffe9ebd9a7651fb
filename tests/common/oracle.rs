//! Says what a heartbeat must be, from the stream so far and nothing else: the second judge of `neutral`.

use heartline::{Form, Format};

use super::neutral::Scenario;
use super::reference::{field, lines, records};

/// Says what each heartbeat must be, from the stream so far and nothing else.
pub(crate) struct Oracle<'a> {
    scenario: &'a Scenario,
    stream: Vec<u8>,
    /// A heartbeat was written before the stream's first byte.
    went_first: bool,
    /// Length of the stream when the last heartbeat was written.
    last_beat_at: Option<usize>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        Self { scenario, stream: Vec::new(), went_first: false, last_beat_at: None }
    }

    /// The stream so far.
    pub(crate) fn stream(&self) -> &[u8] {
        &self.stream
    }

    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
    }

    /// The bytes of a heartbeat now, none for no heartbeat; `None` where that cannot be told from outside.
    pub(crate) fn beat(&mut self) -> Option<Vec<u8>> {
        let bytes = if self.scenario.shape.form.is_off() {
            Vec::new()
        } else {
            match self.scenario.format {
                Format::Ndjson => self.between_lines()?,
                Format::Json => self.before_document(),
                _ => self.between_events(),
            }
        };
        if !bytes.is_empty() {
            self.went_first |= self.stream.is_empty();
            self.last_beat_at = Some(self.stream.len());
        }
        Some(bytes)
    }

    /// The stream without the byte order mark that clients do not see; `None` in the middle of one that they do.
    fn visible(&self) -> Option<&[u8]> {
        let is_torn = MARK.starts_with(&self.stream) && self.stream.len() < 3;
        match self.stream.strip_prefix(MARK) {
            Some(rest) => Some(rest),
            None if is_torn && self.went_first => Some(b""),
            None if is_torn && !self.stream.is_empty() => None,
            None => Some(&self.stream),
        }
    }

    fn between_events(&self) -> Vec<u8> {
        let Some(visible) = self.visible() else {
            return Vec::new();
        };
        match visible.last() {
            Some(b'\r') if self.last_beat_at != Some(self.stream.len()) => return b"\n".to_vec(),
            None | Some(b'\r' | b'\n') => {}
            Some(_) => return Vec::new(),
        }
        let (mut is_open, mut has_id, mut has_ended) = (false, false, false);
        // A mark is one at the very start only: as a byte of a field's name, should another follow.
        let hidden = [MARK, visible].concat();
        for line in lines(&hidden) {
            is_open = !line.is_empty() && (is_open || !line.starts_with(':'));
            has_id |= matches!(field(&line), ("id", value) if !value.is_empty());
            has_ended |= is_terminator(&line);
        }
        let shape = &self.scenario.shape;
        if (is_open || has_ended) && shape.form == Form::newline_between() {
            return Vec::new();
        }
        if is_open && visible.windows(2).any(|pair| pair == b"\r\n") {
            return b":\r\n".to_vec();
        }
        if is_open || has_ended || (has_id && !shape.is_quiet) { b":\n".to_vec() } else { shape.bytes.to_vec() }
    }

    fn between_lines(&self) -> Option<Vec<u8>> {
        let is_odd = |line: &[u8]| {
            let text = String::from_utf8_lossy(line);
            text.contains("done")
                && (text.matches("done").count() > 1 || serde_json::from_str::<serde_json::Value>(&text).is_err())
                || text.contains("\\u")
        };
        let visible = if self.went_first { self.visible().unwrap_or_default() } else { &self.stream };
        if visible.split(|&byte| byte == b'\n').any(is_odd) {
            return None;
        }
        let is_done = records(visible).iter().flatten().any(|record| record["done"] == true);
        // Since the last heartbeat only line ends have come, and maybe a mark that is dropped.
        let is_spaced = self.last_beat_at.is_some_and(|at| {
            let hidden = self.stream.len() - visible.len();
            let since = &self.stream[at.max(hidden)..];
            since.iter().all(|byte| matches!(byte, b'\r' | b'\n'))
        });
        let is_between = visible.is_empty() || visible.ends_with(b"\n") || is_spaced;
        Some(if is_between && !is_done { b" ".to_vec() } else { Vec::new() })
    }

    fn before_document(&self) -> Vec<u8> {
        let visible = if self.went_first { self.visible().unwrap_or_default() } else { &self.stream };
        let is_blank = visible.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
        if is_blank { b"\n".to_vec() } else { Vec::new() }
    }
}

fn is_terminator(line: &str) -> bool {
    const LAST: [&str; 4] = ["message_stop", "response.completed", "response.failed", "response.incomplete"];
    let (name, value) = field(line);
    let value = value.trim_start_matches(' ');
    match name {
        "event" => line.contains(':') && LAST.contains(&value),
        "data" => {
            let kind = value.strip_prefix("{\"type\":").map(|rest| rest.trim_start_matches(' '));
            value.starts_with("[DONE]")
                || kind.is_some_and(|kind| LAST.iter().any(|last| kind.starts_with(&format!("\"{last}\""))))
        }
        _ => false,
    }
}

const MARK: &[u8] = b"\xEF\xBB\xBF";
