//! One server process and the client process that holds its streams: started, asked, and ended by `rounds`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::ROLE;
use crate::settings::{INTERVAL, Settings, Variant};

/// Longest wait for all streams to open.
const OPEN_MAX: Duration = Duration::from_secs(60);

/// A running server with all of its streams.
pub(crate) struct Pair {
    variant: Variant,
    streams: u64,
    /// Dropped before the server, whose end it would report.
    client: Process,
    server: Process,
    /// The server before its first stream.
    empty: ServerFigures,
}

/// What a server says of itself.
#[derive(Clone, Copy)]
pub(crate) struct ServerFigures {
    pub(crate) cpu_us: i64,
    pub(crate) heap_bytes: i64,
    pub(crate) rss_bytes: i64,
    pub(crate) allocations: i64,
}

/// What a client has seen.
#[derive(Clone, Copy)]
pub(crate) struct ClientFigures {
    pub(crate) opened: u64,
    pub(crate) ended: u64,
    pub(crate) heartbeats: u64,
    pub(crate) strange: u64,
    pub(crate) cpu_us: i64,
}

/// One window of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Server time per heartbeat that the client got, in µs.
    pub(crate) cpu_us_per_heartbeat: f64,
    /// Client time per heartbeat, in µs.
    pub(crate) client_us_per_heartbeat: f64,
    /// Calls of the server's allocator per heartbeat.
    pub(crate) allocations_per_heartbeat: f64,
    /// Heartbeats that came, of those that the interval promises.
    pub(crate) delivered: f64,
    /// Heap of the server per stream, in bytes.
    pub(crate) heap_bytes: f64,
    /// Resident bytes of the server per stream.
    pub(crate) rss_bytes: f64,
}

/// Lateness of live tokens in ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p99_9: f64,
    pub(crate) max: f64,
    pub(crate) tokens: u64,
}

impl Pair {
    /// Starts both processes and waits until every stream has had its first byte.
    pub(crate) fn open(settings: &Settings, variant: Variant, live: usize) -> Result<Self, String> {
        let (streams, live) = (settings.streams.to_string(), live.to_string());
        let mut server = Process::start("server", &[variant.name(), &streams, &live, &settings.workers.to_string()])?;
        let hello = server.hear()?;
        let (port, empty) = hello.split_once(' ').ok_or("the server's first line has another shape")?;
        let empty = ServerFigures::of(&numbers(empty)?)?;
        let client = Process::start("client", &[port, &streams, &live])?;
        let mut pair = Self { variant, streams: settings.streams as u64, server, client, empty };
        let begun = Instant::now();
        while pair.seen()?.opened < pair.streams {
            if begun.elapsed() > OPEN_MAX {
                return Err(format!("{}: {} of {} streams opened", variant.name(), pair.seen()?.opened, streams));
            }
            thread::sleep(Duration::from_millis(20));
        }
        // One interval of heartbeats, so that whatever the first one allocates is there.
        thread::sleep(INTERVAL);
        Ok(pair)
    }

    /// Counts the heartbeats of one window and what they cost.
    pub(crate) fn measure(&mut self, window: Duration) -> Result<Window, String> {
        self.wait_for_quiet()?;
        let (server_before, client_before) = (self.server.figures()?, self.seen()?);
        thread::sleep(window);
        let (server, client) = (self.server.figures()?, self.seen()?);
        self.check(client)?;
        let heartbeats = (client.heartbeats - client_before.heartbeats) as f64;
        let per_stream = |now: i64, before: i64| (now - before) as f64 / self.streams as f64;
        Ok(Window {
            cpu_us_per_heartbeat: (server.cpu_us - server_before.cpu_us) as f64 / heartbeats,
            client_us_per_heartbeat: (client.cpu_us - client_before.cpu_us) as f64 / heartbeats,
            allocations_per_heartbeat: (server.allocations - server_before.allocations) as f64 / heartbeats,
            delivered: heartbeats / (self.streams as f64 * window.as_secs_f64() / INTERVAL.as_secs_f64()),
            heap_bytes: per_stream(server.heap_bytes, self.empty.heap_bytes),
            rss_bytes: per_stream(server.rss_bytes, self.empty.rss_bytes),
        })
    }

    /// Measures how late live tokens are during one window.
    pub(crate) fn measure_late(&mut self, window: Duration) -> Result<Late, String> {
        self.client.ask("reset")?;
        thread::sleep(window);
        let [tokens, p50, p99, p99_9, max] = self.client.ask("late")?[..] else {
            return Err("the client's answer has another shape".into());
        };
        let seen = self.seen()?;
        self.check(seen)?;
        let [p50, p99, p99_9, max] = [p50, p99, p99_9, max].map(|late_us| late_us as f64 / 1_000.0);
        Ok(Late { p50, p99, p99_9, max, tokens: tokens as u64 })
    }

    /// Waits for a moment without heartbeats, or for one interval: a window that begins inside a burst would count
    /// heartbeats whose cost lies before it.
    fn wait_for_quiet(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        let mut before = self.seen()?.heartbeats;
        while begun.elapsed() < INTERVAL {
            thread::sleep(INTERVAL / 20);
            let now = self.seen()?.heartbeats;
            if now == before {
                break;
            }
            before = now;
        }
        Ok(())
    }

    fn check(&self, seen: ClientFigures) -> Result<(), String> {
        let name = self.variant.name();
        if seen.ended > 0 || seen.opened < self.streams {
            return Err(format!(
                "{name}: streams are missing: {} opened, {} ended, of {}",
                seen.opened, seen.ended, self.streams
            ));
        }
        if seen.strange > 0 {
            return Err(format!("{name}: {} reads held something else than heartbeats", seen.strange));
        }
        Ok(())
    }

    fn seen(&mut self) -> Result<ClientFigures, String> {
        let [opened, ended, heartbeats, strange, cpu_us] = self.client.ask("seen")?[..] else {
            return Err("the client's answer has another shape".into());
        };
        let [opened, ended, heartbeats, strange] = [opened, ended, heartbeats, strange].map(|count| count as u64);
        Ok(ClientFigures { opened, ended, heartbeats, strange, cpu_us })
    }
}

/// A child process that answers lines; ended when dropped.
struct Process {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: &str, arguments: &[&str]) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|problem| problem.to_string())?;
        let mut command = Command::new(own);
        command.args(arguments).env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|problem| format!("the {role} did not start: {problem}"))?;
        let (Some(commands), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("the {role} has no pipes"));
        };
        Ok(Self { child, commands, answers: BufReader::new(out) })
    }

    fn hear(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(count) if count > 0 => Ok(line.trim().to_owned()),
            _ => Err("a child process ended early".into()),
        }
    }

    fn ask(&mut self, command: &str) -> Result<Vec<i64>, String> {
        writeln!(self.commands, "{command}")
            .map_err(|problem| format!("a child process does not listen: {problem}"))?;
        numbers(&self.hear()?)
    }

    fn figures(&mut self) -> Result<ServerFigures, String> {
        ServerFigures::of(&self.ask("figures")?)
    }
}

impl ServerFigures {
    fn of(numbers: &[i64]) -> Result<Self, String> {
        let &[cpu_us, heap_bytes, rss_bytes, allocations] = numbers else {
            return Err("the server's answer has another shape".into());
        };
        Ok(Self { cpu_us, heap_bytes, rss_bytes, allocations })
    }
}

fn numbers(line: &str) -> Result<Vec<i64>, String> {
    line.split(' ').map(|number| number.parse().map_err(|_| format!("no number: {number}"))).collect()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
