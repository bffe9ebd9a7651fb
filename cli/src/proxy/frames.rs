//! Where the frames of a WebSocket begin and end, told from their heads alone (RFC 6455 §5.2). Used by `tunnel`.

/// One direction of a WebSocket.
#[derive(Debug, Default)]
pub(super) struct Frames {
    state: State,
}

#[derive(Debug)]
enum State {
    /// In a head, of which this much has come. Goes to `Payload` when it is whole.
    Head { bytes: [u8; HEAD_MAX], length: usize },
    /// So much payload is still to come. Goes to `Head` when there is none left.
    Payload(u64),
}

impl Default for State {
    fn default() -> Self {
        Self::Head { bytes: [0; HEAD_MAX], length: 0 }
    }
}

impl Frames {
    /// Bytes go by.
    pub(super) fn pass(&mut self, mut data: &[u8]) {
        while let Some((&first, rest)) = data.split_first() {
            match &mut self.state {
                State::Payload(left) => {
                    let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(data.len());
                    *left -= passed as u64;
                    data = &data[passed..];
                    if *left == 0 {
                        self.state = State::default();
                    }
                }
                State::Head { bytes, length } => {
                    bytes[*length] = first;
                    *length += 1;
                    data = rest;
                    if let Some(payload) = payload(&bytes[..*length]) {
                        self.state = if payload == 0 { State::default() } else { State::Payload(payload) };
                    }
                }
            }
        }
    }

    /// Whether a new frame may begin here.
    pub(super) fn is_at_boundary(&self) -> bool {
        matches!(self.state, State::Head { length: 0, .. })
    }
}

/// The payload's length, once the head is whole.
fn payload(head: &[u8]) -> Option<u64> {
    let second = *head.get(1)?;
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    let extended = match second & 0x7F {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    if head.len() < 2 + extended + mask {
        return None;
    }
    match extended {
        0 => Some(u64::from(second & 0x7F)),
        _ => Some(head[2..2 + extended].iter().fold(0, |length, byte| length << 8 | u64::from(*byte))),
    }
}

/// Two bytes, eight of length, four of mask.
const HEAD_MAX: usize = 14;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length: usize, masked: &[u8]) -> Vec<u8> {
        let mask = if masked.is_empty() { 0 } else { 0x80 };
        let mut frame = vec![0x82];
        match length {
            0..126 => frame.push(mask | u8::try_from(length).unwrap()),
            126..65_536 => {
                frame.push(mask | 126);
                frame.extend(u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(masked);
        frame.extend(std::iter::repeat_n(0x88, length));
        frame
    }

    #[test]
    fn a_boundary_is_found_under_any_chunking() {
        let mut stream = Vec::new();
        let mut boundaries = vec![0];
        for (length, mask) in [(0, &[][..]), (5, &[1, 2, 3, 4]), (126, &[]), (70_000, &[0, 0, 0, 0]), (0, &[9; 4])] {
            stream.extend(frame(length, mask));
            boundaries.push(stream.len());
        }
        for step in [1, 2, 3, 7, 1000] {
            let (mut frames, mut at) = (Frames::default(), 0);
            for chunk in stream.chunks(step) {
                frames.pass(chunk);
                at += chunk.len();
                assert_eq!(frames.is_at_boundary(), boundaries.contains(&at), "{at} by {step}");
            }
        }
    }
}
