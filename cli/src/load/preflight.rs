//! Refuses what this machine cannot hold, before the first connection is made. Called once by `run`.

use std::fs;

use super::LoadError;
use super::plan::Plan;

/// What this machine offers; `None` where it does not tell.
#[derive(Clone, Copy, Debug)]
struct Limits {
    files_max: Option<u64>,
    files_open: u64,
    ports: Option<u64>,
    /// Connections that may wait to be accepted by a server on this machine.
    backlog_max: Option<u64>,
    memory_bytes: Option<u64>,
}

/// Raises the soft limit on open files to the hard one and refuses a plan that does not fit.
pub(super) fn check(plan: &Plan) -> Result<(), LoadError> {
    decide(plan, &probe()).map_err(LoadError::host_limit)
}

/// Says what does not fit, and the fix.
fn decide(plan: &Plan, limits: &Limits) -> Result<(), String> {
    let streams = plan.at_once() as u64;
    let connections = plan.connections(plan.at_once()) as u64;
    // Over HTTP/2 a file or a port serves so many streams.
    let each = streams.div_ceil(connections.max(1));
    let files = connections + limits.files_open + plan.workers as u64 * FILES_PER_WORKER + FILES_SPARE;
    if let Some(max) = limits.files_max
        && files > max
    {
        let fits = max.saturating_sub(files - connections) * each;
        return Err(format!(
            "{streams} streams need {files} open files and the limit here is {max}; \
             raise it with 'ulimit -Hn {files}' as root, or use --streams {fits}"
        ));
    }
    if let Some(ports) = limits.ports {
        let reach = ports * plan.sources.count() as u64;
        if connections > reach {
            return Err(format!(
                "{streams} streams to one server need {connections} local ports and {reach} can be had; widen them with \
                 'sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"', add addresses with --source-ip, \
                 or use --streams {}",
                reach * each
            ));
        }
    }
    if let Some(backlog_max) = limits.backlog_max
        && plan.server.ip().is_loopback()
    {
        let burst = (u64::from(plan.rate_per_second) / each / BURSTS_PER_SECOND).min(connections);
        if burst > backlog_max {
            return Err(format!(
                "{burst} connections in a tenth of a second overflow this machine's queue of {backlog_max}, and those \
                 left out wait for seconds; use a lower --rate, or 'sysctl -w net.core.somaxconn={burst}' before the \
                 server starts"
            ));
        }
    }
    if let Some(memory_bytes) = limits.memory_bytes {
        let need = streams * STREAM_BYTES + connections * CONNECTION_BYTES;
        if need > memory_bytes {
            return Err(format!(
                "{streams} streams need about {} MB of memory and {} MB are available; use --streams {}",
                need >> 20,
                memory_bytes >> 20,
                memory_bytes * streams / need
            ));
        }
    }
    Ok(())
}

/// Asks the kernel; what cannot be read is not judged.
fn probe() -> Limits {
    // What still does not fit after a failed attempt to raise the limit is refused by `decide`.
    let files_max = rlimit::increase_nofile_limit(u64::MAX).or_else(|_| rlimit::Resource::NOFILE.get_soft()).ok();
    Limits {
        files_max,
        files_open: fs::read_dir("/proc/self/fd").map_or(FILES_OPEN_UNKNOWN, |list| list.count() as u64),
        ports: fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok().and_then(|text| port_count(&text)),
        backlog_max: fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|text| text.trim().parse().ok()),
        memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_bytes(&text)),
    }
}

/// Reads `32768 60999`.
fn port_count(text: &str) -> Option<u64> {
    let mut bounds = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (first, last) = (bounds.next()?.ok()?, bounds.next()?.ok()?);
    last.checked_sub(first).map(|between| between + 1)
}

/// Reads the line `MemAvailable: 23664000 kB`.
fn available_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// A worker holds an epoll handle, its wake-up and a duplicate of one.
const FILES_PER_WORKER: u64 = 4;

/// Left for a resolver, a report and whatever the process opens meanwhile.
const FILES_SPARE: u64 = 16;

/// Assumed open where `/proc` is missing: the standard three and a few more.
const FILES_OPEN_UNKNOWN: u64 = 16;

/// Memory of one stream: its task, its decoder and what TCP or HTTP/2 keep of it; `cargo bench --bench load` measures it.
const STREAM_BYTES: u64 = 4 * 1024;

/// Memory of one connection: an allowance for the kernel's socket and the buffers of HTTP/2 or TLS.
const CONNECTION_BYTES: u64 = 16 * 1024;

/// A server that stands still for a tenth of a second must find all who came meanwhile in the queue.
const BURSTS_PER_SECOND: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Settings;

    fn plan(streams: usize, server: &str) -> Plan {
        let mut settings = Settings::new("http://x/".parse().unwrap());
        settings.streams = streams;
        Plan::new(&settings, server.parse().unwrap(), 2)
    }

    const ROOMY: Limits = Limits {
        files_max: Some(1 << 20),
        files_open: 10,
        ports: Some(28_232),
        backlog_max: Some(4_096),
        memory_bytes: Some(1 << 36),
    };

    #[test]
    fn what_fits_is_let_through() {
        assert_eq!(decide(&plan(100_000, "127.0.0.1:80"), &ROOMY), Ok(()));
    }

    #[test]
    fn too_few_files_are_refused_with_the_fix() {
        let limits = Limits { files_max: Some(1_024), ..ROOMY };
        let message = decide(&plan(9_000, "127.0.0.1:80"), &limits).unwrap_err();
        assert!(message.contains("ulimit -Hn 9034"), "{message}");
        assert!(message.contains("--streams 990"), "{message}");
        assert_eq!(decide(&plan(990, "127.0.0.1:80"), &limits), Ok(()));
    }

    #[test]
    fn a_generator_out_of_ports_is_told_before_it_fails_near_28k() {
        let message = decide(&plan(30_000, "192.0.2.1:80"), &ROOMY).unwrap_err();
        assert!(message.contains("ip_local_port_range"), "{message}");
        assert_eq!(decide(&plan(30_000, "127.0.0.1:80"), &ROOMY), Ok(()));
    }

    #[test]
    fn a_queue_of_connects_that_would_overflow_is_told_before() {
        let mut burst = plan(9_000, "127.0.0.1:80");
        burst.rate_per_second = 80_000;
        let message = decide(&burst, &ROOMY).unwrap_err();
        assert!(message.contains("somaxconn=8000"), "{message}");
        burst.server = "192.0.2.1:80".parse().unwrap();
        assert_eq!(decide(&burst, &ROOMY), Ok(()), "another machine's queue is its own");
    }

    #[test]
    fn many_streams_of_one_connection_need_one_file_and_one_port() {
        let limits = Limits { files_max: Some(1_200), ports: Some(1_100), ..ROOMY };
        let mut many = plan(100_000, "192.0.2.1:80");
        assert!(decide(&many, &limits).is_err());
        many.protocol = crate::load::Protocol::Http2 { streams_per_connection: 100 };
        assert_eq!(decide(&many, &limits), Ok(()));
    }

    #[test]
    fn too_little_memory_is_refused_with_what_fits() {
        let limits = Limits { memory_bytes: Some(20 << 20), ..ROOMY };
        let message = decide(&plan(9_000, "127.0.0.1:80"), &limits).unwrap_err();
        assert!(message.contains("--streams 1024"), "{message}");
    }

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(port_count("32768\t60999\n"), Some(28_232));
        assert_eq!(port_count("wide open"), None);
        assert_eq!(available_bytes("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12_288));
    }
}
