//! I4: one interval task, started with the first stream, gone after the last, and alive wherever streams are.

mod common;

use common::{Silent, heart, pass, read_ready, seconds};
use heartline::Heartline;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::Instant;

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

fn fast() -> Heartline {
    Heartline::builder().interval(Duration::from_millis(100)).build().expect("valid")
}

/// Waits in real time, for at most ten seconds, until `done`.
async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < seconds(10), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn one_task_however_many_streams_and_none_after_the_last() {
    let heart = heart(30);
    for _ in 0..3 {
        let mut bodies: Vec<_> = (0..1_000).map(|_| heart.keep_alive(Silent)).collect();
        assert_eq!(tasks(), 1);
        pass(seconds(30)).await;
        assert_eq!(tasks(), 1);
        assert!(bodies.iter_mut().all(|body| read_ready(body) == "\n"));
        drop(bodies);
        pass(seconds(4)).await;
        assert_eq!(tasks(), 0, "gone at the first visit without streams");
    }
}

#[tokio::test(start_paused = true)]
async fn broadcasters_are_separate_and_clones_are_one() {
    let (one, two) = (heart(30), heart(60));
    let (_a, _b) = (one.keep_alive(Silent), two.keep_alive(Silent));
    let _c = Clone::clone(&one).keep_alive(Silent);
    assert_eq!((one.active(), two.active(), tasks()), (2, 1, 2));
    assert_eq!(Heartline::global().interval(), seconds(30));
}

/// A runtime that shuts down hands the task over to another that has streams.
#[test]
fn the_task_moves_when_its_runtime_shuts_down() {
    let heart = fast();
    let first = current_thread();
    let second = current_thread();
    let held = first.block_on(async { heart.keep_alive(Silent) }); // the task is here
    let mut body = second.block_on(async { heart.keep_alive(Silent) });
    assert_eq!((first.handle().metrics().num_alive_tasks(), second.handle().metrics().num_alive_tasks()), (1, 0));
    drop(first);
    drop(held);
    assert_eq!(second.handle().metrics().num_alive_tasks(), 1);
    second.block_on(eventually("a heartbeat from the successor", || read_ready(&mut body) == "\n"));
}

/// With no runtime left to move to, the next stream starts a task again.
#[test]
fn the_task_starts_again_when_every_runtime_has_gone() {
    let heart = fast();
    let first = current_thread();
    let _orphan = first.block_on(async { heart.keep_alive(Silent) });
    drop(first);
    let second = current_thread();
    second.block_on(async {
        let mut body = heart.keep_alive(Silent);
        assert_eq!(tasks(), 1);
        eventually("a heartbeat", || read_ready(&mut body) == "\n").await;
    });
}

/// A current-thread runtime between two `block_on`s stops silently: a registration elsewhere takes the lease over, and the
/// old task ends when its runtime runs again.
#[test]
fn a_task_whose_runtime_nobody_drives_is_replaced() {
    let heart = fast();
    let parked = current_thread();
    let driven = current_thread();
    let mut parked_body = parked.block_on(async { heart.keep_alive(Silent) });
    driven.block_on(async {
        let mut body = heart.keep_alive(Silent);
        assert_eq!(tasks(), 0, "the lease is fresh");
        // Registrations go on; the one that finds the lease two intervals old takes it.
        eventually("a takeover", || {
            drop(heart.keep_alive(Silent));
            tasks() == 1
        })
        .await;
        eventually("a heartbeat", || read_ready(&mut body) == "\n").await;
        // The successor serves the parked runtime's streams too.
        eventually("a heartbeat for the other", || read_ready(&mut parked_body) == "\n").await;
    });
    assert_eq!(parked.handle().metrics().num_alive_tasks(), 1);
    parked.block_on(eventually("the old task's end", || tasks() == 0));
    assert_eq!(driven.handle().metrics().num_alive_tasks(), 1);
}

/// A runtime that is dropped with streams in it leaves none behind.
#[test]
fn a_runtime_that_shuts_down_takes_its_streams_along() {
    let heart = fast();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    for _ in 0..100 {
        let body = runtime.block_on(async { heart.keep_alive(Silent) });
        runtime.spawn(async move {
            let _held = body;
            std::future::pending::<()>().await;
        });
    }
    assert_eq!(heart.active(), 100);
    drop(runtime);
    assert_eq!(heart.active(), 0);
    assert!(heart.streams().is_empty());
}

/// Streams registered from many runtimes at once: still one task in all.
#[test]
fn many_runtimes_share_one_task() {
    let heart = fast();
    let runtimes: Vec<_> = (0..20).map(|_| current_thread()).collect();
    let bodies: Vec<_> = runtimes.iter().map(|runtime| runtime.block_on(async { heart.keep_alive(Silent) })).collect();
    let alive = || runtimes.iter().map(|runtime| runtime.handle().metrics().num_alive_tasks()).sum::<usize>();
    assert_eq!(alive(), 1);
    drop(bodies);
    assert_eq!(heart.active(), 0);
}
