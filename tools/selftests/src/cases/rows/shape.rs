// SPDX-License-Identifier: GPL-2.0
//! Rows about how a pipe is made and what it looks like: not sequences, but answers put into a line
//! of text each.

use std::fmt::Debug;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::{OFlags, fstat, fstatfs};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::end::{PAGE, fill, poll_now, queued, read, read_exact, set_nonblocking, write};
use crate::fifo::{Fifo, Fifos};
use crate::subject::Subject;
use crate::transfer::{file_of, sendfile, splice, try_splice};

/// Answers in the order of the questions.
#[derive(Default)]
struct Answers(Vec<String>);

impl Answers {
    fn note(&mut self, what: &str, answer: impl Debug) {
        self.0.push(format!("{what}: {answer:?}"));
    }
}

// Asks the kernel's own kind and the subject's.
fn alike(subject: &Subject, ask: impl Fn(&Subject, &mut Answers)) {
    let model = match subject {
        Subject::Fifo(_) => Subject::Fifo(Fifos::Native),
        _ => Subject::Native,
    };
    let answers = |subject: &Subject| {
        let mut answers = Answers::default();
        ask(subject, &mut answers);
        answers.0
    };
    assert_eq!(answers(subject), answers(&model));
}

pub fn default_size(subject: &Subject) {
    alike(subject, |subject, answers| {
        let pipe = subject.pipe();
        answers.note("by the read end", subject.size(&pipe.read));
        answers.note("by the write end", subject.size(&pipe.write));
        answers.note("what goes in", fill(&pipe.write, PAGE));
    });
    assert_eq!(fill(Subject::Native.pipe().write, PAGE), 16 * PAGE);
}

pub fn counts(subject: &Subject) {
    alike(subject, |subject, answers| {
        let pipe = subject.pipe();
        let mut both = |what: &str| {
            answers.note(what, (queued(&pipe.read), queued(&pipe.write)));
        };
        both("empty");
        write(&pipe.write, &[1; 3]).expect("write");
        write(&pipe.write, &[2; 4]).expect("write");
        both("3 and 4");
        write(&pipe.write, &[3; 2 * PAGE]).expect("write");
        both("and two pages");
        read(&pipe.read, 5).expect("read");
        both("less 5");
        read(&pipe.read, PAGE + 1).expect("read");
        both("less a page and 1");
        read_exact(&pipe.read, PAGE + 1);
        both("empty again");
    });
}

pub fn stat(subject: &Subject) {
    let block_size = subject.config().block_size;
    alike(subject, |subject, answers| {
        let pipe = subject.pipe();
        let another = subject.pipe();
        let [r, w, other] = [&pipe.read, &pipe.write, &another.read]
            .map(|end: &OwnedFd| fstat(end).expect("fstat"));
        answers.note("mode", format!("{:o}", r.st_mode));
        answers.note("size, links, blocks", (r.st_size, r.st_nlink, r.st_blocks));
        answers.note("owner", (r.st_uid, r.st_gid));
        answers.note("device", r.st_rdev);
        let same = |a: &rustix::fs::Stat, b: &rustix::fs::Stat| {
            (a.st_ino == b.st_ino, a.st_dev == b.st_dev)
        };
        answers.note("both ends", same(&r, &w));
        answers.note("two pipes", same(&r, &other));
        let size = r.st_blksize as u64;
        let native = matches!(subject, Subject::Native);
        answers.note(
            "block size",
            size == if native { 4096 } else { block_size.into() },
        );
    });
}

pub fn statfs(subject: &Subject) {
    alike(subject, |subject, answers| {
        let pipe = subject.pipe();
        for end in [&pipe.read, &pipe.write] {
            let it = fstatfs(end).expect("fstatfs");
            answers.note("sizes", (it.f_bsize, it.f_frsize, it.f_namelen));
            answers.note("blocks and files", (it.f_blocks, it.f_bfree, it.f_files));
            answers.note("magic", it.f_type as i64 == subject.magic());
        }
    });
}

pub fn unknown_flag(subject: &Subject) {
    alike(subject, |subject, answers| {
        for flag in [libc::O_APPEND, libc::O_RDWR, libc::O_PATH, 1 << 30] {
            let made = subject.pipe_with(PipeFlags::from_bits_retain(flag as u32));
            answers.note("a flag", made.err());
        }
        let all = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK | PipeFlags::DIRECT;
        answers.note("known ones", subject.pipe_with(all).err());
    });
}

pub fn full_table(subject: &Subject) {
    alike(subject, |subject, answers| {
        let limit = getrlimit(Resource::Nofile);
        // The lowest number that is free tells how many may be open.
        let lowest = || {
            let file = rustix::io::dup(std::io::stdin()).expect("dup");
            u64::from(std::os::fd::AsRawFd::as_raw_fd(&file).unsigned_abs())
        };
        let first = lowest();
        for room in 0..3 {
            let low = Rlimit {
                current: Some(first + room),
                ..limit
            };
            setrlimit(Resource::Nofile, low).expect("setrlimit");
            let made = subject.pipe_with(PipeFlags::CLOEXEC);
            answers.note("with room for so many", (room, made.err()));
            setrlimit(Resource::Nofile, limit).expect("setrlimit");
            answers.note("left open", lowest() - first);
        }
    });
}

pub fn transfers(subject: &Subject) {
    alike(subject, |subject, answers| {
        let pipe = subject.pipe();
        let file = file_of(b"");
        write(&pipe.write, b"0123456789").expect("write");
        answers.note("sendfile out", sendfile(&pipe.read, &file, 5));
        answers.note("count", queued(&pipe.read));
        let file = file_of(b"of a file");
        answers.note("sendfile in", sendfile(&file, &pipe.write, 100));
        answers.note("and again", sendfile(&file, &pipe.write, 100));
        let native = Subject::Native.pipe();
        answers.note("splice out", splice(&pipe.read, &native.write, 14));
        answers.note("what came", read(&native.read, 100));
        answers.note("what stayed", queued(&pipe.read));
        write(&native.write, b"back").expect("write");
        answers.note("splice in", splice(&native.read, &pipe.write, 3));
        answers.note("all of it", read(&pipe.read, 100));
        answers.note("nothing", try_splice(&pipe.read, &native.write, 1));
        drop(pipe.write);
        answers.note("the end", splice(&pipe.read, &native.write, 1));
    });
}

fn poll_bits(end: impl AsFd) -> (PollFlags, PollFlags) {
    let both = PollFlags::IN | PollFlags::OUT;
    (poll_now(&end, PollFlags::empty()), poll_now(end, both))
}

pub fn by_name(subject: &Subject) {
    alike(subject, |subject, answers| {
        let fifo: Fifo = subject.fifo();
        let error = |made: rustix::io::Result<OwnedFd>| made.err();
        answers.note("a writer without reader", error(fifo.try_writer()));
        let r = fifo.try_reader();
        answers.note("read before a writer", read(&r, 9));
        answers.note("poll", poll_bits(&r));
        let w = fifo.try_writer().expect("there is a reader");
        answers.note("read with a writer", read(&r, 9));
        answers.note("write", write(&w, b"abc"));
        answers.note("poll", (poll_bits(&r), poll_bits(&w)));
        drop(w);
        answers.note("poll without writers", poll_bits(&r));
        answers.note("read", (read(&r, 2), read(&r, 9), read(&r, 9)));
        let w = fifo.try_writer().expect("there is a reader");
        answers.note("another writer", (read(&r, 9), poll_bits(&r)));
        answers.note("write", write(&w, b"lost"));
        drop(r);
        answers.note("poll without readers", poll_bits(&w));
        drop(w);
        let both = fifo.open_both();
        answers.note("after the last close", queued(&both));
        set_nonblocking(&both, true);
        answers.note("read", read(&both, 9));
        answers.note("write", write(&both, b"talk"));
        answers.note("read", read(&both, 9));
        answers.note("direct", error(fifo.open(OFlags::RDWR | OFlags::DIRECT)));
        answers.note(
            "no direction",
            error(fifo.open(OFlags::from_bits_retain(libc::O_ACCMODE as u32))),
        );
    });
    assert_eq!(
        Subject::Fifo(Fifos::Native).fifo().try_writer().err(),
        Some(Errno::NXIO)
    );
}
