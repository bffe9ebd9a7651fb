//! Validated settings: a [`Builder`] collects them, and a configuration that exists is valid. Used by every room above.

use crate::api::ErrorShape;
use crate::bytes::content::Watch;
use crate::error::Error;
use crate::forms::format::Format;
use crate::forms::heartbeat::Form;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// When a live stream is given a heartbeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cadence {
    /// Once an interval, whatever else the stream sends. Cheap, steady, and what a reader of heartbeats expects.
    #[default]
    EveryTick,
    /// Only when nothing else went out for 0.75 to 1 interval, so that a busy stream carries no extra byte.
    IdleOnly,
}

/// Settings of a [`Heartline`](crate::Heartline); made by [`Heartline::builder`](crate::Heartline::builder).
///
/// ```
/// use heartline::{Cadence, Heartline};
/// use std::time::Duration;
///
/// let heart = Heartline::builder()
///     .interval(Duration::from_secs(30))
///     .cadence(Cadence::IdleOnly)
///     .max_silence(Duration::from_secs(15 * 60))
///     .build()?;
/// assert_eq!(heart.active(), 0);
/// # Ok::<(), heartline::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    pub(crate) interval: Duration,
    pub(crate) cadence: Cadence,
    pub(crate) form: Form,
    pub(crate) max_silence: Option<Duration>,
    pub(crate) max_lifetime: Option<Duration>,
    pub(crate) lifetime_jitter: Duration,
    pub(crate) error_shape: Option<ErrorShape>,
    pub(crate) drain_abort_after: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            interval: INTERVAL,
            cadence: Cadence::default(),
            form: Form::default(),
            max_silence: None,
            max_lifetime: None,
            lifetime_jitter: Duration::ZERO,
            error_shape: None,
            drain_abort_after: DRAIN_ABORT_AFTER,
        }
    }
}

impl Builder {
    /// The longest time a live stream stays silent; 30 s by default, 100 ms to 24 h.
    ///
    /// Choose at most half of what the strictest hop on the way allows (`docs/forms.md` lists hops).
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// When heartbeats are due; [`Cadence::EveryTick`] by default.
    pub fn cadence(mut self, cadence: Cadence) -> Self {
        self.cadence = cadence;
        self
    }

    /// The heartbeat's bytes between events; [`Form::newline`] by default. A stream may have its own.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Ends a stream that sent no *content* for this long, whoever wrote heartbeats; off by default, at least one interval.
    ///
    /// Comments, blank lines, `ping` events and chunks with empty `choices` are not content. Overshoots by at most an
    /// eighth of the interval. Watching for content reads every byte of the stream, which plain keep-alive does not.
    pub fn max_silence(mut self, max_silence: Duration) -> Self {
        self.max_silence = Some(max_silence);
        self
    }

    /// Ends a stream that lived this long; off by default, at least one interval.
    ///
    /// The stream ends at its next event boundary; one that reaches none within a further interval is aborted.
    pub fn max_lifetime(mut self, max_lifetime: Duration) -> Self {
        self.max_lifetime = Some(max_lifetime);
        self
    }

    /// Shortens each stream's `max_lifetime` by a share of this, so that streams opened together do not end together.
    pub fn lifetime_jitter(mut self, jitter: Duration) -> Self {
        self.lifetime_jitter = jitter;
        self
    }

    /// The error event of streams that heartline ends; by default it follows the stream's format.
    pub fn error_shape(mut self, shape: ErrorShape) -> Self {
        self.error_shape = Some(shape);
        self
    }

    /// How long, after its grace, a [`drain`](crate::Heartline::drain) waits for event boundaries before it aborts; 5 s by default.
    pub fn drain_abort_after(mut self, limit: Duration) -> Self {
        self.drain_abort_after = limit;
        self
    }

    /// Checks the settings and makes nothing, as [`build`](Self::build) will check them.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build).
    pub fn check(&self) -> Result<(), Error> {
        let Self { interval, .. } = *self;
        if interval.is_zero() {
            return Err(Error::setting(
                "interval is 0, which would flood every stream: set 30s or so, or Form::off() to send no heartbeats",
            ));
        }
        if interval < INTERVAL_MIN {
            return Err(Error::setting(format!(
                "interval {interval:?} is below the minimum of {INTERVAL_MIN:?}: set a longer one"
            )));
        }
        if interval > INTERVAL_MAX {
            return Err(Error::setting(format!(
                "interval {interval:?} is above the maximum of {INTERVAL_MAX:?}: set a shorter one"
            )));
        }
        for (name, limit) in [("max_silence", self.max_silence), ("max_lifetime", self.max_lifetime)] {
            let Some(limit) = limit else { continue };
            if limit < interval {
                return Err(Error::setting(format!(
                    "{name} {limit:?} is below the interval {interval:?}: set at least one interval, or leave it out"
                )));
            }
            if limit > LIMIT_MAX {
                return Err(Error::setting(format!(
                    "{name} {limit:?} is above {LIMIT_MAX:?}: leave it out for no limit"
                )));
            }
        }
        match self.max_lifetime {
            None if !self.lifetime_jitter.is_zero() => {
                Err(Error::setting("lifetime_jitter is set without max_lifetime: set both, or neither"))
            }
            Some(lifetime) if self.lifetime_jitter > lifetime - interval => Err(Error::setting(format!(
                "lifetime_jitter {:?} leaves less than one interval of max_lifetime {lifetime:?}: set a smaller jitter",
                self.lifetime_jitter
            ))),
            _ if self.drain_abort_after > INTERVAL_MAX => Err(Error::setting(format!(
                "drain_abort_after {:?} is above the maximum of {INTERVAL_MAX:?}: set a shorter one",
                self.drain_abort_after
            ))),
            _ => Ok(()),
        }
    }

    /// The time between two visits of the sweep.
    pub(crate) fn visit_period(&self) -> Duration {
        self.interval / VISITS
    }

    /// `duration` in visits, rounded up.
    pub(crate) fn visits(&self, duration: Duration) -> u32 {
        let visits = duration.as_nanos().div_ceil(self.visit_period().as_nanos());
        u32::try_from(visits).unwrap_or(u32::MAX)
    }

    /// The settings of a stream that asks for nothing of its own.
    pub(crate) fn stream(&self) -> StreamConfig {
        StreamConfig {
            format: Format::EventStream,
            form: self.form.clone(),
            label: None,
            error_shape: self.error_shape.clone(),
            failures: Failures::default(),
            watch: if self.max_silence.is_some() { Watch::Content } else { Watch::Bytes },
        }
    }
}

/// What the client of a stream is told when the inner body fails in mid-stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failures {
    /// Nothing but an abort of the response: the body's own error is passed on. Right for a server that reports its errors
    /// inside the stream itself.
    #[default]
    Abort,
    /// At an event boundary one error event in the stream's [`ErrorShape`], then, when the connection has had a chance to
    /// flush it, the abort. For HTTP/1.1.
    ReportThenAbort,
    /// At an event boundary one error event, then a clean end. For HTTP/2, where an abort would overtake the event.
    ReportThenEnd,
}

/// Settings of one stream, shared by all streams that were wrapped alike.
#[derive(Clone, Debug)]
pub(crate) struct StreamConfig {
    pub(crate) format: Format,
    pub(crate) form: Form,
    pub(crate) label: Option<Cow<'static, str>>,
    pub(crate) error_shape: Option<ErrorShape>,
    pub(crate) failures: Failures,
    pub(crate) watch: Watch,
}

impl StreamConfig {
    /// The number that an error event after `data` has to carry, where its shape has one.
    #[inline]
    pub(crate) fn next_sequence(&self, data: &[u8]) -> Option<u32> {
        self.error_shape.as_ref()?.next_sequence(data)
    }

    /// The shape of this stream's error event.
    pub(crate) fn shape(&self) -> ErrorShape {
        self.error_shape.clone().unwrap_or_else(|| ErrorShape::of_format(self.format))
    }

    /// After how many visits without a heartbeat (or without bytes, when only idle streams get one) the next is due;
    /// 0 is never.
    pub(crate) fn due(&self, settings: &Builder) -> u16 {
        if self.form.is_off() {
            return 0;
        }
        let due = match settings.cadence {
            Cadence::EveryTick => VISITS,
            Cadence::IdleOnly => VISITS_IDLE,
        };
        let most = self.form.interval_max().map_or(due, |most| {
            let visits = most.as_nanos() / settings.visit_period().as_nanos();
            u32::try_from(visits).unwrap_or(u32::MAX).clamp(1, due)
        });
        most as u16 // at most VISITS
    }

    /// How many visits later than `due` the first heartbeat comes.
    ///
    /// A JSON document takes none before one whole interval, so that short answers stay untouched (I1); as the first visit
    /// may follow the registration at once, that is one visit more than an interval has.
    pub(crate) fn first_delay(&self, settings: &Builder) -> u32 {
        match self.format {
            Format::Json => (VISITS + 1).saturating_sub(u32::from(self.due(settings))),
            _ => 0,
        }
    }
}

/// A stream's settings as its channel carries them.
pub(crate) type Shared = Arc<StreamConfig>;

/// The origin's own suggestion, half or less of the strictest common hop (nginx and ALB cut after 60 s).
const INTERVAL: Duration = Duration::from_secs(30);
/// Below this a heartbeat comes more often than tokens do, and visits (an eighth of it) reach the timer's resolution.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// No hop waits for longer than minutes; a day is a slip of units.
const INTERVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Thirty days: a longer limit is no limit.
const LIMIT_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Long enough for an engine to finish the event it is writing, short enough for a supervisor's patience.
const DRAIN_ABORT_AFTER: Duration = Duration::from_secs(5);
/// Visits of the sweep in one interval: silence, lifetimes and phases have this resolution (I10).
pub(crate) const VISITS: u32 = 8;
/// An idle stream is due after this many visits: it last sent something 6 to 7 of 8 visits ago, so 0.75 to 0.875 interval,
/// which leaves one visit for a late sweep (I7).
const VISITS_IDLE: u32 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(builder: Builder) -> String {
        builder.check().expect_err("refused").to_string()
    }

    /// Case 3: an interval of 0 floods.
    #[test]
    fn interval_zero_is_refused_and_the_error_says_what_turns_heartbeats_off() {
        assert!(refused(Builder::default().interval(Duration::ZERO)).contains("Form::off()"));
    }

    #[test]
    fn absurd_settings_are_refused() {
        let second = Duration::from_secs(1);
        refused(Builder::default().interval(Duration::from_millis(99)));
        refused(Builder::default().interval(Duration::MAX));
        refused(Builder::default().max_silence(second));
        refused(Builder::default().max_silence(Duration::MAX));
        refused(Builder::default().max_lifetime(second));
        refused(Builder::default().lifetime_jitter(second));
        refused(Builder::default().max_lifetime(second * 60).lifetime_jitter(second * 31));
        refused(Builder::default().drain_abort_after(Duration::MAX));
        Builder::default().max_lifetime(second * 60).lifetime_jitter(second * 30).check().expect("fine");
    }

    #[test]
    fn visits_are_an_eighth_of_the_interval_and_round_up() {
        let builder = Builder::default();
        assert_eq!(builder.visit_period(), Duration::from_millis(3_750));
        assert_eq!(builder.visits(Duration::from_secs(30)), 8);
        assert_eq!(builder.visits(Duration::from_millis(30_001)), 9);
    }

    #[test]
    fn a_ping_is_never_further_apart_than_its_clients_allow() {
        let builder = Builder::default().form(Form::anthropic_ping());
        assert_eq!(builder.stream().due(&builder), 4, "15 s of 30 s");
        let day = builder.interval(INTERVAL_MAX);
        assert_eq!(day.stream().due(&day), 1, "the closest that visits allow");
    }

    #[test]
    fn a_form_that_is_off_is_never_due() {
        let builder = Builder::default().form(Form::off());
        assert_eq!(builder.stream().due(&builder), 0);
    }
}
