//! A child process: asked in lines, measured through `/proc`, ended when dropped. Used by `lane`, `under_test` and `soak`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::ROLE;

/// A running child.
pub(crate) struct Process {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this binary again in another role.
    pub(crate) fn role(role: &str, arguments: &[String]) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|problem| problem.to_string())?;
        let mut command = Command::new(own);
        command.args(arguments).env(ROLE, role);
        Self::start(&mut command)
    }

    /// Starts any program.
    pub(crate) fn start(command: &mut Command) -> Result<Self, String> {
        let program = command.get_program().display().to_string();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|problem| format!("{program} did not start: {problem}"))?;
        let (Some(commands), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{program} has no pipes"));
        };
        Ok(Self { child, commands, answers: BufReader::new(out) })
    }

    /// The next line it says.
    pub(crate) fn hear(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(count) if count > 0 => Ok(line.trim().to_owned()),
            _ => Err("a child process ended early".into()),
        }
    }

    /// The port at the end of the next line that begins with `words`.
    pub(crate) fn hear_port(&mut self, words: &str) -> Result<u16, String> {
        loop {
            let line = self.hear()?;
            if line.starts_with(words) {
                let port = line.rsplit(':').next().unwrap_or_default();
                return port.parse().map_err(|_| format!("no port: {line}"));
            }
        }
    }

    /// Sends a line; returns the numbers of the answer.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Vec<u64>, String> {
        writeln!(self.commands, "{command}")
            .map_err(|problem| format!("a child process does not listen: {problem}"))?;
        self.hear()?.split(' ').map(|number| number.parse().map_err(|_| format!("no number: {number}"))).collect()
    }

    /// Processor time of it and its children, in ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let time = |task: &Path| {
            let text = std::fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0)
        };
        self.family().iter().flat_map(|&pid| tasks(pid)).map(|task| time(&task)).sum()
    }

    /// Resident bytes of it and its children; memory they share counts more than once, so look at differences.
    pub(crate) fn resident_bytes(&self) -> i64 {
        const PAGE_BYTES: i64 = 4_096;
        let pages = |pid: u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
            text.split(' ').nth(1).and_then(|pages| pages.parse::<i64>().ok()).unwrap_or(0)
        };
        self.family().into_iter().map(pages).sum::<i64>() * PAGE_BYTES
    }

    /// Open descriptors of it.
    pub(crate) fn files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// Asks it to end as an operator would, and waits until it has, or ends it after 5 s.
    pub(crate) fn terminate(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    fn family(&self) -> Vec<u32> {
        let own = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        std::iter::once(own).chain(children.split_whitespace().filter_map(|pid| pid.parse().ok())).collect()
    }
}

fn tasks(pid: u32) -> Vec<std::path::PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    tasks.map_or(Vec::new(), |tasks| tasks.flatten().map(|task| task.path()).collect())
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
