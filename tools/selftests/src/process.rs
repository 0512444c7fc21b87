// SPDX-License-Identifier: GPL-2.0
//! Helper processes of a scenario. They belong to its process group, so the watchdog ends them with
//! it.

use std::io;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use crate::task::Watched;

/// A forked helper.
pub struct Process(Pid);

impl Process {
    /// Forks; the child runs `body` and exits with status 0. The scenario must not have started
    /// threads before.
    pub fn fork(body: impl FnOnce()) -> Self {
        // SAFETY: one thread only, as documented, so the child can go on as a full program.
        match unsafe { libc::fork() } {
            -1 => panic!("fork: {}", io::Error::last_os_error()),
            0 => {
                body();
                // SAFETY: ends the process without running the parent's exit handlers.
                unsafe { libc::_exit(0) }
            }
            pid => Self(Pid::from_raw(pid).expect("fork returns a positive id")),
        }
    }

    /// The view of the child.
    pub fn watched(&self) -> Watched {
        Watched::process(self.0.as_raw_nonzero().get())
    }

    /// Kills the child and waits until it is gone from every queue.
    pub fn kill(self) {
        kill_process(self.0, Signal::KILL).expect("kill");
        self.wait();
    }

    /// Waits for the end.
    pub fn wait(self) -> WaitStatus {
        waitpid(Some(self.0), WaitOptions::empty())
            .expect("waitpid")
            .expect("a status")
            .1
    }

    /// Waits for the end, which must be a success.
    pub fn succeed(self) {
        let status = self.wait();
        assert_eq!(status.exit_status(), Some(0), "helper process: {status:?}");
    }
}
