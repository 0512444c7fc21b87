// SPDX-License-Identifier: GPL-2.0
//! What programs expect of a pipe, row by row: each is tried on a pipe of the kernel's and on one of
//! the subject's in one process, and must come out the same; the kernel's must come out as written
//! down. Rows that cannot be held against another pipe have cases elsewhere, see [`ELSEWHERE`].

use crate::case::{Area, Case};
use crate::differential::script::{End, Form, Memory, Op, Part, Transfer};

mod crowd;
mod data;
mod shape;
mod waits;

/// Cases about the rows.
pub const AREA: Area = Area {
    name: "parity rows",
    cases: &[
        Case::every(
            "row 3: a poller is woken by a byte, and who reads beside it gets EAGAIN",
            waits::poller,
        ),
        Case::every(
            "row 4: a second write to undrained data is a second edge",
            waits::edges,
        ),
        Case::every(
            "row 7: the last close ends every read with 0 and every write with EPIPE and SIGPIPE",
            waits::last_close,
        ),
        Case::every(
            "row 8: RWF_NOWAIT is EAGAIN where a call would sleep",
            data::nowait,
        ),
        Case::every(
            "row 11: sizes are rounded, refused or EBUSY, by either end",
            data::sizes,
        ),
        Case::every("row 12: a new pipe has 16 pages", shape::default_size),
        Case::every(
            "row 13: a stream loses nothing while its pipe grows to 1 MiB and shrinks",
            data::resized_stream,
        ),
        Case::every(
            "row 14: a nonblocking write of up to PIPE_BUF goes in whole or is EAGAIN",
            data::whole_or_not,
        ),
        Case::every(
            "row 15: a nonblocking read of an empty pipe is EAGAIN with a writer, 0 without",
            data::empty,
        ),
        Case::every(
            "row 16: a transfer of nothing is 0 at once, wherever it points, and no signal",
            data::nothing,
        ),
        Case::every(
            "row 17: a bad pointer consumes and queues nothing that was not delivered",
            data::pointers,
        ),
        Case::every(
            "row 18: a signal ends a sleep with EINTR, a restart or the count so far",
            waits::signals,
        ),
        Case::every(
            "row 19: after a short read the pipe is empty",
            data::short_read,
        ),
        Case::every(
            "row 20: packets stay apart as the writer's flag says at each write",
            data::packets,
        ),
        Case::every(
            "row 22: without readers a writer polls POLLERR, and POLLOUT with room; pollers wake",
            waits::readers_gone,
        ),
        Case::every(
            "row 23: without writers a reader polls POLLHUP, and POLLIN with data; pollers wake",
            waits::writers_gone,
        ),
        Case::every(
            "row 24: FIONREAD on either end is the sum of the buffers",
            shape::counts,
        ),
        Case::every(
            "row 25: O_NONBLOCK is shared by duplicates, and not by the other end",
            waits::shared_flag,
        ),
        Case::every(
            "row 26: an owner is told of each of ten writes",
            waits::owners,
        ),
        Case::every("row 27: fstat shows a FIFO of its own", shape::stat),
        Case::every(
            "row 28: fstatfs shows pages, names of 255 and the kind's magic",
            shape::statfs,
        ),
        Case::every(
            "row 29: positions are ESPIPE, ftruncate EINVAL, a wrong direction EBADF",
            data::odd_calls,
        ),
        Case::every(
            "row 29: an unknown flag at creation is EINVAL",
            shape::unknown_flag,
        ),
        Case::every(
            "row 30: a full descriptor table is EMFILE, with nothing left open",
            shape::full_table,
        ),
        Case::long(
            "row 31: 16 threads in epoll_wait and epoll_ctl lose no wake-up and do not lock up",
            crowd::sixteen,
        ),
        Case::every(
            "row 32: sendfile and splice move what they move for a native pipe",
            shape::transfers,
        ),
        Case::fifo(
            "row 33: a FIFO opens, ends and forgets as fifo(7) has it",
            shape::by_name,
        ),
    ],
};

/// Rows that no other pipe can be asked about, and the cases that hold them.
#[cfg(test)]
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "1",
        "herd: one byte runs one of many blocked readers, or all where waits are not exclusive",
    ),
    (
        "2",
        "herd: a token passed among 32 readers costs a bounded number of switches per hop",
    ),
    (
        "5",
        "wakes: an ordinary poll does not make every later write wake readers, unless the rule says polled",
    ),
    (
        "6",
        "capacity: a pipe of one slot carries writers, readers and signals without a standstill",
    ),
    (
        "9",
        "quota: a small pipe over the quota takes a byte while one is unread, if it has two slots",
    ),
    (
        "10",
        "quota: over the soft quota a new pipe is small, none may grow, and any may shrink",
    ),
    (
        "10",
        "quota: a user may have a pipe of the largest size and no larger one: EPERM",
    ),
    ("21", "foreign: vmsplice is EBADF and queues nothing"),
    (
        "21",
        "foreign: tee to or from a native pipe is EINVAL and moves nothing",
    ),
    (
        "30",
        "create: a result that cannot be delivered is EFAULT and leaves nothing open",
    ),
    (
        "32a",
        "lifecycle: pages in a native pipe outlive the module that they came from",
    ),
    (
        "34",
        "lifecycle: an open read end refuses the unload and works on",
    ),
    (
        "34",
        "lifecycle: pipes come and go while the module is unloaded and loaded under them",
    ),
    ("35", "lifecycle: 20000 pipes leave no memory behind"),
    (
        "35",
        "processes: a fork storm of 32 writers delivers every record",
    ),
    (
        "35",
        "processes: a thousand pipes come and go and leave no descriptor",
    ),
    (
        "36",
        "splice_waits: others use the native pipe while a splice waits for data or room",
    ),
];

// Most scenes begin with a pipe as small as one can be and have two slots.
const PIPE: u32 = 2;
// A slot for each small write, also where writes do not merge.
const ROOMY: u32 = 16;
const R: End = End::Reader(0);
const W: End = End::Writer(0);

fn parts(lens: &[u32]) -> Vec<Part> {
    lens.iter()
        .map(|&len| Part {
            len,
            memory: Memory::Good,
        })
        .collect()
}

fn transfer(end: End, lens: &[u32], form: Form) -> Transfer {
    Transfer {
        end,
        parts: parts(lens),
        form,
    }
}

fn read(len: u32) -> Op {
    Op::Read(transfer(R, &[len], Form::Plain))
}

fn write(len: u32) -> Op {
    Op::Write(transfer(W, &[len], Form::Plain))
}

fn readv(lens: &[u32]) -> Op {
    Op::Read(transfer(R, lens, Form::Vector))
}

fn writev(lens: &[u32]) -> Op {
    Op::Write(transfer(W, lens, Form::Vector))
}

fn fill(chunk: u32) -> Op {
    Op::Fill(W, chunk)
}

// preadv2(2) or pwritev2(2).
fn flags(op: fn(Transfer) -> Op, end: End, len: u32, nowait: bool) -> Op {
    let nosignal = false;
    op(transfer(end, &[len], Form::Flags { nowait, nosignal }))
}

// A transfer on any end, to or from any memory.
fn bad(op: fn(Transfer) -> Op, end: End, len: u32, memory: Memory) -> Op {
    op(Transfer {
        end,
        parts: vec![Part { len, memory }],
        form: Form::Plain,
    })
}

fn good_then_bad(good: u32, bad: u32) -> Op {
    let mut transfer = transfer(W, &[good, bad], Form::Vector);
    transfer.parts[1].memory = Memory::Nowhere;
    Op::Write(transfer)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cases::AREAS;
    use crate::lifecycle;

    fn all_names() -> BTreeSet<String> {
        let cases = AREAS.iter().flat_map(|area| {
            area.cases
                .iter()
                .map(|case| format!("{}: {}", area.name, case.name))
        });
        let others = lifecycle::names().map(|name| format!("lifecycle: {name}"));
        cases.chain(others).collect()
    }

    #[test]
    fn every_row_has_a_case() {
        let here = AREA.cases.iter().map(|case| {
            let row = case.name.strip_prefix("row ").expect("begins with its row");
            row.split(':').next().unwrap_or(row)
        });
        let held: BTreeSet<_> = here.chain(ELSEWHERE.iter().map(|(row, _)| *row)).collect();
        let mut rows: BTreeSet<_> = (1..=36).map(|row| row.to_string()).collect();
        rows.insert("32a".to_owned());
        assert_eq!(held, rows.iter().map(String::as_str).collect());
    }

    #[test]
    fn the_cases_elsewhere_exist() {
        let names = all_names();
        for (row, name) in ELSEWHERE {
            assert!(names.contains(*name), "row {row}: {name}");
        }
    }
}
