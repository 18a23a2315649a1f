//! What a run cost: wall time and memory. None of it is in what is compared between runs.

use std::time::Instant;

use krafla_simulator::record::Record;
use krafla_simulator::report::json::Timing;

/// A running measurement.
pub(crate) struct Started(Instant);

impl Started {
    /// Starts the clock.
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// What a run has cost so far.
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    pub(crate) fn timing(&self, record: &Record) -> Timing {
        let wall_seconds = self.0.elapsed().as_secs_f64();
        Timing {
            wall_seconds,
            peak_memory_bytes: peak_memory_bytes(),
            decisions_per_second: record.decisions as f64 / wall_seconds.max(1e-9),
            cycles_per_second: record.cycles as f64 / wall_seconds.max(1e-9),
        }
    }
}

/// The most memory that this process has held, where the system says.
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
