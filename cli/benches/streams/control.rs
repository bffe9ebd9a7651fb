//! What a child process says about itself, and the loop that answers its parent; used by `server`, `floor` and `client`.

use std::alloc::System;
use std::io::{BufRead, Write};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts what every process of this bench has on its heap: two relaxed additions per call of the allocator.
#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

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

/// User and system time of this process.
pub(crate) fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("getrusage of the own process cannot fail");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Bytes on the heap, as requested from the allocator and not given back.
pub(crate) fn heap_bytes() -> i64 {
    let stats = HEAP.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// Calls of the allocator that asked for memory, so far.
pub(crate) fn allocations() -> u64 {
    let stats = HEAP.stats();
    (stats.allocations + stats.reallocations) as u64
}

/// Resident bytes of this process, from `/proc/self/statm`.
pub(crate) fn rss_bytes() -> i64 {
    const PAGE_BYTES: i64 = 4_096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<i64>().ok()).unwrap_or(0) * PAGE_BYTES
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a machine share.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has CLOCK_MONOTONIC");
    u64::try_from(now.num_nanoseconds()).unwrap_or(0)
}
