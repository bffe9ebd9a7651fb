//! Case 24: metrics grow without bound. The memory of a run of `heartline_cli::load` follows from its streams, never from how
//! much they say. A test crate of its own, because the allocator it counts with is the whole process's.
#[allow(dead_code, reason = "each test takes the steps it needs")]
mod scripted;

use std::alloc::System;
use std::time::Duration;

use heartline_cli::load::{self, Settings, Shape};
use scripted::Step::{Beat, Hang};
use scripted::{EVENTS, Server, chunk, ok};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many bytes are allocated and not given back.
fn live_bytes() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

#[tokio::test]
async fn metrics_do_not_grow_with_what_the_streams_say() {
    let server =
        Server::start(vec![vec![ok(EVENTS), chunk("data: 1\n\n"), Beat(b"data: token\n\n\n", 100_000, 1), Hang]]).await;
    let mut settings = Settings::new(format!("http://{}/", server.address).parse().unwrap());
    settings.streams = 20;
    settings.rate_per_second = 1_000;
    settings.shape = Shape::Hold(Duration::from_millis(1_500));
    let mut marks = Vec::new();
    let report = load::run(settings, |now| marks.push((now.events, live_bytes()))).await.unwrap();
    // From the first thousand events on, when every stream has its decoder's buffers.
    let mut settled = marks.iter().skip_while(|(events, _)| *events < 1_000);
    let (early_events, early) = *settled.next().expect("a thousand events come in time");
    let (late_events, late) = *settled.last().expect("and more after them");
    assert!(late_events >= early_events * 2, "{early_events}, then {late_events}");
    assert!(late - early < 16 * 1_024, "{early} B after {early_events} events, {late} B after {late_events}");
    assert!(report.events.total >= late_events);
}
