// SPDX-License-Identifier: GPL-2.0
//! The calls whose allocations are made to fail.
//!
//! A scenario prepares what it needs, makes the one call under test through its [`Point`], checks
//! what the call left, and then makes it again without a fault, which must succeed. Where the kernel
//! has such a call, it is the oracle: the same row holds for it.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};

use altpipe_uapi::{DEVICE, raw};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};
use rustix::pipe::PipeFlags;

use super::point::{Maker, Point, again, open};
use crate::end::{
    CAPACITY, PAGE, checked, number, queued, read, read_exact, set_nonblocking, write,
};
use crate::knobs;
use crate::memory::ioctl_on;
use crate::module::{Module, traces};
use crate::subject::Pipe;

/// What allocations a call makes.
#[derive(Clone, Copy)]
pub enum Points {
    /// So many, at the least, each of which fails it.
    Least(u32),
    /// So many, at the least, and each alone may do without: another is made in its place.
    Spared(u32),
    /// Any number, and none of them fails it.
    Harmless,
    /// None: the call must not depend on memory.
    None,
}

/// One call.
pub struct Row {
    /// What the call is.
    pub name: &'static str,
    /// Its fault points on the kernel's own pipes; without, it has no such call.
    pub native: Option<Points>,
    /// Its fault points on altpipe's; without, the row is for the kernel's alone.
    pub altpipe: Option<Points>,
    /// The errors that it may give for want of memory.
    pub errors: &'static [Errno],
    /// The scenario.
    pub run: fn(&mut Point<'_>),
}

use Points::{Harmless, Least, None as NoPoint, Spared};

const NO_MEMORY: &[Errno] = &[Errno::NOMEM];

/// Rows about pipes without a name.
pub const PIPES: &[Row] = &[
    Row {
        name: "create",
        native: Some(Least(6)),
        altpipe: Some(Least(6)),
        // pipe2(2) has this for some lacks, and altpipe says whatever it does.
        errors: &[Errno::NOMEM, Errno::NFILE],
        run: create,
    },
    Row {
        name: "open an end again",
        native: Some(Least(1)),
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: reopen,
    },
    Row {
        name: "write a byte to an empty pipe",
        native: Some(Spared(1)),
        altpipe: Some(Spared(1)),
        errors: NO_MEMORY,
        run: |point| write_some(point, 1),
    },
    Row {
        name: "write three pages",
        native: Some(Spared(3)),
        altpipe: Some(Spared(3)),
        errors: NO_MEMORY,
        run: |point| write_some(point, 3 * PAGE),
    },
    Row {
        name: "write what fills the pipe",
        native: Some(Spared(16)),
        altpipe: Some(Spared(16)),
        errors: NO_MEMORY,
        run: |point| write_some(point, CAPACITY),
    },
    Row {
        name: "write behind a byte in the same page",
        native: Some(Harmless),
        altpipe: Some(Harmless),
        errors: &[],
        run: append,
    },
    Row {
        name: "read",
        native: Some(NoPoint),
        altpipe: Some(NoPoint),
        errors: &[],
        run: take,
    },
    Row {
        name: "grow",
        native: Some(Least(1)),
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: |point| resize(point, 64 * PAGE),
    },
    Row {
        name: "shrink",
        native: Some(Least(1)),
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: |point| resize(point, PAGE),
    },
    Row {
        name: "ask for SIGIO",
        native: Some(Least(1)),
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: ask_for_signal,
    },
    Row {
        name: "watch by epoll",
        native: Some(Least(1)),
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: watch,
    },
    Row {
        name: "send a file",
        native: Some(Harmless),
        altpipe: None,
        errors: NO_MEMORY,
        run: send_file,
    },
    Row {
        name: "ask for the config",
        native: None,
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: ask_for_config,
    },
];

/// Rows about pipes with a name.
pub const FIFOS: &[Row] = &[
    Row {
        name: "open a FIFO that nobody has open",
        native: Some(Least(2)),
        altpipe: Some(Least(2)),
        errors: NO_MEMORY,
        run: open_fifo,
    },
    Row {
        name: "open a FIFO that is open",
        native: Some(Least(1)),
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: open_fifo_again,
    },
];

/// Rows about the device, which nobody has open.
pub const DEVICE_ROWS: &[Row] = &[
    Row {
        name: "open the control device",
        native: None,
        altpipe: Some(Least(4)),
        errors: NO_MEMORY,
        run: open_control,
    },
    Row {
        name: "show a knob",
        native: None,
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: show,
    },
    Row {
        name: "store a preset",
        native: None,
        altpipe: Some(Least(1)),
        errors: NO_MEMORY,
        run: store,
    },
];

/// The row about the module, which is not loaded.
pub const MODULE: Row = Row {
    name: "load the module",
    native: None,
    // Its own init alone: the control device, the file system, a FIFO device, and their files.
    altpipe: Some(Least(50)),
    errors: NO_MEMORY,
    run: load,
};

fn create(point: &mut Point<'_>) {
    let maker = point.maker;
    let Maker::Pipes(subject) = maker else {
        unreachable!()
    };
    if let Ok(pipe) = point.call(|| subject.pipe_with(PipeFlags::CLOEXEC)) {
        works(&pipe);
    }
    works(&subject.pipe());
}

fn works(pipe: &Pipe) {
    assert_eq!(write(&pipe.write, b"abc"), Ok(3));
    assert_eq!(read(&pipe.read, 9).as_deref(), Ok(&b"abc"[..]));
}

fn reopen(point: &mut Point<'_>) {
    let Pipe { read: r, write: w } = point.subject().pipe();
    let path = again(&w);
    if let Ok(other) = point.call(|| open(&path, OFlags::WRONLY)) {
        write(&other, b"x").unwrap();
        read(&r, 9).unwrap();
    }
    let other = open(&path, OFlags::WRONLY).unwrap();
    drop(w);
    assert_eq!(write(&other, b"abc"), Ok(3));
    drop(other);
    // A failed open that was counted for a writer would leave this asleep.
    assert_eq!(read_exact(&r, 9), b"abc");
}

// Writes to an empty pipe.
fn write_some(point: &mut Point<'_>, len: usize) {
    let Pipe { read: r, write: w } = point.subject().pipe();
    let data: Vec<_> = (0..len).map(|at| at as u8).collect();
    set_nonblocking(&w, true);
    let done = point.call(|| write(&w, &data)).unwrap_or_default();
    assert!(
        done == 0 || done == len || len > PAGE && done % PAGE == 0,
        "{done} of {len} bytes"
    );
    assert_eq!(queued(&r), done);
    assert_eq!(read_exact(&r, done), data[..done]);
    assert_eq!(write(&w, &data), Ok(len));
    assert_eq!(read_exact(&r, len), data);
}

fn append(point: &mut Point<'_>) {
    let Pipe { read: r, write: w } = point.subject().pipe();
    write(&w, b"a").unwrap();
    assert_eq!(point.call(|| write(&w, b"b")), Ok(1));
    assert_eq!(read(&r, 9).as_deref(), Ok(&b"ab"[..]));
}

fn take(point: &mut Point<'_>) {
    let Pipe { read: r, write: w } = point.subject().pipe();
    let mut data = [0; 9];
    write(&w, &[b'a'; 2 * PAGE]).unwrap();
    assert_eq!(point.call(|| rustix::io::read(&r, &mut data)), Ok(9));
    assert_eq!(data, [b'a'; 9]);
}

fn resize(point: &mut Point<'_>, bytes: usize) {
    let maker = point.maker;
    let Maker::Pipes(subject) = maker else {
        unreachable!()
    };
    let Pipe { read: r, write: w } = subject.pipe();
    write(&w, b"abc").unwrap();
    match point.call(|| subject.resize(&r, bytes as u32)) {
        Ok(got) => assert_eq!(got, bytes),
        Err(_) => assert_eq!(subject.size(&r), Ok(CAPACITY)),
    }
    assert_eq!(subject.resize(&r, bytes as u32), Ok(bytes));
    assert_eq!(read(&r, 9).as_deref(), Ok(&b"abc"[..]));
}

fn ask_for_signal(point: &mut Point<'_>) {
    let pipe = point.subject().pipe();
    // Nobody owns the files, so no signal comes.
    let ask = |fd: i32, flags: i32| {
        // SAFETY: touches no memory.
        checked(unsafe { libc::fcntl(fd, libc::F_SETFL, flags) } as isize).map(drop)
    };
    let flags = |fd: i32| {
        // SAFETY: touches no memory.
        unsafe { libc::fcntl(fd, libc::F_GETFL) & libc::O_ASYNC }
    };
    let fd = number(&pipe.read);
    match point.call(|| ask(fd, libc::O_ASYNC)) {
        Ok(()) => assert_ne!(flags(fd), 0),
        Err(_) => assert_eq!(flags(fd), 0),
    }
    ask(fd, libc::O_ASYNC).unwrap();
    works(&pipe);
    ask(fd, 0).unwrap();
}

fn watch(point: &mut Point<'_>) {
    let Pipe { read: r, write: w } = point.subject().pipe();
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let add = || epoll::add(&epoll, &r, EventData::new_u64(7), EventFlags::IN);
    match point.call(add) {
        Ok(()) => assert_eq!(add(), Err(Errno::EXIST)),
        Err(_) => add().unwrap(),
    }
    write(&w, b"x").unwrap();
    let mut events = Vec::with_capacity(4);
    epoll::wait(
        &epoll,
        rustix::buffer::spare_capacity(&mut events),
        Some(&rustix::event::Timespec::default()),
    )
    .unwrap();
    assert_eq!(events.len(), 1);
}

fn send_file(point: &mut Point<'_>) {
    let Pipe { read: r, write: w } = point.subject().pipe();
    let file = OpenOptions::new()
        .read(true)
        .open("/proc/self/exe")
        .unwrap();
    let send = || -> Result<usize> {
        let mut offset = 0;
        // SAFETY: the offset is ours.
        checked(unsafe {
            libc::sendfile(w.as_raw_fd(), file.as_raw_fd(), &raw mut offset, 2 * PAGE)
        })
    };
    let done = point.call(send).unwrap_or(0);
    assert_eq!(queued(&r), done);
    read_exact(&r, done);
    assert_eq!(send(), Ok(2 * PAGE));
}

fn ask_for_config(point: &mut Point<'_>) {
    let pipe = point.subject().pipe();
    let mut text = [0u8; 1024];
    let mut argument = raw::Text {
        buf: text.as_mut_ptr() as u64,
        len: text.len() as u32,
        pad: 0,
    };
    let mut ask = || ioctl_on(&pipe.read, raw::GET_CONFIG, &mut argument);
    let first = point.call(&mut ask);
    let second = ask().unwrap();
    assert!(first.is_err() || first == Ok(second));
}

fn open_fifo(point: &mut Point<'_>) {
    let maker = point.maker;
    let Maker::Fifos(fifos) = maker else {
        unreachable!()
    };
    let fifo = fifos.fifo(0);
    let path = fifo.path();
    if let Ok(file) = point.call(|| open(&path, OFlags::RDWR | OFlags::NONBLOCK)) {
        through(&file);
    }
    // Nobody has it open now, so nobody reads.
    assert_eq!(
        open(&path, OFlags::WRONLY | OFlags::NONBLOCK).map(drop),
        Err(Errno::NXIO)
    );
    through(&open(&path, OFlags::RDWR | OFlags::NONBLOCK).unwrap());
}

fn open_fifo_again(point: &mut Point<'_>) {
    let maker = point.maker;
    let Maker::Fifos(fifos) = maker else {
        unreachable!()
    };
    let fifo = fifos.fifo(0);
    let path = fifo.path();
    let first = open(&path, OFlags::RDONLY | OFlags::NONBLOCK).unwrap();
    if let Ok(file) = point.call(|| open(&path, OFlags::WRONLY | OFlags::NONBLOCK)) {
        assert_eq!(write(&file, b"x"), Ok(1));
        read(&first, 1).unwrap();
    }
    // Without a writer this is the end of the stream, not EAGAIN.
    assert_eq!(read(&first, 1).as_deref(), Ok(&b""[..]));
    let file = open(&path, OFlags::WRONLY | OFlags::NONBLOCK).unwrap();
    assert_eq!(write(&file, b"abc"), Ok(3));
    assert_eq!(read(&first, 9).as_deref(), Ok(&b"abc"[..]));
}

fn through(file: &OwnedFd) {
    assert_eq!(write(file, b"abc"), Ok(3));
    assert_eq!(read(file, 9).as_deref(), Ok(&b"abc"[..]));
}

fn open_control(point: &mut Point<'_>) {
    let path = std::ffi::CString::new(DEVICE).expect("no NUL in a path");
    let version = |file: OwnedFd| ioctl_on(&file, raw::VERSION, &mut ());
    if let Ok(file) = point.call(|| open(&path, OFlags::RDWR)) {
        assert_eq!(version(file), Ok(1));
    }
    assert_eq!(version(open(&path, OFlags::RDWR).unwrap()), Ok(1));
}

fn show(point: &mut Point<'_>) {
    let file = OpenOptions::new()
        .read(true)
        .open(knobs::path("knobs/tail_update"))
        .unwrap();
    let mut text = [0; 256];
    let mut read = || rustix::io::pread(&file, &mut text, 0);
    let first = point.call(&mut read);
    let second = read();
    assert!(second.is_ok_and(|count| count > 0));
    assert!(first.is_err() || first == second);
}

fn store(point: &mut Point<'_>) {
    let before = knobs::show("preset");
    let file = OpenOptions::new()
        .write(true)
        .open(knobs::path("preset"))
        .unwrap();
    let store = || rustix::io::write(&file, b"v2.6.18");
    match point.call(store) {
        Ok(count) => assert_eq!(count, 7),
        Err(_) => assert_eq!(knobs::show("preset"), before),
    }
    assert_eq!(store(), Ok(7));
    assert!(knobs::show("preset").contains("[v2.6.18]"));
    knobs::store("preset", "v7.3").unwrap();
}

fn load(point: &mut Point<'_>) {
    let maker = point.maker;
    let Maker::File(file) = maker else {
        unreachable!()
    };
    match point.call(|| Module::load_file(file, c"devices=1")) {
        Ok(()) => {
            assert_eq!(traces(), [true; 4]);
            works_loaded();
            unload();
        }
        Err(_) => assert_eq!(traces(), [false; 4]),
    }
}

fn works_loaded() {
    let control = altpipe_uapi::Control::open().unwrap();
    let (read, write) = control.create(altpipe_uapi::Flags::CLOEXEC, "").unwrap();
    works(&Pipe { read, write });
}

fn unload() {
    let module = Module {
        path: std::path::PathBuf::new(),
    };
    module.unload_when_free();
    assert_eq!(traces(), [false; 4]);
}
