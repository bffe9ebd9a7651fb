//! The loop in which a child process answers its parent, and the clock all of them share; used by `engine`, `client` and
//! `churn`.

use std::io::{BufRead, Write};

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Answers the parent's lines until its pipe closes, then ends the process.
pub(crate) fn answer(mut reply: impl FnMut(&str) -> String) -> ! {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        say(&reply(line.trim()));
    }
    std::process::exit(0)
}

/// Writes one line to the parent. A parent that has gone is noticed by the next read.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a machine share.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has CLOCK_MONOTONIC");
    u64::try_from(now.num_nanoseconds()).unwrap_or(0)
}
