// SPDX-License-Identifier: GPL-2.0
//! splice(2) between a subject's pipe and a native one. Where the subject is native itself, the same
//! must hold between two native pipes.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::thread::scope;

use altpipe_uapi::get_stats;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use crate::case::{Area, Case};
use crate::end::{CAPACITY, PAGE, checked, fill, number, queued, read, read_exact, write};
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};
use crate::task::Task;
use crate::transfer::{ends, splice, try_splice};

/// Cases about what a splice moves.
pub const AREA: Area = Area {
    name: "splice",
    cases: &[
        Case::every("bytes go from and to a native pipe", both_ways),
        Case::fifo("bytes of a FIFO go from and to a native pipe", both_ways),
        Case::long(
            "a stream through two splices keeps order and count for any sizes",
            streams,
        ),
        Case::fifo(
            "a FIFO's stream through two splices keeps order and count",
            streams,
        ),
        Case::every(
            "a splice of part of a page leaves the rest, in order",
            parts,
        ),
        Case::every(
            "a splice moves what there is room for and comes back short",
            short_for_room,
        ),
        Case::every(
            "a splice moves what there is and comes back short",
            short_for_data,
        ),
        Case::every(
            "nothing left to come is zero; nothing asked for as well",
            end_of_stream,
        ),
        Case::every(
            "without readers a splice is EPIPE with SIGPIPE, and moves nothing",
            no_readers,
        ),
        Case::fifo(
            "without readers a splice to a FIFO is EPIPE with SIGPIPE, and moves nothing",
            no_readers,
        ),
        Case::every("packets stay packets on both ways", packets),
        Case::every(
            "part of a packet is a packet, and so is the rest",
            part_of_packet,
        ),
        Case::every(
            "what a failed write left behind is skipped",
            skips_what_failed,
        ),
        Case::every("wrong directions are EBADF and wrong flags EINVAL", errors),
        Case::altpipe("both ends altpipe's is EINVAL and moves nothing", both_ours),
        Case::fifo_device("from and to a FIFO device alone is EINVAL", both_ours),
        Case::altpipe("splices count as reads and writes", counted),
        Case::altpipe(
            "a read end with O_DIRECT gives copies, and EAGAIN where there is nothing",
            direct_read_end,
        ),
    ],
};

fn both_ways(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    write(&ours.write, b"to native").unwrap();
    assert_eq!(splice(&ours.read, &native.write, 100), Ok(9));
    assert_eq!((queued(&ours.read), queued(&native.read)), (0, 9));
    assert_eq!(read(&native.read, 100).as_deref(), Ok(&b"to native"[..]));

    write(&native.write, b"from native").unwrap();
    assert_eq!(splice(&native.read, &ours.write, 100), Ok(11));
    assert_eq!((queued(&ours.read), queued(&native.read)), (11, 0));
    assert_eq!(read(&ours.read, 100).as_deref(), Ok(&b"from native"[..]));
}

/// The byte at a place of a stream, without a period of pages or slots.
fn byte_at(place: usize) -> u8 {
    (place.wrapping_mul(0x9E37_79B1) >> 11) as u8
}

fn pump(from: &OwnedFd, to: &OwnedFd, sizes: &[usize]) {
    for size in sizes.iter().cycle() {
        if splice(from, to, *size).expect("splice") == 0 {
            break;
        }
    }
}

// Through the subject's pipe, a native one, and back into the subject's where it can have two.
fn streams(subject: &Subject) {
    const TOTAL: usize = 300_000;
    for (write_size, out_sizes, in_sizes, read_size) in [
        (1000, &[4096][..], &[4096][..], 3000),
        (PAGE, &[1, 5000, 70_000], &[100, 100_000], PAGE),
        (CAPACITY, &[CAPACITY], &[CAPACITY], CAPACITY),
        (3 * CAPACITY + 1, &[777, 4095, 4097], &[8191, 3], 50_000),
    ] {
        let first = ends(subject);
        let native = Subject::Native.pipe();
        let last = match subject {
            Subject::Fifo(_) => None,
            _ => Some(subject.pipe()),
        };
        scope(|s| {
            let Pipe {
                read: first,
                write: w,
            } = first;
            Task::spawn(s, move || {
                let data: Vec<u8> = (0..TOTAL).map(byte_at).collect();
                for part in data.chunks(write_size) {
                    assert_eq!(write(&w, part), Ok(part.len()));
                }
            });
            let Pipe {
                read: middle,
                write: w,
            } = native;
            Task::spawn(s, move || pump(&first, &w, out_sizes));
            let r = match last {
                None => middle,
                Some(Pipe { read: r, write: w }) => {
                    Task::spawn(s, move || pump(&middle, &w, in_sizes));
                    r
                }
            };
            let mut place = 0;
            loop {
                let part = read(&r, read_size).unwrap();
                if part.is_empty() {
                    break;
                }
                let wrong = part.iter().zip(place..).find(|&(&b, at)| b != byte_at(at));
                assert!(
                    wrong.is_none(),
                    "wrong byte at {place}+, {write_size} {out_sizes:?}"
                );
                place += part.len();
            }
            assert_eq!(place, TOTAL);
        });
    }
}

fn parts(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    write(&ours.write, b"0123456789").unwrap();
    assert_eq!(splice(&ours.read, &native.write, 4), Ok(4));
    // Behind what is shared by now.
    write(&ours.write, b"abcdef").unwrap();
    write(&native.write, b"|").unwrap();
    assert_eq!(splice(&ours.read, &native.write, 100), Ok(12));
    assert_eq!(read_exact(&native.read, 17), b"0123|456789abcdef");

    write(&native.write, b"0123456789").unwrap();
    assert_eq!(splice(&native.read, &ours.write, 4), Ok(4));
    write(&native.write, b"abcdef").unwrap();
    write(&ours.write, b"|").unwrap();
    assert_eq!(splice(&native.read, &ours.write, 100), Ok(12));
    assert_eq!(read_exact(&ours.read, 17), b"0123|456789abcdef");
}

fn short_for_room(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    // A slot of each is in use.
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        write(&to.write, b"x").unwrap();
        fill(&from.write, PAGE);
        assert_eq!(
            splice(&from.read, &to.write, 2 * CAPACITY),
            Ok(CAPACITY - PAGE)
        );
        assert_eq!(try_splice(&from.read, &to.write, 1), Err(Errno::AGAIN));
        assert_eq!(
            read_exact(&to.read, CAPACITY - PAGE + 1).len(),
            CAPACITY - PAGE + 1
        );
        assert_eq!(splice(&from.read, &to.write, 2 * CAPACITY), Ok(PAGE));
        assert_eq!(read(&to.read, CAPACITY).unwrap(), [b'f'; PAGE]);
    }
}

fn short_for_data(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        write(&from.write, &[b'x'; 3 * PAGE + 5]).unwrap();
        assert_eq!(splice(&from.read, &to.write, CAPACITY), Ok(3 * PAGE + 5));
        assert_eq!(read_exact(&to.read, 3 * PAGE + 5).len(), 3 * PAGE + 5);
    }
}

fn end_of_stream(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    assert_eq!(splice(&ours.read, &native.write, 0), Ok(0));
    write(&ours.write, b"last").unwrap();
    drop(ours.write);
    assert_eq!(splice(&ours.read, &native.write, 100), Ok(4));
    assert_eq!(splice(&ours.read, &native.write, 100), Ok(0));

    let ours = ends(subject);
    drop(native.write);
    assert_eq!(splice(&native.read, &ours.write, 0), Ok(0));
    assert_eq!(splice(&native.read, &ours.write, 100), Ok(4));
    assert_eq!(splice(&native.read, &ours.write, 100), Ok(0));
    assert_eq!(read(&ours.read, 100).as_deref(), Ok(&b"last"[..]));
    // The end is looked for before the room.
    fill(&ours.write, PAGE);
    assert_eq!(
        try_splice(&native.read, &ours.write, 100),
        Err(Errno::AGAIN)
    );
}

fn no_readers(subject: &Subject) {
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    let native = Subject::Native.pipe();
    write(&native.write, b"stays").unwrap();
    let Pipe { read: r, write: w } = ends(subject);
    drop(r);
    assert_eq!(splice(&native.read, &w, 100), Err(Errno::PIPE));
    assert_eq!(signal::handled(), 1);
    assert_eq!(splice(&native.read, &w, 0), Ok(0));
    assert_eq!(queued(&native.read), 5);
    drop(w);

    let ours = ends(subject);
    write(&ours.write, b"stays").unwrap();
    let Pipe { read: r, write: w } = native;
    drop(r);
    assert_eq!(splice(&ours.read, &w, 100), Err(Errno::PIPE));
    assert_eq!(signal::handled(), 2);
    assert_eq!(read(&ours.read, 100).as_deref(), Ok(&b"stays"[..]));
}

const PACKETS: PipeFlags = PipeFlags::CLOEXEC.union(PipeFlags::DIRECT);

fn packets(subject: &Subject) {
    let ours = subject.pipe_with(PACKETS).unwrap();
    let native = Subject::Native.pipe_with(PACKETS).unwrap();
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        write(&from.write, b"one").unwrap();
        write(&from.write, b"three").unwrap();
        assert_eq!(splice(&from.read, &to.write, 100), Ok(8));
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"one"[..]));
        assert_eq!(read(&to.read, 1).as_deref(), Ok(&b"t"[..]));
        assert_eq!(
            queued(&to.read),
            0,
            "what a read leaves of a packet is gone"
        );
    }
    // What was no packet becomes none, whatever the flag of the end that takes it.
    let stream = subject.pipe();
    write(&stream.write, b"stream").unwrap();
    assert_eq!(splice(&stream.read, &native.write, 100), Ok(6));
    assert_eq!(read(&native.read, 2).as_deref(), Ok(&b"st"[..]));
    assert_eq!(queued(&native.read), 4);
    let stream = Subject::Native.pipe();
    write(&stream.write, b"stream").unwrap();
    assert_eq!(splice(&stream.read, &ours.write, 100), Ok(6));
    assert_eq!(read(&ours.read, 2).as_deref(), Ok(&b"st"[..]));
    assert_eq!(queued(&ours.read), 4);
}

fn part_of_packet(subject: &Subject) {
    let ours = subject.pipe_with(PACKETS).unwrap();
    let native = Subject::Native.pipe_with(PACKETS).unwrap();
    for (from, to) in [(&ours, &native), (&native, &ours)] {
        write(&from.write, b"0123456789").unwrap();
        write(&from.write, b"next").unwrap();
        assert_eq!(splice(&from.read, &to.write, 4), Ok(4));
        assert_eq!(splice(&from.read, &to.write, 8), Ok(8));
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"0123"[..]));
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"456789"[..]));
        assert_eq!(read(&to.read, 100).as_deref(), Ok(&b"ne"[..]));
        assert_eq!(read(&from.read, 1).as_deref(), Ok(&b"x"[..]));
        assert_eq!(queued(&from.read), 0);
    }
}

// A config that publishes a slot before it fills it leaves an empty one behind.
fn skips_what_failed(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    // SAFETY: no byte at this address can be read, and none is.
    let failed = checked(unsafe { libc::write(number(&ours.write), std::ptr::dangling(), 100) });
    assert_eq!(failed, Err(Errno::FAULT));
    assert_eq!(
        try_splice(&ours.read, &native.write, 100),
        Err(Errno::AGAIN)
    );
    // SAFETY: as above.
    let failed = checked(unsafe { libc::write(number(&ours.write), std::ptr::dangling(), 100) });
    assert_eq!(failed, Err(Errno::FAULT));
    write(&ours.write, b"good").unwrap();
    assert_eq!(splice(&ours.read, &native.write, 100), Ok(4));
    assert_eq!(read(&native.read, 100).as_deref(), Ok(&b"good"[..]));
}

fn errors(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    assert_eq!(splice(&ours.write, &native.write, 1), Err(Errno::BADF));
    assert_eq!(splice(&ours.read, &native.read, 1), Err(Errno::BADF));
    assert_eq!(splice(&native.read, &ours.read, 1), Err(Errno::BADF));
    assert_eq!(splice(&native.write, &ours.write, 1), Err(Errno::BADF));
    // SAFETY: no pointers.
    let wrong = checked(unsafe {
        libc::splice(
            number(&ours.read),
            std::ptr::null_mut(),
            number(&native.write),
            std::ptr::null_mut(),
            1,
            16,
        )
    });
    assert_eq!(wrong, Err(Errno::INVAL));
}

fn both_ours(subject: &Subject) {
    let first = ends(subject);
    let second = match subject {
        Subject::Fifo(_) => first.write.try_clone().unwrap(),
        _ => subject.pipe().write,
    };
    write(&first.write, b"stays").unwrap();
    assert_eq!(splice(&first.read, &second, 100), Err(Errno::INVAL));
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    assert_eq!(
        splice(&first.read, &null, 100),
        Err(Errno::INVAL),
        "one of the two must be a pipe of the kernel's"
    );
    assert_eq!(queued(&first.read), 5);
}

fn counted(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    write(&native.write, &[b'x'; PAGE + 1]).unwrap();
    splice(&native.read, &ours.write, CAPACITY).unwrap();
    let stats = get_stats(&ours.read).unwrap();
    assert_eq!((stats.writes, stats.bytes_written), (1, PAGE as u64 + 1));
    splice(&ours.read, &native.write, PAGE).unwrap();
    splice(&ours.read, &native.write, PAGE).unwrap();
    assert_eq!(try_splice(&ours.read, &native.write, 1), Err(Errno::AGAIN));
    let stats = get_stats(&ours.read).unwrap();
    assert_eq!((stats.reads, stats.bytes_read), (2, PAGE as u64 + 1));
    assert_eq!(stats.time_updates, 0, "a splice touches no times");
}

fn direct_read_end(subject: &Subject) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    let flags = fcntl_getfl(&ours.read).unwrap();
    fcntl_setfl(&ours.read, flags | OFlags::DIRECT).unwrap();
    assert_eq!(splice(&ours.read, &native.write, 100), Err(Errno::AGAIN));
    write(&ours.write, b"copied").unwrap();
    assert_eq!(splice(&ours.read, &native.write, 100), Ok(6));
    assert_eq!(read(&native.read, 100).as_deref(), Ok(&b"copied"[..]));
}
