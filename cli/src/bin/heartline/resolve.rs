//! What this host is: looked at once at the start, then passed to every command.

use std::io::IsTerminal;

/// What the commands need to know of the terminal and of the limits of this process.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    /// Standard error is a terminal, so progress may be drawn there.
    pub(crate) stderr_is_terminal: bool,
    /// Colours are wanted on standard error: it is a terminal, and `NO_COLOR` is unset or empty.
    pub(crate) colors: bool,
    /// How many files this process may hold open, after the soft limit was raised to the hard one.
    pub(crate) open_files_max: u64,
}

impl Host {
    /// Looks at the host and raises the soft limit on open files to the hard one.
    pub(crate) fn probe() -> Self {
        let stderr_is_terminal = std::io::stderr().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { stderr_is_terminal, colors: stderr_is_terminal && !no_color, open_files_max: raise_open_files() }
    }

    /// Refuses a run that would hold `files` open at once.
    ///
    /// # Errors
    ///
    /// One line that names the limit and how to lift it.
    pub(crate) fn require_open_files(&self, files: u64) -> Result<(), String> {
        if files <= self.open_files_max {
            return Ok(());
        }
        Err(format!(
            "this run needs {files} open files and the limit here is {}; raise it with 'ulimit -Hn {files}' as root, \
             or ask for fewer streams",
            self.open_files_max
        ))
    }
}

/// Raises the soft limit to the hard one; where that is refused the soft limit stands.
fn raise_open_files() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX)
        .or_else(|_| rlimit::Resource::NOFILE.get_soft())
        .unwrap_or(OPEN_FILES_UNKNOWN)
}

/// Assumed where the limit cannot be read: the usual soft limit of Linux.
const OPEN_FILES_UNKNOWN: u64 = 1_024;

#[cfg(test)]
mod tests {
    use super::Host;

    #[test]
    fn too_many_open_files_are_refused_with_the_fix() {
        let host = Host { stderr_is_terminal: false, colors: false, open_files_max: 1_000 };
        assert_eq!(host.require_open_files(1_000), Ok(()));
        let message = host.require_open_files(1_001).unwrap_err();
        assert!(message.contains("1001 open files") && message.contains("ulimit -Hn 1001"), "{message}");
    }

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let host = Host::probe();
        assert_eq!(host.open_files_max, rlimit::Resource::NOFILE.get_soft().unwrap());
    }
}
