// SPDX-License-Identifier: GPL-2.0
//! Threads and processes whose sleep can be observed.
//!
//! Scenarios never sleep and hope. They wait until /proc shows a task asleep in a certain call on a
//! certain descriptor; an interruptible sleep there means that the task stands in the pipe's wait
//! queue.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use rustix::fd::AsFd;
use rustix::thread::gettid;

use crate::end;

/// A system call in which a scenario expects a task to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// read(2)
    Read,
    /// write(2)
    Write,
    /// poll(2)
    Poll,
    /// epoll_wait(2)
    EpollWait,
    /// open(2)
    Open,
    /// splice(2), by the descriptor that it takes from
    Splice,
    /// sendfile(2), by the descriptor that it gives to
    Sendfile,
}

impl Call {
    // The library may spell a call in several ways.
    fn numbers(self) -> &'static [i64] {
        match self {
            Self::Read => &[libc::SYS_read],
            Self::Write => &[libc::SYS_write],
            Self::Poll => &[libc::SYS_poll, libc::SYS_ppoll],
            Self::EpollWait => &[
                libc::SYS_epoll_wait,
                libc::SYS_epoll_pwait,
                libc::SYS_epoll_pwait2,
            ],
            Self::Open => &[libc::SYS_open, libc::SYS_openat],
            Self::Splice => &[libc::SYS_splice],
            Self::Sendfile => &[libc::SYS_sendfile],
        }
    }
}

/// A task seen through /proc.
#[derive(Clone)]
pub struct Watched {
    dir: PathBuf,
    tid: i32,
}

impl Watched {
    /// A thread of this process.
    pub fn thread(tid: i32) -> Self {
        Self {
            dir: format!("/proc/self/task/{tid}").into(),
            tid,
        }
    }

    /// A child process with one thread.
    pub fn process(pid: i32) -> Self {
        Self {
            dir: format!("/proc/{pid}").into(),
            tid: pid,
        }
    }

    /// The task's id.
    pub fn tid(&self) -> i32 {
        self.tid
    }

    /// Waits until the task sleeps in `call` on `on`.
    pub fn until_asleep(&self, call: Call, on: impl AsFd) {
        while !self.asleep(call, end::number(&on)) {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Waits until the task sleeps in open(2), whatever it opens.
    pub fn until_opening(&self) {
        while !self.asleep(Call::Open, -1) {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// The number of times the task went to sleep so far.
    pub fn sleeps(&self) -> u64 {
        let status = fs::read_to_string(self.dir.join("status")).expect("a live task");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .expect("switches");
        line.trim().parse().expect("a number")
    }

    fn asleep(&self, call: Call, fd: i32) -> bool {
        // State first: a task that is seen asleep and then seen in the call has not left it in
        // between, or has entered it again, which is as good.
        let stat =
            fs::read_to_string(self.dir.join("stat")).expect("the task ended instead of sleeping");
        if !stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('S'))
        {
            return false;
        }
        let text = fs::read_to_string(self.dir.join("syscall"))
            .expect("the task ended instead of sleeping");
        let mut words = text.split_whitespace();
        let number = words.next().and_then(|word| word.parse::<i64>().ok());
        let first = words
            .next()
            .and_then(|word| i64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
        number.is_some_and(|number| call.numbers().contains(&number))
            && (matches!(call, Call::Poll | Call::Open) || first == Some(fd.into()))
    }
}

/// A scoped thread and the view of it.
pub struct Task<'scope, T> {
    handle: ScopedJoinHandle<'scope, T>,
    watched: Watched,
}

impl<'scope, T: Send + 'scope> Task<'scope, T> {
    /// Starts `body` on a thread of its own.
    pub fn spawn<'env>(
        scope: &'scope Scope<'scope, 'env>,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> Self {
        let (tell, told) = mpsc::channel();
        let handle = scope.spawn(move || {
            tell.send(gettid().as_raw_nonzero().get())
                .expect("the scenario waits");
            body()
        });
        Self {
            handle,
            watched: Watched::thread(told.recv().expect("the thread reports")),
        }
    }

    /// Starts `body`, which sleeps in `call` on `on`, and waits until it does.
    pub fn asleep_in<'env>(
        scope: &'scope Scope<'scope, 'env>,
        call: Call,
        on: impl AsFd,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> Self {
        let task = Self::spawn(scope, body);
        task.watched.until_asleep(call, on);
        task
    }

    /// Starts `body`, which sleeps in open(2), and waits until it does.
    pub fn opening<'env>(
        scope: &'scope Scope<'scope, 'env>,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> Self {
        let task = Self::spawn(scope, body);
        task.watched.until_opening();
        task
    }

    /// The view of the thread.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// True once the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Waits for the thread's result.
    pub fn join(self) -> T {
        // A panic ended the process already, in the hook.
        self.handle
            .join()
            .unwrap_or_else(|_| unreachable!("the panic hook ends the process"))
    }
}
