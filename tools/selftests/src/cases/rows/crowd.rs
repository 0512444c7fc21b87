// SPDX-License-Identifier: GPL-2.0
//! Many threads that watch one pipe.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{scope, yield_now};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use crate::end::{read, set_nonblocking, write};
use crate::subject::Subject;
use crate::task::Task;

const WAITERS: usize = 12;
const CONTROLLERS: usize = 4;
const LENGTH: Duration = Duration::from_secs(1);

// The waiters share one epoll, level-triggered, and read what is reported; the controllers put the
// end into epolls of their own, alter the watch and take it out. A byte that stays is a wake-up lost.
pub fn sixteen(subject: &Subject) {
    let pipe = subject.pipe();
    set_nonblocking(&pipe.read, true);
    let shared = epoll::create(CreateFlags::CLOEXEC).expect("epoll_create1");
    let watch = |of: &OwnedFd, flags| epoll::add(of, &pipe.read, EventData::new_u64(0), flags);
    watch(&shared, EventFlags::IN).expect("epoll_ctl");
    let (done, taken) = (AtomicBool::new(false), AtomicUsize::new(0));
    let wait = || {
        let mut events = Vec::with_capacity(1);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 50_000_000,
        };
        while !done.load(Ordering::SeqCst) {
            match epoll::wait(&shared, spare_capacity(&mut events), Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => events.clear(),
                Err(error) => panic!("epoll_wait: {error}"),
            }
            match read(&pipe.read, 1) {
                Ok(data) => _ = taken.fetch_add(data.len(), Ordering::SeqCst),
                Err(error) => assert_eq!(error, Errno::AGAIN),
            }
        }
    };
    let control = || {
        let own = epoll::create(CreateFlags::CLOEXEC).expect("epoll_create1");
        while !done.load(Ordering::SeqCst) {
            watch(&own, EventFlags::IN | EventFlags::ET).expect("EPOLL_CTL_ADD");
            let flags = EventFlags::IN | EventFlags::ONESHOT;
            epoll::modify(&own, &pipe.read, EventData::new_u64(0), flags).expect("EPOLL_CTL_MOD");
            epoll::delete(&own, &pipe.read).expect("EPOLL_CTL_DEL");
        }
    };
    let sent = scope(|s| {
        for _ in 0..WAITERS {
            Task::spawn(s, &wait);
        }
        for _ in 0..CONTROLLERS {
            Task::spawn(s, &control);
        }
        let (end, mut sent) = (Instant::now() + LENGTH, 0);
        while Instant::now() < end {
            sent += write(&pipe.write, b"abc").expect("write");
            yield_now();
        }
        while taken.load(Ordering::SeqCst) < sent {
            yield_now();
        }
        done.store(true, Ordering::SeqCst);
        sent
    });
    assert_eq!(taken.into_inner(), sent);
}
