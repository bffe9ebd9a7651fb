//! What a run shows while it goes on: a live screen, a bar, or plain lines where standard error is no terminal.

use std::sync::Arc;
use std::time::Duration;

use heartline_cli::load::{Live, Phase, Progress, Settings};
use tokio::sync::Notify;

use super::progress::Bar;
use super::tui::Tui;
use crate::resolve::Host;

/// One of the three.
#[derive(Debug)]
pub(crate) enum Screen {
    /// Until [`Screen::clear`].
    Live(Box<Tui>),
    /// Until [`Screen::clear`].
    Bar(Bar),
    /// A line now and then; when the last one was said.
    Lines(Duration),
}

/// Which one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The live screen, where there is a terminal.
    Live,
    /// One line.
    Bar,
}

impl Screen {
    /// Creates what fits the host; `quit` is told when the user asks for the end on the live screen.
    ///
    /// # Errors
    ///
    /// One line, when the terminal cannot be drawn on.
    pub(crate) fn new(host: &Host, wanted: Wanted, settings: &mut Settings, quit: Arc<Notify>) -> Result<Self, String> {
        if !host.stderr_is_terminal {
            return Ok(Self::Lines(Duration::ZERO));
        }
        if wanted == Wanted::Bar {
            return Ok(Self::Bar(Bar::new(host, settings.streams, settings.shape.length())));
        }
        let live = Arc::new(Live::default());
        settings.live = Some(Arc::clone(&live));
        let tui = Tui::enter(host, settings.url.to_string(), settings.shape.length(), live, quit);
        tui.map(|tui| Self::Live(Box::new(tui))).map_err(|error| format!("the terminal cannot be drawn on: {error}"))
    }

    /// Shows how far the run is.
    pub(crate) fn show(&mut self, progress: Progress) {
        match self {
            Self::Live(tui) => tui.show(progress),
            Self::Bar(bar) => bar.show(progress),
            Self::Lines(said) => {
                if progress.elapsed >= *said + SAID_EVERY {
                    *said = progress.elapsed;
                    eprintln!("{}", line(&progress));
                }
            }
        }
    }

    /// Takes it off the terminal.
    pub(crate) fn clear(self) {
        if let Self::Bar(bar) = &self {
            bar.clear();
        }
        // The live screen leaves as it is dropped.
    }
}

fn line(progress: &Progress) -> String {
    let Progress { phase, elapsed, requested, open, ended, heartbeats, events, .. } = *progress;
    let phase = match phase {
        Phase::Ramp => "ramp",
        Phase::Hold => "hold",
        _ => "drain",
    };
    format!(
        "{:>5.0} s  {phase:<5}  {open} of {requested} open, {ended} over, {heartbeats} heartbeats, {events} events",
        elapsed.as_secs_f64()
    )
}

/// Seldom, so that a log of an hour stays readable.
const SAID_EVERY: Duration = Duration::from_secs(10);
