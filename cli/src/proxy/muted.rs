//! A waker that keeps a task from waking itself: what happens while the task polls is noted and looked at before it sleeps.
//! Used by `direct`.
//!
//! A connection and the body that it fills wake each other although one task polls both; each such wake would poll the whole
//! client connection once more, for every event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// The waker of one task, as long as that stays the same.
#[derive(Debug, Default)]
pub(super) struct Muted {
    current: Option<(Arc<Inner>, Waker)>,
}

#[derive(Debug)]
struct Inner {
    task: Waker,
    state: AtomicU8,
}

impl Muted {
    /// Polls with a muted waker, again for as long as a wake came while it was polled.
    ///
    /// No wake is lost: one that comes while `poll` runs is seen before this returns `Pending`.
    pub(super) fn poll<T>(&mut self, cx: &Context<'_>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let (inner, waker) = match &mut self.current {
            Some((inner, waker)) if inner.task.will_wake(cx.waker()) => (&*inner, &*waker),
            current => {
                let inner = Arc::new(Inner { task: cx.waker().clone(), state: AtomicU8::new(ASLEEP) });
                let waker = Waker::from(Arc::clone(&inner));
                let (inner, waker) = current.insert((inner, waker));
                (&*inner, &*waker)
            }
        };
        let mut cx = Context::from_waker(waker);
        // Bounded like the work itself: a wake without work comes once for each message that passes.
        loop {
            inner.state.store(POLLING, Ordering::SeqCst); // pairs with `wake_by_ref`
            let polled = poll(&mut cx);
            // Whoever wakes after this wakes the task itself.
            let was = inner.state.swap(ASLEEP, Ordering::SeqCst); // pairs with `wake_by_ref`
            if polled.is_ready() || was != WOKEN {
                return polled;
            }
        }
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Either the poll is still going on and will see this mark, or it is not and the task is woken.
        let noted = self.state.compare_exchange(POLLING, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if noted == Err(ASLEEP) {
            self.task.wake_by_ref();
        }
    }
}

/// Nobody polls: a wake wakes the task.
const ASLEEP: u8 = 0;
/// The task polls: a wake is noted.
const POLLING: u8 = 1;
/// A wake came while the task polled.
const WOKEN: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_wake_from_inside_polls_again_and_one_from_outside_wakes_the_task() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let (mut muted, mut polls, mut kept) = (Muted::default(), 0, None);
        let polled: Poll<()> = muted.poll(&Context::from_waker(&waker), |cx| {
            polls += 1;
            kept = Some(cx.waker().clone());
            if polls < 3 {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, task.0.load(Ordering::Relaxed)), (3, 0));
        kept.expect("polled").wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn what_is_ready_is_returned_at_once() {
        let polled = Muted::default().poll(&Context::from_waker(Waker::noop()), |cx| {
            cx.waker().wake_by_ref();
            Poll::Ready(7)
        });
        assert_eq!(polled, Poll::Ready(7));
    }
}
