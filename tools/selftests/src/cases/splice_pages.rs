// SPDX-License-Identifier: GPL-2.0
//! Whose pages lie in a pipe after a splice or a sendfile: which are shared, and that nobody writes to
//! what is not his.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::thread::scope;

use altpipe_uapi::get_stats;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::case::{Area, Case};
use crate::end::{
    CAPACITY, PAGE, checked, fill, number, queued, read_exact, set_nonblocking, write,
};
use crate::signal::{self, Interrupted};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};
use crate::transfer::{ends, file_of, sendfile, splice};

/// Cases about pages that are not the pipe's own, and their sources.
pub const AREA: Area = Area {
    name: "splice_pages",
    cases: &[
        Case::every("sendfile puts a file's bytes into a pipe", sendfile_in),
        Case::fifo("sendfile puts a file's bytes into a FIFO", sendfile_in),
        Case::every(
            "sendfile comes back short where the pipe is full, and does not wait",
            sendfile_short,
        ),
        Case::every(
            "sendfile into a full pipe waits for room, or is EAGAIN",
            sendfile_waits,
        ),
        Case::every(
            "sendfile without readers is EPIPE with SIGPIPE",
            sendfile_no_readers,
        ),
        Case::every(
            "sendfile from a read end to a file is EINVAL",
            sendfile_from,
        ),
        Case::every(
            "a file's page lies in the pipe itself: a later change of the file shows",
            shares_file_page,
        ),
        Case::fifo("a file's page lies in a FIFO itself", shares_file_page),
        Case::every(
            "a file's page goes on to a native pipe and comes back, still the file's",
            shares_on,
        ),
        Case::every(
            "a write behind a file's page does not go into the file",
            file_page_is_sealed,
        ),
        Case::every(
            "a write behind given memory does not go into that memory",
            memory_is_sealed,
        ),
        Case::altpipe(
            "a page that is not the pipe's own is not used again",
            not_recycled,
        ),
        Case::every(
            "what is shared with a native pipe stays as it was when the pipe is written on",
            shared_stays,
        ),
        Case::every("a device's bytes go in", from_device),
        Case::every(
            "a socket's bytes go in, and the pipe's out to a socket",
            sockets,
        ),
        Case::every("the pipe's bytes go out to a file", to_file),
        Case::every("a page outlives the pipe that it came from", outlives),
    ],
};

/// The byte at a place of a file.
fn byte_at(place: usize) -> u8 {
    (place.wrapping_mul(0x9E37_79B1) >> 11) as u8
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(byte_at).collect()
}

fn sendfile_in(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let data = bytes(3 * PAGE + 100);
    let file = file_of(&data);
    assert_eq!(sendfile(&file, &w, 10), Ok(10));
    assert_eq!(sendfile(&file, &w, CAPACITY), Ok(data.len() - 10));
    assert_eq!(sendfile(&file, &w, CAPACITY), Ok(0), "the file's end");
    assert_eq!(queued(&r), data.len());
    assert_eq!(read_exact(&r, data.len()), data);
}

fn sendfile_short(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let data = bytes(4 * CAPACITY);
    let file = file_of(&data);
    assert_eq!(sendfile(&file, &w, 4 * CAPACITY), Ok(CAPACITY));
    read_exact(&r, 3 * PAGE);
    assert_eq!(sendfile(&file, &w, 4 * CAPACITY), Ok(3 * PAGE));
    assert_eq!(read_exact(&r, CAPACITY), data[3 * PAGE..][..CAPACITY]);
    // A pipe that takes more than the one by which sendfile works.
    subject.resize(&w, 4 * CAPACITY as u32).unwrap();
    let file = file_of(&[&data[..], &data].concat());
    assert_eq!(sendfile(&file, &w, 8 * CAPACITY), Ok(4 * CAPACITY));
    assert_eq!(read_exact(&r, data.len()), data);
    assert_eq!(sendfile(&file, &w, CAPACITY), Ok(CAPACITY));
    assert_eq!(read_exact(&r, CAPACITY), data[..CAPACITY]);
}

fn sendfile_waits(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let file = file_of(b"at last");
    fill(&w, PAGE);
    set_nonblocking(&w, true);
    assert_eq!(sendfile(&file, &w, 100), Err(Errno::AGAIN));
    set_nonblocking(&w, false);
    signal::count(libc::SIGUSR1, Interrupted::Fails);
    scope(|s| {
        let waiting = Task::asleep_in(s, Call::Sendfile, &w, || sendfile(&file, &w, 100));
        signal::send(libc::SIGUSR1, waiting.watched());
        assert_eq!(waiting.join(), Err(Errno::INTR));
        let waiting = Task::asleep_in(s, Call::Sendfile, &w, || sendfile(&file, &w, 100));
        read_exact(&r, PAGE);
        assert_eq!(waiting.join(), Ok(7), "nothing of the file was lost before");
    });
    read_exact(&r, CAPACITY - PAGE);
    assert_eq!(read_exact(&r, 7), b"at last");
}

fn sendfile_no_readers(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let mut file = file_of(b"stays");
    drop(r);
    signal::count(libc::SIGPIPE, Interrupted::Restarts);
    assert_eq!(sendfile(&file, &w, 100), Err(Errno::PIPE));
    assert_eq!(signal::handled(), 1);
    let mut rest = String::new();
    file.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "stays");
}

fn sendfile_from(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let file = file_of(b"");
    write(&w, b"stays").unwrap();
    assert_eq!(sendfile(&r, &file, 100), Err(Errno::INVAL));
    assert_eq!(queued(&r), 5);
}

fn shares_file_page(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let file = file_of(b"before");
    assert_eq!(sendfile(&file, &w, 6), Ok(6));
    file.write_all_at(b"after!", 0).unwrap();
    assert_eq!(read_exact(&r, 6), b"after!");
}

fn shares_on(subject: &Subject) {
    let first = subject.pipe();
    let native = Subject::Native.pipe();
    let last = subject.pipe();
    let file = file_of(b"before");
    sendfile(&file, &first.write, 6).unwrap();
    assert_eq!(splice(&first.read, &native.write, 6), Ok(6));
    assert_eq!(splice(&native.read, &last.write, 6), Ok(6));
    file.write_all_at(b"after!", 0).unwrap();
    assert_eq!(read_exact(&last.read, 6), b"after!");
}

fn file_page_is_sealed(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let data = bytes(PAGE);
    let file = file_of(&data);
    for len in [1, 10, PAGE / 2] {
        let mut offset = 0;
        assert_eq!(
            rustix::fs::sendfile(&w, &file, Some(&mut offset), len),
            Ok(len)
        );
        assert_eq!(write(&w, &[b'!'; 100]), Ok(100));
        assert_eq!(read_exact(&r, len), data[..len]);
        assert_eq!(read_exact(&r, 100), [b'!'; 100]);
    }
    let mut now = vec![0; PAGE];
    file.read_exact_at(&mut now, 0).unwrap();
    assert_eq!(now, data);
}

fn memory_is_sealed(subject: &Subject) {
    let Pipe { read: r, write: w } = ends(subject);
    let native = Subject::Native.pipe();
    // SAFETY: a fresh mapping, unmapped once at the end.
    let page = unsafe {
        mmap_anonymous(
            std::ptr::null_mut(),
            PAGE,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }
    .unwrap()
    .cast::<u8>();
    // SAFETY: within the mapping, which is nobody else's.
    let memory = unsafe { std::slice::from_raw_parts_mut(page, PAGE) };
    memory.fill(b'm');
    let vector = libc::iovec {
        iov_base: page.cast(),
        iov_len: 10,
    };
    // SAFETY: the vector's ten bytes are in the mapping.
    let given = checked(unsafe { libc::vmsplice(number(&native.write), &vector, 1, 0) });
    assert_eq!(given, Ok(10));
    assert_eq!(splice(&native.read, &w, 10), Ok(10));
    write(&w, b"behind it").unwrap();
    assert_eq!(memory, [b'm'; PAGE]);
    assert_eq!(read_exact(&r, 19), b"mmmmmmmmmmbehind it");
    // What a page of this kind may not become is the pipe's own.
    write(&w, &[b'!'; PAGE]).unwrap();
    assert_eq!(memory, [b'm'; PAGE]);
    // SAFETY: the mapping from above, not used any more.
    unsafe { munmap(page.cast(), PAGE) }.unwrap();
}

// The pages come from the device without anybody else who has them: nothing but their kind says that
// they are not the pipe's own.
fn not_recycled(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let zero = File::open("/dev/zero").unwrap();
    for _ in 0..3 {
        assert_eq!(sendfile(&zero, &w, 2 * PAGE), Ok(2 * PAGE));
        assert_eq!(read_exact(&r, 2 * PAGE), [0; 2 * PAGE]);
    }
    write(&w, b"x").unwrap();
    assert_eq!(get_stats(&r).unwrap().pages_pool, 0);
}

fn shared_stays(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    for round in 0..20u8 {
        let data = [b'a' + round; PAGE];
        // Part of a page, so that both have it; then all of it.
        write(&ours.write, &data).unwrap();
        assert_eq!(splice(&ours.read, &native.write, 100), Ok(100));
        assert_eq!(read_exact(&ours.read, PAGE - 100), data[100..]);
        write(&ours.write, &[b'!'; PAGE]).unwrap();
        write(&ours.write, &[b'?'; 3]).unwrap();
        assert_eq!(read_exact(&native.read, 100), data[..100]);
        read_exact(&ours.read, PAGE + 3);
    }
}

fn from_device(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    let zero = File::open("/dev/zero").unwrap();
    assert_eq!(sendfile(&zero, &ours.write, 5000), Ok(5000));
    assert_eq!(read_exact(&ours.read, 5000), [0; 5000]);
    assert_eq!(splice(&zero, &native.write, 5000), Ok(5000));
    assert_eq!(splice(&native.read, &ours.write, 5000), Ok(5000));
    assert_eq!(read_exact(&ours.read, 5000), [0; 5000]);
}

// A stream socket hands on its own memory, in ranges that begin anywhere.
fn sockets(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    let (left, right) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let data = bytes(7 * PAGE + 77);
    scope(|s| {
        Task::spawn(s, || {
            for part in data.chunks(9000) {
                assert_eq!(write(&left, part), Ok(part.len()));
            }
        });
        let mut moved = 0;
        while moved < data.len() {
            let count = splice(&right, &native.write, CAPACITY).unwrap();
            let mut left = count;
            while left > 0 {
                left -= splice(&native.read, &ours.write, left).unwrap();
            }
            assert_eq!(read_exact(&ours.read, count), data[moved..][..count]);
            moved += count;
        }
    });
    scope(|s| {
        Task::spawn(s, || {
            for part in data.chunks(9000) {
                assert_eq!(write(&ours.write, part), Ok(part.len()));
            }
        });
        let mut moved = 0;
        while moved < data.len() {
            let count = splice(&ours.read, &native.write, CAPACITY).unwrap();
            let mut unsent = count;
            while unsent > 0 {
                unsent -= splice(&native.read, &left, unsent).unwrap();
            }
            assert_eq!(read_exact(&right, count), data[moved..][..count]);
            moved += count;
        }
    });
}

fn to_file(subject: &Subject) {
    let ours = ends(subject);
    let native = Subject::Native.pipe();
    let data = bytes(10 * PAGE + 10);
    let mut file = file_of(b"");
    for part in [&data[..5], &data[5..]] {
        write(&ours.write, part).unwrap();
        assert_eq!(splice(&ours.read, &native.write, CAPACITY), Ok(part.len()));
        assert_eq!(splice(&native.read, &file, CAPACITY), Ok(part.len()));
    }
    let mut written = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_end(&mut written).unwrap();
    assert_eq!(written, data);
}

fn outlives(subject: &Subject) {
    let native = Subject::Native.pipe();
    let ours = ends(subject);
    let data = bytes(5 * PAGE);
    write(&ours.write, &data).unwrap();
    assert_eq!(splice(&ours.read, &native.write, 5 * PAGE), Ok(5 * PAGE));
    drop(ours);
    let others = ends(subject);
    write(&others.write, &[b'!'; 5 * PAGE]).unwrap();
    assert_eq!(read_exact(&native.read, 5 * PAGE), data);

    // And the other way.
    write(&native.write, &data).unwrap();
    assert_eq!(read_exact(&others.read, 5 * PAGE), [b'!'; 5 * PAGE]);
    assert_eq!(splice(&native.read, &others.write, 5 * PAGE), Ok(5 * PAGE));
    drop(native);
    let another = Subject::Native.pipe();
    write(&another.write, &[b'!'; 5 * PAGE]).unwrap();
    assert_eq!(read_exact(&others.read, 5 * PAGE), data);
}
