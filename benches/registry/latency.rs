//! How long the slowest registration takes while many streams are swept, against no sweep and against a plain walk with
//! `DashMap::iter`; printed by `main`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use heartline::Heartline;
use nix::sys::resource::{UsageWho, getrusage};

use crate::{Silent, broadcaster, hold};

/// How long registrations are timed in one trial: several sweeps at the shortest interval.
const TRIAL: Duration = Duration::from_millis(500);

/// Trials; the median of their worst cases is printed.
const TRIALS: usize = 9;

/// Time between two registrations.
const PAUSE: Duration = Duration::from_micros(5);

/// Prints the table.
pub(crate) fn print(population: usize) {
    println!(
        "register while {population} streams are swept, µs: median of {TRIALS} trials of {} ms",
        TRIAL.as_millis()
    );
    println!("{:40} {:>8} {:>8} {:>8}", "", "p50", "p99.9", "worst");
    for (name, interval) in [
        ("no sweep", Duration::from_secs(24 * 60 * 60)),
        ("heartline, a visit every 12.5 ms", Duration::from_millis(100)),
    ] {
        let (runtime, heart) = broadcaster(interval);
        let _held = hold(&runtime, &heart, population);
        let _entered = runtime.enter();
        report(name, || register(&heart));
    }
    let map: Arc<DashMap<u64, Arc<()>>> = Arc::new((0..population as u64).map(|key| (key, Arc::default())).collect());
    let done = Arc::new(AtomicBool::new(false));
    let walker = {
        let (map, done) = (Arc::clone(&map), Arc::clone(&done));
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for entry in map.iter() {
                    std::hint::black_box(Arc::clone(entry.value()));
                }
                thread::sleep(Duration::from_micros(12_500));
            }
        })
    };
    let mut key = population as u64;
    report("DashMap::iter, a walk every 12.5 ms", || {
        key += 1;
        let begun = Instant::now();
        map.insert(key, Arc::default());
        let taken = begun.elapsed();
        map.remove(&key);
        taken
    });
    done.store(true, Ordering::Relaxed); // a flag; the thread's end is what publishes
    walker.join().expect("the walker does not panic");
}

/// The time of one registration; its removal is not counted.
fn register(heart: &Heartline) -> Duration {
    let begun = Instant::now();
    let body = heart.keep_alive(Silent);
    let taken = begun.elapsed();
    drop(body);
    taken
}

/// Times `insert` over all trials. A sample during which the kernel took the core away is left out: how often that happens
/// is the machine's affair. A thread that sleeps for a lock gives the core away, which the kernel counts apart: such a
/// sample stays, whatever else happened to it.
fn report(name: &str, mut insert: impl FnMut() -> Duration) {
    let mut trials: Vec<[f64; 3]> = (0..TRIALS)
        .map(|_| {
            let begun = Instant::now();
            let mut taken = Vec::with_capacity(1 << 20);
            while begun.elapsed() < TRIAL {
                let (taken_away, given) = switches();
                let sample = insert();
                let now = switches();
                if now.0 == taken_away || now.1 != given {
                    taken.push(sample);
                }
                let resumed = Instant::now();
                while resumed.elapsed() < PAUSE {
                    std::hint::spin_loop();
                }
            }
            taken.sort_unstable();
            let at = |quantile: f64| taken[((taken.len() - 1) as f64 * quantile) as usize].as_nanos() as f64 / 1_000.0;
            [at(0.5), at(0.999), at(1.0)]
        })
        .collect();
    let [p50, p99_9, worst] = [0, 1, 2].map(|figure| {
        trials.sort_by(|one, other| one[figure].total_cmp(&other[figure]));
        trials[TRIALS / 2][figure]
    });
    println!("{name:40} {p50:>8.2} {p99_9:>8.2} {worst:>8.2}");
}

/// How often this thread lost its core, and how often it gave it away to wait.
fn switches() -> (i64, i64) {
    getrusage(UsageWho::RUSAGE_THREAD)
        .map_or((0, 0), |usage| (usage.involuntary_context_switches(), usage.voluntary_context_switches()))
}
