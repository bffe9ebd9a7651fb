//! The progress of `heartline load` on a terminal; nothing where standard error is none.

use std::time::Duration;

use heartline_cli::load::{Phase, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::resolve::Host;

/// One bar: first the streams that opened, then the time they were held.
#[derive(Debug)]
pub(crate) struct Bar {
    bar: ProgressBar,
    hold: Duration,
}

impl Bar {
    /// Creates the bar, hidden where nobody would see it.
    pub(crate) fn new(host: &Host, streams: usize, hold: Duration) -> Self {
        let target = if host.stderr_is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let template = if host.colors { "{prefix:<6} {bar:30.green} {msg}" } else { "{prefix:<6} {bar:30} {msg}" };
        let style = ProgressStyle::with_template(template).expect("the template above is well formed");
        Self { bar: ProgressBar::with_draw_target(Some(streams as u64), target).with_style(style), hold }
    }

    /// Shows how far the run is.
    pub(crate) fn show(&self, progress: Progress) {
        let Progress { requested, open, settled, ended, heartbeats, events, held, .. } = progress;
        match progress.phase {
            Phase::Ramp => {
                self.draw("ramp", settled as u64, requested as u64, format!("{open} of {requested} streams open"));
            }
            Phase::Hold => {
                let seconds = format!("{:.0} s of {:.0} s", held.as_secs_f64(), self.hold.as_secs_f64());
                let counts = format!("{open} open, {ended} ended, {heartbeats} heartbeats, {events} events");
                self.draw("hold", millis(held), millis(self.hold), format!("{seconds}: {counts}"));
            }
            _ => self.draw("drain", 1, 1, format!("closing {open} streams")),
        }
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn draw(&self, phase: &'static str, position: u64, length: u64, message: String) {
        if self.bar.prefix() != phase {
            self.bar.set_prefix(phase);
        }
        self.bar.set_length(length);
        self.bar.set_position(position.min(length));
        self.bar.set_message(message);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
