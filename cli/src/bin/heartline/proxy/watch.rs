//! Notices that the settings file has changed, by looking at it now and then. Asked by `run`.
//!
//! Looking costs a read of a small file and works on every file system, also where a Kubernetes ConfigMap is swapped by a
//! link, of which nothing tells.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::sleep;

/// The file as it was last taken.
#[derive(Debug)]
pub(super) struct Watch {
    file: PathBuf,
    every: Duration,
    taken: Option<u64>,
    last: Option<u64>,
}

impl Watch {
    /// Takes the file as it is now, to be looked at `every` so often.
    pub(super) fn new(file: PathBuf, every: Duration) -> Self {
        let now = digest(&file);
        Self { file, every, taken: now, last: now }
    }

    /// Is ready when the file differs from the one last taken and has been the same at two looks, so that one that is
    /// being written is not read. A file that is missing is waited for.
    ///
    /// Cancel safe: the wait begins again.
    pub(super) async fn changed(&mut self) {
        loop {
            sleep(self.every).await;
            if self.look() {
                return;
            }
        }
    }

    /// One look.
    fn look(&mut self) -> bool {
        let now = digest(&self.file);
        let settled = now == self.last;
        self.last = now;
        let changed = settled && now.is_some() && now != self.taken;
        if changed {
            self.taken = now;
        }
        changed
    }
}

/// What the file holds, in a number; `None` when it cannot be read.
fn digest(file: &PathBuf) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    std::fs::read(file).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_once_it_has_settled() {
        let file = std::env::temp_dir().join(format!("heartline-watch-{}", std::process::id()));
        std::fs::write(&file, "a").unwrap();
        let mut watch = Watch::new(file.clone(), Duration::from_secs(1));
        assert!(!watch.look());
        std::fs::write(&file, "").unwrap();
        assert!(!watch.look(), "seen once");
        std::fs::write(&file, "b").unwrap();
        assert!(!watch.look(), "still being written");
        assert!(watch.look());
        assert!(!watch.look(), "told once");
        std::fs::remove_file(&file).unwrap();
        assert!(!watch.look() && !watch.look(), "waited for");
        std::fs::write(&file, "b").unwrap();
        assert!(!watch.look() && !watch.look(), "as it was taken");
        std::fs::remove_file(&file).unwrap();
    }
}
