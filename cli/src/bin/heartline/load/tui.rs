//! The live screen of `heartline load --tui`: streams held, events a second, silences now, the worst streams.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Stderr};
use std::sync::Arc;
use std::time::Duration;

use heartline_cli::load::{Live, Phase, Progress, SEEN_BELOW, Seen};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use tokio::sync::Notify;

use super::tui_view::{self, View};
use crate::resolve::Host;

/// The screen; leaves the terminal as it was when dropped.
pub(crate) struct Tui {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    live: Arc<Live>,
    quit: Arc<Notify>,
    view: View,
    /// What was told in the last second or so, oldest first.
    told: VecDeque<Progress>,
}

impl Tui {
    /// Takes the terminal over.
    pub(crate) fn enter(
        host: &Host,
        url: String,
        length: Duration,
        live: Arc<Live>,
        quit: Arc<Notify>,
    ) -> io::Result<Self> {
        enable_raw_mode()?;
        // From here on a drop undoes it all.
        let terminal = Terminal::new(CrosstermBackend::new(io::stderr()));
        let mut terminal = terminal.inspect_err(|_| drop(disable_raw_mode()))?;
        let entered = execute!(io::stderr(), EnterAlternateScreen).and_then(|()| terminal.clear());
        let mut view = View::new(url, length);
        view.colors = host.colors;
        let tui = Self { terminal, live, quit, view, told: VecDeque::new() };
        entered.map(|()| tui)
    }

    /// Draws how far the run is, and looks for a key that ends it.
    pub(crate) fn show(&mut self, progress: Progress) {
        while let Ok(true) = event::poll(Duration::ZERO) {
            if let Ok(Event::Key(key)) = event::read()
                && ends(key)
            {
                self.view.is_ending = true;
                self.quit.notify_one();
            }
        }
        self.told.push_back(progress);
        while self.told.len() > 2 && progress.elapsed - self.told[1].elapsed >= RATED_OVER {
            self.told.pop_front();
        }
        let first = self.told[0];
        let seconds = (progress.elapsed - first.elapsed).as_secs_f64();
        let rate =
            |now: u64, before: u64| if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 };
        let seen = match progress.phase {
            Phase::Ramp | Phase::Hold => self.live.look(progress.elapsed, WORST),
            _ => Seen::default(),
        };
        let (events, heartbeats) = (rate(progress.events, first.events), rate(progress.heartbeats, first.heartbeats));
        self.view.note(progress, seen, events, heartbeats);
        // A terminal that is gone takes its hang-up signal along; there is nothing to say here.
        let _ = self.terminal.draw(|frame| tui_view::draw(frame, &self.view));
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        let _ = disable_raw_mode();
        let _ = execute!(io::stderr(), LeaveAlternateScreen);
        let _ = self.terminal.show_cursor();
    }
}

impl fmt::Debug for Tui {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tui").field("view", &self.view).finish_non_exhaustive()
    }
}

fn ends(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

/// Rates are those of the last second: shorter ones jump.
const RATED_OVER: Duration = Duration::from_secs(1);

/// How many of the worst streams are looked for: more than a tall terminal shows.
const WORST: usize = 40;

const _: () = assert!(SEEN_BELOW.len() < 16, "a line each on a terminal of 24 lines");
