//! One stream's channel: heartline's cell against general mpsc channels that carry the same orders; time by criterion,
//! heap by a counting allocator. Called by `main`.
//!
//! With any of the others a mark of one byte keeps the bound (a cloned futures sender has a slot of its own), and the
//! ticks that the sweep reads still need a cell; both are counted in.

use std::alloc::System;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Waker};

use criterion::Criterion;
use futures::Stream;
use futures::channel::mpsc as futures_mpsc;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::mpsc as tokio_mpsc;

use crate::cell;

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What the sweep reads and the body writes, beside a channel that only wakes.
#[derive(Default)]
struct Marks {
    pending: AtomicBool,
    _content: AtomicU32,
    _wire: AtomicU32,
    _beats: AtomicU32,
}

/// Prints the heap of each channel with both of its ends, after a first heartbeat has gone through.
pub(crate) fn print_heap(count: usize) {
    println!("\nheap per channel, both ends and the sweep's marks, after one heartbeat; {count} channels");
    let print = |name: &str, bytes: usize| println!("{name:40} {bytes:>8} B");
    print("heartline's cell", heap(count, cell_pair, cell_round));
    print("futures unbounded of () and marks", heap(count, unbounded_pair, unbounded_round));
    print("futures channel(0) of () and marks", heap(count, bounded_pair, bounded_round));
    print("tokio channel(1) of () and marks", heap(count, tokio_pair, tokio_round));
}

/// Times one heartbeat: ordered, woken, obeyed, and the next one waited for.
pub(crate) fn order_and_obey(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("order_and_obey");
    let mut pair = cell_pair();
    group.bench_function("cell", |bencher| bencher.iter(|| cell_round(&mut pair)));
    let mut pair = unbounded_pair();
    group.bench_function("futures_unbounded", |bencher| bencher.iter(|| unbounded_round(&mut pair)));
    let mut pair = bounded_pair();
    group.bench_function("futures_bounded", |bencher| bencher.iter(|| bounded_round(&mut pair)));
    let mut pair = tokio_pair();
    group.bench_function("tokio_bounded", |bencher| bencher.iter(|| tokio_round(&mut pair)));
    group.finish();
}

type CellPair = (cell::Sender<()>, cell::Receiver<()>);

fn cell_pair() -> CellPair {
    cell::channel((), 0)
}

fn cell_round((sender, receiver): &mut CellPair) {
    let ordered = sender.clone();
    assert_eq!(ordered.order_beat(), cell::Ordered::Fresh);
    ordered.wake();
    drop(ordered);
    assert!(receiver.poll_orders(Waker::noop()).is_beat());
    receiver.take_beat();
    assert!(receiver.poll_orders(Waker::noop()).is_empty());
}

type UnboundedPair = (futures_mpsc::UnboundedSender<()>, futures_mpsc::UnboundedReceiver<()>, Arc<Marks>);

fn unbounded_pair() -> UnboundedPair {
    let (sender, receiver) = futures_mpsc::unbounded();
    (sender, receiver, Arc::default())
}

fn unbounded_round((sender, receiver, marks): &mut UnboundedPair) {
    let ordered = sender.clone();
    assert!(!marks.pending.swap(true, Ordering::AcqRel));
    ordered.unbounded_send(()).expect("the receiver lives");
    drop(ordered);
    obey(Pin::new(receiver), marks);
}

type BoundedPair = (futures_mpsc::Sender<()>, futures_mpsc::Receiver<()>, Arc<Marks>);

fn bounded_pair() -> BoundedPair {
    let (sender, receiver) = futures_mpsc::channel(0);
    (sender, receiver, Arc::default())
}

fn bounded_round((sender, receiver, marks): &mut BoundedPair) {
    let mut ordered = sender.clone();
    assert!(!marks.pending.swap(true, Ordering::AcqRel));
    ordered.try_send(()).expect("a clone has a slot of its own");
    drop(ordered);
    obey(Pin::new(receiver), marks);
}

/// The receiving half of a round, the same for both futures channels.
fn obey(mut receiver: Pin<&mut impl Stream<Item = ()>>, marks: &Marks) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(receiver.as_mut().poll_next(&mut context).is_ready());
    marks.pending.store(false, Ordering::Release);
    assert!(receiver.poll_next(&mut context).is_pending());
}

type TokioPair = (tokio_mpsc::Sender<()>, tokio_mpsc::Receiver<()>, Arc<Marks>);

fn tokio_pair() -> TokioPair {
    let (sender, receiver) = tokio_mpsc::channel(1);
    (sender, receiver, Arc::default())
}

fn tokio_round((sender, receiver, marks): &mut TokioPair) {
    let mut context = Context::from_waker(Waker::noop());
    let ordered = sender.clone();
    assert!(!marks.pending.swap(true, Ordering::AcqRel));
    ordered.try_send(()).expect("the slot is free");
    drop(ordered);
    assert!(receiver.poll_recv(&mut context).is_ready());
    marks.pending.store(false, Ordering::Release);
    assert!(receiver.poll_recv(&mut context).is_pending());
}

fn heap<P>(count: usize, pair: fn() -> P, round: fn(&mut P)) -> usize {
    let mut pairs: Vec<P> = Vec::with_capacity(count);
    let region = Region::new(HEAP);
    for _ in 0..count {
        let mut pair = pair();
        round(&mut pair);
        pairs.push(pair);
    }
    let change = region.change();
    (change.bytes_allocated - change.bytes_deallocated) / count
}
