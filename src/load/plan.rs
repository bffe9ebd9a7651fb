//! Which stream begins when, on which worker and from which address. Pure; made once a run, asked by every worker.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::settings::WORKERS_MAX;
use super::{Settings, Shape};

/// The plan of one run: everything that follows from the settings, the server's address and the number of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) server: SocketAddr,
    pub(super) streams: usize,
    pub(super) rate_per_second: u32,
    pub(super) workers: usize,
    /// How many loopback addresses the connections come from; 0 leaves the choice to the kernel.
    pub(super) sources: u32,
    pub(super) shape: Shape,
    pub(super) interval: Duration,
    pub(super) open_within: Duration,
}

impl Plan {
    /// Makes the plan.
    pub(super) fn new(settings: &Settings, server: SocketAddr, cores: usize) -> Self {
        let streams = settings.streams;
        let wanted =
            settings.workers.unwrap_or_else(|| cores.min(WORKERS_MAX).min(streams.div_ceil(STREAMS_PER_WORKER_MIN)));
        Self {
            server,
            streams,
            rate_per_second: settings.rate_per_second,
            workers: wanted.clamp(1, streams),
            sources: sources(server.ip(), streams),
            shape: settings.shape,
            interval: settings.interval,
            open_within: settings.open_within,
        }
    }

    /// Returns when stream `index` is meant to begin, counted from the run's start.
    ///
    /// Latencies count from here, so that a client that falls behind does not hide what its users would have waited.
    pub(super) fn intended(&self, index: usize) -> Duration {
        let nanos = index as u128 * 1_000_000_000 / u128::from(self.rate_per_second);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how long beginning all connections takes.
    pub(super) fn ramp(&self) -> Duration {
        self.intended(self.streams)
    }

    /// Returns the streams of one worker, in the order in which they begin.
    pub(super) fn streams_of(&self, worker: usize) -> impl Iterator<Item = usize> + use<> {
        (worker..self.streams).step_by(self.workers)
    }

    /// Returns the address that stream `index` comes from; `None` leaves it to the kernel.
    pub(super) fn source(&self, index: usize) -> Option<Ipv4Addr> {
        if self.sources == 0 {
            return None;
        }
        // Fits: the remainder is below `sources`, which is a u32.
        let place = (index % self.sources as usize) as u32;
        Some(Ipv4Addr::from(u32::from(SOURCE_FIRST) + place))
    }
}

/// Returns over how many source addresses to spread connections to `server`.
///
/// Only Linux answers to all of 127/8 without being told.
fn sources(server: IpAddr, streams: usize) -> u32 {
    let spread = cfg!(target_os = "linux") && matches!(server, IpAddr::V4(address) if address.is_loopback());
    if !spread {
        return 0;
    }
    u32::try_from(streams.div_ceil(STREAMS_PER_SOURCE)).unwrap_or(SOURCES_MAX).clamp(1, SOURCES_MAX)
}

/// So many streams are little for one thread: at a heartbeat a second each, some 2 % of a core by the `cpu_percent` of
/// `heartline load --streams 9k --interval 1s --hold 20s`.
const STREAMS_PER_WORKER_MIN: usize = 2_000;

/// Streams from one source address: a fifth of the 28,232 ports Linux gives out by default, because ports of earlier
/// runs stay in `TIME_WAIT` for a minute and looking for a free one slows down as they fill.
const STREAMS_PER_SOURCE: usize = 5_000;

/// The first source address. 127.0.0.1 is left to everything else on the machine.
const SOURCE_FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The most source addresses: they stay within 127.0.0.2 to 127.0.3.233.
const SOURCES_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(streams: usize, server: &str) -> Plan {
        let mut settings = Settings::new("http://x/".parse().unwrap());
        settings.streams = streams;
        Plan::new(&settings, server.parse().unwrap(), 2)
    }

    #[test]
    fn streams_begin_at_the_rate() {
        let plan = plan(9_000, "127.0.0.1:80");
        assert_eq!(plan.intended(0), Duration::ZERO);
        assert_eq!(plan.intended(1), Duration::from_micros(500));
        assert_eq!(plan.ramp(), Duration::from_millis(4_500));
    }

    #[test]
    fn every_stream_belongs_to_one_worker() {
        let plan = plan(9_001, "127.0.0.1:80");
        let mut all: Vec<_> = (0..plan.workers).flat_map(|worker| plan.streams_of(worker)).collect();
        all.sort_unstable();
        assert_eq!(plan.workers, 2);
        assert!(all.into_iter().eq(0..9_001));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn ports_of_one_address_are_never_exhausted() {
        for streams in [1, 5_000, 28_232, 100_000, 2_000_000] {
            let plan = plan(streams, "127.0.0.1:80");
            let per_source = streams.div_ceil(plan.sources as usize);
            assert!(per_source <= STREAMS_PER_SOURCE, "{streams}: {per_source}");
            assert!(plan.source(streams - 1).unwrap().is_loopback());
        }
    }

    #[test]
    fn another_machine_is_reached_from_the_kernels_choice() {
        assert_eq!(plan(9_000, "192.0.2.1:80").source(3), None);
        assert_eq!(plan(9_000, "[::1]:80").source(3), None);
    }

    #[test]
    fn a_small_run_takes_one_worker() {
        assert_eq!(plan(200, "127.0.0.1:80").workers, 1);
    }
}
