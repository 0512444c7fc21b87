// SPDX-License-Identifier: GPL-2.0
//! Empty buffers and bad addresses: nothing is consumed that was not delivered, nothing queued that
//! was not read whole.

use std::ptr;
use std::thread::scope;

use altpipe_core::config::Publish;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{
    CAPACITY, PAGE, fill, poll_now, queued, read, read_exact, set_nonblocking, write,
};
use crate::memory::{Cliff, NOWHERE, read_to, vector, write_from};
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};

/// Cases about user addresses.
pub const AREA: Area = Area {
    name: "pointers",
    cases: &[
        Case::every(
            "a read of nothing returns 0 at once, from an empty pipe and to any address",
            empty_read,
        ),
        Case::every(
            "a write of nothing returns 0 at once, to a full pipe and from any address",
            empty_write,
        ),
        Case::every(
            "a write of nothing without readers returns 0 and raises no signal",
            empty_write_without_readers,
        ),
        Case::every(
            "a read to a bad address is EFAULT and consumes nothing",
            bad_read,
        ),
        Case::every(
            "a read that faults inside a page delivers and consumes nothing of it",
            fault_inside_page,
        ),
        Case::every(
            "a read that faults at a later page returns what came before",
            fault_at_later_page,
        ),
        Case::every(
            "a write from a bad address is EFAULT and queues nothing",
            bad_write,
        ),
        Case::every(
            "a write that would merge from a bad address leaves the last page as it was",
            bad_merge,
        ),
        Case::every(
            "a write that faults inside its only page queues nothing",
            half_bad_write,
        ),
        Case::every(
            "a writev whose second page faults returns the first",
            second_page_faults,
        ),
        Case::every(
            "a fault costs no slot, unless slots are published before they are filled",
            fault_costs_no_slot,
        ),
        Case::every(
            "a read that finds but an empty slot wakes the writer that sleeps for it",
            empty_slot_wakes,
        ),
    ],
};

fn empty_read(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(read_to(&r, ptr::null_mut(), 0), Ok(0));
    assert_eq!(
        vector(
            libc::readv,
            &r,
            &[(ptr::null_mut(), 0), (ptr::null_mut(), 0)]
        ),
        Ok(0)
    );
    write(&w, b"x").unwrap();
    assert_eq!(read_to(&r, ptr::null_mut(), 0), Ok(0));
    assert_eq!(queued(&r), 1);
}

fn empty_write(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(write_from(&w, ptr::null(), 0), Ok(0));
    assert_eq!(queued(&r), 0);
    fill(&w, PAGE);
    assert_eq!(write_from(&w, ptr::null(), 0), Ok(0));
    assert_eq!(
        vector(
            libc::writev,
            &w,
            &[(ptr::null_mut(), 0), (ptr::null_mut(), 0)]
        ),
        Ok(0)
    );
    assert_eq!(queued(&r), CAPACITY);
}

fn empty_write_without_readers(subject: &Subject) {
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let Pipe { read: r, write: w } = subject.pipe();
    drop(r);
    assert_eq!(write_from(&w, ptr::null(), 0), Ok(0));
    assert_eq!(vector(libc::writev, &w, &[(ptr::null_mut(), 0)]), Ok(0));
    assert_eq!(signal::handled(), 0);
}

fn bad_read(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"abc").unwrap();
    assert_eq!(read_to(&r, NOWHERE, 3), Err(Errno::FAULT));
    assert_eq!(queued(&r), 3);
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"abc"[..]));
}

fn fault_inside_page(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let cliff = Cliff::new(b'-');
    write(&w, &[b'a'; 200]).unwrap();
    assert_eq!(read_to(&r, cliff.before_edge(100), 200), Err(Errno::FAULT));
    assert_eq!(queued(&r), 200);
    assert_eq!(read(&r, 300).unwrap(), [b'a'; 200]);
}

fn fault_at_later_page(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let cliff = Cliff::new(b'-');
    write(&w, &[b'a'; PAGE]).unwrap();
    write(&w, &[b'b'; PAGE]).unwrap();
    assert_eq!(
        read_to(&r, cliff.before_edge(PAGE + 10), 2 * PAGE),
        Ok(PAGE)
    );
    assert_eq!(cliff.bytes(PAGE + 10, PAGE), [b'a'; PAGE]);
    assert_eq!(queued(&r), PAGE);
    assert_eq!(read_exact(&r, PAGE), [b'b'; PAGE]);
}

fn bad_write(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    assert_eq!(write_from(&w, NOWHERE, 3), Err(Errno::FAULT));
    assert_eq!(write_from(&w, NOWHERE, 3 * PAGE), Err(Errno::FAULT));
    assert_eq!(queued(&r), 0);
    write(&w, b"abc").unwrap();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"abc"[..]));
}

fn bad_merge(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let cliff = Cliff::new(b'-');
    write(&w, b"abc").unwrap();
    assert_eq!(write_from(&w, NOWHERE, 3), Err(Errno::FAULT));
    assert_eq!(write_from(&w, cliff.before_edge(2), 3), Err(Errno::FAULT));
    assert_eq!(queued(&r), 3);
    write(&w, b"def").unwrap();
    assert_eq!(read(&r, 64).as_deref(), Ok(&b"abcdef"[..]));
}

fn half_bad_write(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let cliff = Cliff::new(b'x');
    assert_eq!(
        write_from(&w, cliff.before_edge(100), 200),
        Err(Errno::FAULT)
    );
    assert_eq!(queued(&r), 0);
}

fn second_page_faults(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let cliff = Cliff::new(b'x');
    let parts = [(cliff.before_edge(PAGE), PAGE), (NOWHERE, 100)];
    assert_eq!(vector(libc::writev, &w, &parts), Ok(PAGE));
    assert_eq!(queued(&r), PAGE);
    assert_eq!(write_from(&w, cliff.before_edge(PAGE), 2 * PAGE), Ok(PAGE));
    assert_eq!(read_exact(&r, 2 * PAGE), [b'x'; 2 * PAGE]);
}

fn fault_costs_no_slot(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let in_sight = subject.config().publish == Publish::BeforeCopy;
    set_nonblocking(&r, true);
    for _ in 0..10 {
        assert_eq!(write_from(&w, NOWHERE, PAGE), Err(Errno::FAULT));
        assert_eq!(
            poll_now(&r, PollFlags::IN),
            if in_sight {
                PollFlags::IN
            } else {
                PollFlags::empty()
            }
        );
    }
    assert_eq!(queued(&r), 0);
    assert_eq!(
        fill(&w, PAGE),
        if in_sight {
            CAPACITY - 10 * PAGE
        } else {
            CAPACITY
        }
    );
    assert_eq!(
        read_exact(&r, CAPACITY - 10 * PAGE).len(),
        CAPACITY - 10 * PAGE
    );
    if in_sight {
        // Empty slots are no data, and a read that finds nothing else says so.
        assert_eq!(write_from(&w, NOWHERE, PAGE), Err(Errno::FAULT));
        assert_eq!(read(&r, 1), Err(Errno::AGAIN));
        assert_eq!(poll_now(&r, PollFlags::IN), PollFlags::empty());
    }
}

// The model checker of tools/altpipe-core found both asleep here: the reader went to wait for data
// and kept to itself that it had made room.
fn empty_slot_wakes(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    subject.resize(&r, PAGE as u32).unwrap();
    assert_eq!(write_from(&w, NOWHERE, PAGE), Err(Errno::FAULT));
    scope(|s| {
        let body = || write(&w, &[b'x'; PAGE]);
        let writer = if subject.config().publish == Publish::BeforeCopy {
            Task::asleep_in(s, Call::Write, &w, body)
        } else {
            Task::spawn(s, body)
        };
        assert_eq!(read_exact(&r, PAGE), [b'x'; PAGE]);
        assert_eq!(writer.join(), Ok(PAGE));
    });
}
