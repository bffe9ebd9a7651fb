//! How the live screen looks: drawn from a [`View`] alone, so that a test can look at it.

use std::time::Duration;

use heartline_cli::load::{Phase, Progress, SEEN_BELOW, Seen};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};

/// What is on the screen.
#[derive(Clone, Debug)]
pub(crate) struct View {
    url: String,
    length: Duration,
    /// Colours are wanted; without, shapes and words say everything.
    pub(crate) colors: bool,
    /// The user asked for the end.
    pub(crate) is_ending: bool,
    progress: Option<Progress>,
    seen: Seen,
    events_per_second: f64,
    heartbeats_per_second: f64,
    /// The last looks, newest last.
    held: Vec<u64>,
    events: Vec<u64>,
}

impl View {
    /// Creates an empty view without colours.
    pub(crate) fn new(url: String, length: Duration) -> Self {
        Self {
            url,
            length,
            colors: false,
            is_ending: false,
            progress: None,
            seen: Seen::default(),
            events_per_second: 0.0,
            heartbeats_per_second: 0.0,
            held: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Takes in what was just told and seen.
    pub(crate) fn note(&mut self, progress: Progress, seen: Seen, events_per_second: f64, heartbeats_per_second: f64) {
        self.progress = Some(progress);
        self.seen = seen;
        (self.events_per_second, self.heartbeats_per_second) = (events_per_second, heartbeats_per_second);
        for (looks, look) in [
            (&mut self.held, progress.open as u64),
            (&mut self.events, (events_per_second + heartbeats_per_second) as u64),
        ] {
            if looks.len() == LOOKS_MAX {
                looks.remove(0);
            }
            looks.push(look);
        }
    }

    fn style(&self, color: Color) -> Style {
        if self.colors { Style::new().fg(color) } else { Style::new() }
    }
}

/// Draws the whole screen.
pub(crate) fn draw(frame: &mut Frame<'_>, view: &View) {
    let Some(progress) = view.progress else { return };
    let [title, gauge, numbers, middle, worst, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(5),
        Constraint::Length(SEEN_BELOW.len() as u16 + 3),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::from(vec![Span::styled("heartline load  ", bold), Span::raw(view.url.as_str())]), title);
    frame.render_widget(Paragraph::new(phase(view, &progress, gauge.width)), gauge);
    draw_numbers(frame, view, &progress, numbers);
    draw_silences(frame, view, middle);
    draw_worst(frame, view, worst);
    let keys = if view.is_ending { "ending, the report follows" } else { "q or Ctrl-C ends the run and reports" };
    frame.render_widget(Paragraph::new(keys).style(view.style(Color::DarkGray)), foot);
}

fn phase<'v>(view: &View, progress: &Progress, width: u16) -> Line<'v> {
    let (name, done, text) = match progress.phase {
        Phase::Ramp => {
            let done = progress.settled as f64 / progress.requested.max(1) as f64;
            ("ramp ", done, format!("{} of {} begun", progress.settled, progress.requested))
        }
        Phase::Hold => {
            let done = progress.held.as_secs_f64() / view.length.as_secs_f64().max(0.001);
            ("hold ", done, format!("{:.0} s of {:.0} s", progress.held.as_secs_f64(), view.length.as_secs_f64()))
        }
        _ => ("drain", 1.0, format!("{} open", progress.open)),
    };
    let room = usize::from(width).saturating_sub(name.len() + text.len() + 4);
    let filled = (done.clamp(0.0, 1.0) * room as f64) as usize;
    Line::from(vec![
        Span::raw(format!("{name} ")),
        Span::styled("━".repeat(filled), view.style(Color::Cyan)),
        Span::styled("╌".repeat(room - filled), view.style(Color::DarkGray)),
        Span::raw(format!("  {text}")),
    ])
}

fn draw_numbers(frame: &mut Frame<'_>, view: &View, progress: &Progress, area: Rect) {
    let [held, came] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
    let over = if progress.ended > 0 { format!(", {} over", progress.ended) } else { String::new() };
    let title = format!(" Streams held  {} of {}{over} ", progress.open, progress.requested);
    sparkline(frame, view, held, title, &view.held);
    let title =
        format!(" A second  {:.0} events, {:.0} heartbeats ", view.events_per_second, view.heartbeats_per_second);
    sparkline(frame, view, came, title, &view.events);
}

fn sparkline(frame: &mut Frame<'_>, view: &View, area: Rect, title: String, looks: &[u64]) {
    let block = Block::bordered().title(title);
    let width = usize::from(block.inner(area).width);
    let newest = &looks[looks.len().saturating_sub(width)..];
    frame.render_widget(Sparkline::default().block(block).style(view.style(Color::Cyan)).data(newest), area);
}

fn draw_silences(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let block = Block::bordered().title(" Silent now for ");
    let inner = block.inner(area);
    let most = view.seen.silent.iter().copied().max().unwrap_or(0).max(1);
    let room = usize::from(inner.width).saturating_sub(30) as f64;
    let lines: Vec<_> = view
        .seen
        .silent
        .iter()
        .enumerate()
        .map(|(bin, streams)| {
            let name = match SEEN_BELOW.get(bin) {
                Some(bound) => format!("below {}", seconds(*bound)),
                None => format!("{} or more", seconds(SEEN_BELOW[SEEN_BELOW.len() - 1])),
            };
            let width = (*streams as f64 / most as f64 * room).ceil() as usize;
            // From ten seconds on the first hops cut.
            let color = if bin > CUT_FROM { Color::Red } else { Color::Cyan };
            Line::from(vec![
                Span::raw(format!("{name:>16} {streams:>9}  ")),
                Span::styled("■".repeat(width), view.style(color)),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_worst(frame: &mut Frame<'_>, view: &View, area: Rect) {
    let block = Block::bordered().title(" Most silent streams ");
    let rows = view
        .seen
        .worst
        .iter()
        .map(|stream| Row::new([format!("#{}", stream.number), seconds(stream.silence), seconds(stream.longest)]));
    let widths = [Constraint::Length(12), Constraint::Length(14), Constraint::Length(14)];
    let head = Row::new(["stream", "silent now", "longest before"]).style(view.style(Color::DarkGray));
    frame.render_widget(Table::new(rows, widths).header(head).block(block), area);
}

fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if time < Duration::from_secs(1) {
        format!("{:.0} ms", seconds * 1e3)
    } else if time.subsec_nanos() == 0 {
        format!("{seconds:.0} s")
    } else {
        format!("{seconds:.1} s")
    }
}

/// The last bin in which no well-known hop cuts.
const CUT_FROM: usize = 5;

/// As many looks as the widest terminal has columns for.
const LOOKS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn drawn(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn nothing_is_drawn_before_anything_was_told_and_no_size_is_too_small() {
        let view = View::new("http://x/".to_owned(), Duration::from_secs(60));
        assert!(!drawn(&view, 80, 24).contains("heartline"));
        for (width, height) in [(1, 1), (10, 3), (40, 12), (300, 100)] {
            drawn(&view, width, height);
        }
    }

    #[test]
    fn a_glance_tells_what_is_held_what_came_and_who_is_silent() {
        let told = serde_json::json!({
            "phase": "Hold", "elapsed": { "secs": 12, "nanos": 0 }, "held": { "secs": 10, "nanos": 0 },
            "requested": 900, "open": 897, "settled": 900, "ended": 3, "heartbeats": 40, "events": 500,
        });
        let progress: Progress = serde_json::from_value(told).unwrap();
        let mut seen = Seen::default();
        (seen.silent[2], seen.silent[6]) = (895, 2);
        let mut view = View::new("http://x/".to_owned(), Duration::from_secs(60));
        view.note(progress, seen, 52.0, 4.0);
        let screen = drawn(&view, 100, 36);
        for words in [
            "heartline load  http://x/",
            "10 s of 60 s",
            "Streams held  897 of 900, 3 over",
            "52 events, 4 heartbeats",
            "below 1 s       895  ■■■",
            "below 30 s         2  ■",
            "q or Ctrl-C",
        ] {
            assert!(screen.contains(words), "{words} is missing:\n{screen}");
        }
    }
}
