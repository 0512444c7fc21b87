// SPDX-License-Identifier: GPL-2.0
//! What a piece of work costs: wall time, and the processor time of all processes
//! that it started and waited for.

use std::fmt;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// A clock that was started.
pub struct Clock {
    start: Instant,
    children: Duration,
}

/// What it showed in the end.
#[derive(Clone, Copy)]
pub struct Cost {
    pub wall: Duration,
    processor: Duration,
}

impl Clock {
    /// Starts one.
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            children: children(),
        }
    }

    /// What has been spent since.
    pub fn read(&self) -> Cost {
        Cost {
            wall: self.start.elapsed(),
            processor: children().saturating_sub(self.children),
        }
    }
}

fn children() -> Duration {
    // The call fails only for a wrong argument.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |usage| {
        duration(usage.user_time()) + duration(usage.system_time())
    })
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(time.tv_usec().unsigned_abs())
}

/// Seconds of wall time in the column of the steps, and minutes of processors.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>4}s {:>5.1} CPU min",
            self.wall.as_secs(),
            self.processor.as_secs_f64() / 60.0
        )
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_a_child_burns_is_counted() {
        let clock = Clock::start();
        let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
        assert!(
            Command::new("sh")
                .args(["-c", burn])
                .status()
                .unwrap()
                .success()
        );
        let cost = clock.read();
        assert!(cost.processor > Duration::from_millis(20), "{cost}");
        assert!(cost.wall > Duration::from_millis(20), "{cost}");
    }

    #[test]
    fn it_reads_as_a_line_of_the_steps() {
        let cost = Cost {
            wall: Duration::from_secs(75),
            processor: Duration::from_secs(138),
        };
        assert_eq!(cost.to_string(), "  75s   2.3 CPU min");
    }
}
