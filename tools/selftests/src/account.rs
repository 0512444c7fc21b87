// SPDX-License-Identifier: GPL-2.0
//! The kernel memory that this program's calls cost, by the account of a memory cgroup.
//!
//! /proc/meminfo moves by MiB on an idle machine. A cgroup counts each object and page that is
//! charged to its tasks, also where an allocator keeps what was freed for itself.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::end::{CAPACITY, PAGE, read_exact, write};

/// Where the hierarchy is mounted, unless it is somewhere else already.
const MOUNT: &CStr = c"/tmp/altpipe-cgroup";

/// What the account of an idle cgroup was seen to move by: stocks of each processor, and up to 80 kB
/// that KASAN holds back of what was freed.
pub const NOISE: u64 = 128 << 10;

/// The kernel adds up its notes of each processor only when they come to more than this many pages,
/// or every other second. (It is 64 for each processor.)
const UNTOLD: usize = 64 * 8;

/// A memory cgroup with this process, and all that it forks from now on, in it.
pub struct Account {
    dir: PathBuf,
}

impl Account {
    /// Makes one. Only root can.
    pub fn open() -> io::Result<Self> {
        let mount = PathBuf::from(MOUNT.to_str().expect("a path in ASCII"));
        if !mount.join("cgroup.procs").exists() {
            fs::create_dir_all(&mount)?;
            // SAFETY: all texts are terminated, and there are no options.
            let ret = unsafe {
                libc::mount(
                    c"none".as_ptr(),
                    MOUNT.as_ptr(),
                    c"cgroup2".as_ptr(),
                    0,
                    std::ptr::null(),
                )
            };
            if ret != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        fs::write(mount.join("cgroup.subtree_control"), "+memory")?;
        let dir = mount.join(format!("selftests.{}", process::id()));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join("cgroup.procs"), process::id().to_string())?;
        Ok(Self { dir })
    }

    /// Bytes of kernel memory that are charged to it now, but for what its processes need to be
    /// there at all.
    pub fn kernel(&self) -> u64 {
        let [kernel, stacks, tables] = self.fields(["kernel", "kernel_stack", "pagetables"]);
        kernel.saturating_sub(stacks + tables)
    }

    /// Bytes of the objects among them, to the byte.
    pub fn objects(&self) -> u64 {
        let [slab] = self.fields(["slab"]);
        slab
    }

    fn fields<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        churn();
        let text = fs::read_to_string(self.dir.join("memory.stat")).expect("memory.stat");
        names.map(|name| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
                .unwrap_or_else(|| panic!("memory.stat has no {name}"))
        })
    }

    /// The same once it has come to rest.
    pub fn steady(&self) -> u64 {
        forget();
        let mut last = self.kernel();
        let mut same = 0;
        for _ in 0..100 {
            sleep(Duration::from_millis(30));
            let now = self.kernel();
            same = if now == last { same + 1 } else { 0 };
            last = now;
            if same == 3 {
                break;
            }
        }
        last
    }

    /// Waits until no more than `most` is charged: files and inodes are freed some time after
    /// their last use. Gives what is charged then, which is more where it did not come down.
    pub fn settle(&self, most: u64) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let now = self.kernel();
            if now <= most || Instant::now() > deadline {
                return now;
            }
            forget();
            sleep(Duration::from_millis(20));
        }
    }

    /// Panics unless the account comes back to `before`.
    pub fn assert_back(&self, before: u64, what: &str) {
        let now = self.settle(before + NOISE);
        assert!(
            now <= before + NOISE,
            "{what}: {} bytes of kernel memory are not back",
            now - before
        );
    }
}

// Moves so many pages onto the account and off it that the kernel adds up.
fn churn() {
    let (r, w) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a native pipe");
    let data = [0; CAPACITY];
    for _ in 0..UNTOLD * PAGE / CAPACITY {
        write(&w, &data).expect("an empty pipe takes its capacity");
        read_exact(&r, CAPACITY);
    }
}

// Has the kernel give up entries and inodes that nobody refers to, such as those of /proc. Nobody but
// root can ask for that, and others come to the same by waiting longer.
fn forget() {
    let _ = fs::write("/proc/sys/vm/drop_caches", "2");
}
