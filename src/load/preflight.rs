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
    memory_bytes: Option<u64>,
}

/// Raises the soft limit on open files to the hard one and refuses a plan that does not fit.
pub(super) fn check(plan: &Plan) -> Result<(), LoadError> {
    decide(plan, &probe()).map_err(LoadError::host_limit)
}

/// Says what does not fit, and the fix.
fn decide(plan: &Plan, limits: &Limits) -> Result<(), String> {
    let streams = plan.streams as u64;
    let files = streams + limits.files_open + plan.workers as u64 * FILES_PER_WORKER + FILES_SPARE;
    if let Some(max) = limits.files_max
        && files > max
    {
        let fits = max.saturating_sub(files - streams);
        return Err(format!(
            "{streams} streams need {files} open files and the limit here is {max}; \
             raise it with 'ulimit -Hn {files}' as root, or use --streams {fits}"
        ));
    }
    if let Some(ports) = limits.ports {
        let reach = ports * plan.sources.count() as u64;
        if streams > reach {
            return Err(format!(
                "{streams} streams to one server need as many local ports and {reach} can be had; widen them with \
                 'sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"', or use --streams {reach}"
            ));
        }
    }
    if let Some(memory_bytes) = limits.memory_bytes {
        let need = streams * STREAM_BYTES;
        if need > memory_bytes {
            return Err(format!(
                "{streams} streams need about {} MB of memory and {} MB are available; use --streams {}",
                need >> 20,
                memory_bytes >> 20,
                memory_bytes / STREAM_BYTES
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

/// Memory of one stream: 17 KB in this process (hyper's buffers, its request queue and the task; `VmHWM` over 9,000
/// streams of `heartline load`), and as an allowance 7 KB for the kernel's socket.
const STREAM_BYTES: u64 = 24 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Settings;

    fn plan(streams: usize, server: &str) -> Plan {
        let mut settings = Settings::new("http://x/".parse().unwrap());
        settings.streams = streams;
        Plan::new(&settings, server.parse().unwrap(), 2)
    }

    const ROOMY: Limits =
        Limits { files_max: Some(1 << 20), files_open: 10, ports: Some(28_232), memory_bytes: Some(1 << 36) };

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
    fn too_little_memory_is_refused_with_what_fits() {
        let limits = Limits { memory_bytes: Some(24 << 20), ..ROOMY };
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
