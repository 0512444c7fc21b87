// SPDX-License-Identifier: GPL-2.0
//! The kernel's fault injection, aimed at single calls of this thread.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where the kernel is told which allocations may fail.
const CAPABILITIES: [&str; 2] = [
    "/sys/kernel/debug/failslab",
    "/sys/kernel/debug/fail_page_alloc",
];

/// Makes the nth allocation of a call fail.
///
/// A fault hits the thread that asked for it, from the write to `fail-nth` on. So nothing of ours
/// may touch fresh memory between that and the call, and no call but the one under test be made.
pub struct Injector {
    fail_nth: File,
}

impl Injector {
    /// Lets every allocation fail that may, also those that could wait for memory or take it from
    /// high zones, and only where a thread asks for it. None: this kernel injects no faults.
    pub fn new() -> io::Result<Option<Self>> {
        if !CAPABILITIES.iter().all(|dir| Path::new(dir).exists()) {
            return Ok(None);
        }
        for dir in CAPABILITIES {
            let set = |file: &str, value: &str| {
                let path = Path::new(dir).join(file);
                if path.exists() {
                    fs::write(path, value)
                } else {
                    Ok(())
                }
            };
            set("probability", "0")?;
            set("times", "-1")?;
            set("verbose", "0")?;
            set("task-filter", "N")?;
            set("ignore-gfp-wait", "N")?;
            set("ignore-gfp-highmem", "N")?;
            set("cache-filter", "N")?;
            set("min-order", "0")?;
        }
        Ok(Some(Self {
            fail_nth: OpenOptions::new()
                .read(true)
                .write(true)
                .open("/proc/thread-self/fail-nth")?,
        }))
    }

    /// Runs `call` with its nth allocation failing; says how many more it would have had to make
    /// for that, which is 0 where one failed.
    pub fn inject<T>(&self, nth: u32, call: impl FnOnce() -> T) -> (T, u32) {
        let text = format!("{nth}\n");
        let mut left = [0; 16];
        self.arm(text.as_bytes());
        let result = call();
        let length = self.fail_nth.read_at(&mut left, 0).unwrap_or(0);
        self.arm(b"0\n");
        let left = String::from_utf8_lossy(&left[..length]);
        (
            result,
            left.trim().parse().expect("what is left of fail-nth"),
        )
    }

    fn arm(&self, text: &[u8]) {
        let count = self.fail_nth.write_at(text, 0).expect("fail-nth");
        assert_eq!(count, text.len());
    }
}
