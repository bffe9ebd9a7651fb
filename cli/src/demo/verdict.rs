//! Whether a demo has shown what it is to show, and the plain words for it.
//!
//! Called by the command, which turns it into its last line and its exit code.

use std::fmt;

use super::report::{Report, seconds};

/// The judgement on one [`Report`]; its `Display` is one or two sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict<'a> {
    report: &'a Report,
    fault: Option<Fault>,
}

/// The first condition that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    NothingCut,
    Lost,
    CutAnyway,
    FailedAnyway,
    EventsDiffer,
}

impl<'a> Verdict<'a> {
    /// Judges a report: streams were cut without heartbeats, with them none was cut or failed, and no event differs.
    pub fn of(report: &'a Report) -> Self {
        let Report { without, with, .. } = report;
        let fault = if without.cut == 0 {
            Some(Fault::NothingCut)
        } else if with.cut > 0 {
            Some(Fault::CutAnyway)
        } else if with.failed > 0 {
            Some(Fault::FailedAnyway)
        } else if with.completed < report.streams {
            Some(Fault::Lost)
        } else if !report.events_identical {
            Some(Fault::EventsDiffer)
        } else {
            None
        };
        Self { report, fault }
    }

    /// Returns whether every condition held.
    pub fn is_pass(&self) -> bool {
        self.fault.is_none()
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { streams, without, with, .. } = self.report;
        match self.fault {
            None => write!(
                f,
                "Without heartbeats the gateway cut {} of {streams} streams. With one every {} all {streams} completed, \
                 the longest silence was {}, and every event is the one the engine sent.",
                without.cut,
                seconds(Some(self.report.interval_ms as f64)),
                seconds(with.silence_ms.max),
            ),
            Some(Fault::NothingCut) => write!(
                f,
                "nothing shown: without heartbeats no stream was cut ({} completed, {} failed)",
                without.completed, without.failed,
            ),
            Some(Fault::CutAnyway) => {
                write!(f, "not cured: with heartbeats {} of {streams} streams were cut", with.cut)
            }
            Some(Fault::FailedAnyway) => write!(
                f,
                "not cured: with heartbeats {} of {streams} streams failed for another reason than silence",
                with.failed,
            ),
            Some(Fault::Lost) => write!(
                f,
                "not cured: with heartbeats only {} of {streams} streams were seen to their end",
                with.completed,
            ),
            Some(Fault::EventsDiffer) => {
                f.write_str("not neutral: a completed stream decoded to other events than the engine sent")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::shown;
    use super::*;

    fn fault_of(change: impl FnOnce(&mut Report)) -> String {
        let mut report = shown();
        change(&mut report);
        let verdict = Verdict::of(&report);
        assert!(!verdict.is_pass());
        verdict.to_string()
    }

    #[test]
    fn a_good_run_passes_in_plain_words() {
        let report = shown();
        let verdict = Verdict::of(&report);
        assert!(verdict.is_pass());
        assert_eq!(
            verdict.to_string(),
            "Without heartbeats the gateway cut 126 of 200 streams. With one every 1 s all 200 completed, \
             the longest silence was 1 s, and every event is the one the engine sent."
        );
    }

    #[test]
    fn each_condition_that_fails_is_named() {
        assert!(fault_of(|it| it.without.cut = 0).starts_with("nothing shown"));
        assert!(fault_of(|it| it.with.cut = 1).contains("1 of 200 streams were cut"));
        assert!(fault_of(|it| it.with.failed = 2).contains("2 of 200 streams failed"));
        assert!(fault_of(|it| it.with.completed = 199).contains("only 199 of 200"));
        assert!(fault_of(|it| it.events_identical = false).starts_with("not neutral"));
    }
}
