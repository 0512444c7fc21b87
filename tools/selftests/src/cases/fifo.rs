// SPDX-License-Identifier: GPL-2.0
//! Opening and closing by name, as fifo(7) has it.

use std::os::fd::AsFd;

use crate::case::{Area, Case};
use crate::end::{read, write};

mod crowds;
mod opening;
mod polling;
mod stream;

/// Cases about FIFOs, each held against one of mkfifo's.
pub const AREA: Area = Area {
    name: "fifo",
    cases: &[
        Case::fifo(
            "an open for reading waits for a writer",
            opening::reader_waits,
        ),
        Case::fifo(
            "an open for writing waits for a reader",
            opening::writer_waits,
        ),
        Case::fifo(
            "a nonblocking open for reading does not wait, and reads nothing before a writer comes",
            opening::reader_need_not_wait,
        ),
        Case::fifo(
            "a nonblocking open for writing is ENXIO without a reader, and leaves nothing behind",
            opening::no_reader,
        ),
        Case::fifo(
            "a reader who still waits is reader enough for a nonblocking writer",
            opening::waiting_reader_counts,
        ),
        Case::fifo(
            "an open for both never waits and talks to itself",
            opening::both_ways,
        ),
        Case::fifo(
            "an open for both lets waiting readers and writers go on",
            opening::both_is_partner,
        ),
        Case::fifo(
            "one writer lets all waiting readers go on",
            opening::many_readers_wait,
        ),
        Case::fifo(
            "one reader lets all waiting writers go on",
            opening::many_writers_wait,
        ),
        Case::fifo(
            "a writer who comes and goes at once has been a partner, and his bytes stay",
            opening::fleeting_writer,
        ),
        Case::fifo(
            "a reader who comes and goes at once has been a partner",
            opening::fleeting_reader,
        ),
        Case::fifo(
            "a signal ends a waiting open for reading with EINTR, and undoes it",
            opening::reader_interrupted,
        ),
        Case::fifo(
            "a signal ends a waiting open for writing with EINTR, and undoes it",
            opening::writer_interrupted,
        ),
        Case::fifo(
            "a waiting open goes on waiting after a handler with SA_RESTART",
            opening::open_restarts,
        ),
        Case::fifo(
            "a process killed in a waiting open is no reader any more",
            opening::killed_opener,
        ),
        Case::fifo("the last close discards what is left", stream::discard),
        Case::fifo(
            "what is left stays as long as any file is open",
            stream::kept_while_open,
        ),
        Case::fifo(
            "a reader at the end of the stream reads on when another writer comes",
            stream::writer_returns,
        ),
        Case::fifo(
            "a writer without readers is EPIPE, and writes on when another reader comes",
            stream::reader_returns,
        ),
        Case::fifo(
            "poll reports no hang-up before the first writer, and then only without one",
            polling::no_early_hangup,
        ),
        Case::fifo(
            "poll reports no hang-up to who came after the last writer went",
            polling::no_stale_hangup,
        ),
        Case::fifo(
            "a poller without a writer wakes when one has come and written",
            polling::poller_meets_writer,
        ),
        Case::fifo(
            "a poller is woken with a hang-up when the last writer goes",
            polling::poller_loses_writer,
        ),
        Case::fifo(
            "a writer polls an error without readers, and none once one is back",
            polling::writer_polls,
        ),
        Case::fifo(
            "the end of the stream comes with the last of several writers",
            crowds::last_of_writers,
        ),
        Case::fifo(
            "readers and writers in numbers share one stream of whole records",
            crowds::shared_stream,
        ),
        Case::fifo(
            "opens and closes of all kinds at once leave nobody waiting",
            crowds::storm,
        ),
        Case::fifo(
            "packets are EINVAL in open(2) and can be switched to by fcntl(2)",
            opening::packets,
        ),
        Case::fifo(
            "an open for neither direction is EINVAL; O_PATH counts for nothing",
            opening::no_direction,
        ),
        Case::fifo("there is no position", stream::no_position),
    ],
};

// What only the right bytes can follow: the pipe is at the beginning of a stream.
fn assert_talks(w: impl AsFd, r: impl AsFd) {
    assert_eq!(write(w, b"hello"), Ok(5));
    assert_eq!(read(r, 64).as_deref(), Ok(&b"hello"[..]));
}
