// SPDX-License-Identifier: GPL-2.0
//! The control device as a file, and the file system behind it. Its create call has an area of its
//! own.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use altpipe_core::KNOBS;
use altpipe_uapi::{ABI_VERSION, Control, DEVICE, Flags, raw};
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::child::skip;
use crate::end::{PAGE, read, read_exact, write};
use crate::knobs;
use crate::memory::{Absent, NOWHERE, ioctl_at, ioctl_on, write_from};
use crate::process::Process;
use crate::subject::{Subject, errno, values};
use crate::task::Task;

/// Cases about `/dev/altpipe`.
pub const AREA: Area = Area {
    name: "device",
    cases: &[
        Case::device(
            "the device is a character device of the misc class",
            device_node,
        ),
        Case::device("VERSION gives the version of the ABI", version),
        Case::device(
            "an unknown ioctl on the device is ENOTTY, an end's calls included",
            unknown_ioctl,
        ),
        Case::device(
            "the device's calls are ENOTTY on an end",
            device_calls_on_end,
        ),
        Case::device("the device can neither be read nor written", no_io),
        Case::device("altpipefs is registered and cannot be mounted", file_system),
        Case::device(
            "everybody may make pipes, and nobody but root turn a knob or move a limit",
            unprivileged,
        ),
        Case::device(
            "who holds a pipe for ever holds up nobody who makes pipes or looks at them",
            held_pipe,
        ),
        Case::device(
            "knobs may be turned while pipes are made and used",
            knobs_in_motion,
        ),
    ],
};

fn device_node(_: &Subject) {
    const MISC_MAJOR: u32 = 10;
    let node = fs::metadata(DEVICE).unwrap();
    assert!(node.file_type().is_char_device());
    assert_eq!(libc::major(node.rdev()), MISC_MAJOR);
    let text = format!("{}:{}", MISC_MAJOR, libc::minor(node.rdev()));
    assert_eq!(knobs::show("dev"), text);
}

fn version(subject: &Subject) {
    assert_eq!(ABI_VERSION, 1);
    assert_eq!(subject.control().version().unwrap(), 1);
}

fn unknown_ioctl(subject: &Subject) {
    let mut stats = raw::Stats {
        size: size_of::<raw::Stats>() as u32,
        ..Default::default()
    };
    assert_eq!(
        ioctl_on(subject.control(), raw::GET_STATS, &mut stats),
        Err(Errno::NOTTY)
    );
    for (kind, number) in [(raw::TYPE, 6), (raw::TYPE, 255), (b'T'.into(), 1)] {
        assert_eq!(
            ioctl_at(subject.control(), libc::_IO(kind, number), NOWHERE),
            Err(Errno::NOTTY)
        );
    }
    // The size is part of the number: another size is another call.
    assert_eq!(
        ioctl_at(subject.control(), libc::_IO(raw::TYPE, 1), NOWHERE),
        Err(Errno::NOTTY)
    );
}

fn device_calls_on_end(subject: &Subject) {
    let pipe = subject.pipe();
    for end in [&pipe.read, &pipe.write] {
        assert_eq!(
            ioctl_at(end, raw::VERSION, ptr::null_mut()),
            Err(Errno::NOTTY)
        );
        assert_eq!(
            ioctl_on(end, raw::CREATE, &mut raw::Create::default()),
            Err(Errno::NOTTY)
        );
    }
}

fn no_io(subject: &Subject) {
    assert_eq!(read(subject.control(), 1), Err(Errno::INVAL));
    assert_eq!(write(subject.control(), b"x"), Err(Errno::INVAL));
}

fn file_system(_: &Subject) {
    let list = fs::read_to_string("/proc/filesystems").unwrap();
    assert!(
        list.lines().any(|line| line == "nodev\taltpipefs"),
        "{list}"
    );
    // SAFETY: all strings are terminated.
    let ret = unsafe {
        libc::mount(
            c"none".as_ptr(),
            c"/proc".as_ptr(),
            c"altpipefs".as_ptr(),
            0,
            ptr::null(),
        )
    };
    assert_eq!(ret, -1);
    assert_eq!(
        std::io::Error::last_os_error().raw_os_error(),
        Some(libc::EINVAL)
    );
}

const NOBODY: u32 = 65_534;

fn as_nobody(body: impl FnOnce()) {
    Process::fork(|| {
        // SAFETY: touches no memory; the whole process, of one thread, changes its user.
        assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
        body();
    })
    .succeed();
}

fn unprivileged(_: &Subject) {
    as_nobody(|| {
        let control = Control::open().unwrap();
        let (r, w) = control.create(Flags::CLOEXEC, "v5.5,exclusive=1").unwrap();
        write(&w, b"mine").unwrap();
        assert_eq!(read(&r, 9).as_deref(), Ok(&b"mine"[..]));
        let owner = fs::metadata(format!("/proc/self/fd/{}", r.as_raw_fd())).unwrap();
        assert_eq!(owner.uid(), NOBODY);

        let size = control.create(Flags::CLOEXEC, "capacity=2097152");
        assert_eq!(
            size.map_err(|error| errno(&error)).map(drop),
            Err(Errno::PERM)
        );
        for (file, value) in [
            ("preset", "v5.5"),
            ("knobs/exclusive", "0"),
            ("knobs/capacity", "4096"),
            ("limits/user_pages_soft", "0"),
            ("limits/user_pages_hard", "0"),
            ("limits/max_size", "2147483648"),
            ("stats/reset", "1"),
        ] {
            assert_eq!(knobs::store(file, value), Err(Errno::ACCESS), "{file}");
        }
        assert_eq!(knobs::show("knobs/exclusive"), "1", "reading is for all");
        let fifo = fs::File::open("/dev/altpipe0");
        assert_eq!(
            fifo.map_err(|error| errno(&error)).map(drop),
            Err(Errno::ACCESS),
            "what goes through a FIFO is its reader's"
        );
    });
}

// A write whose memory never comes sleeps with the pipe's lock. A user can have that by a file system
// of his own.
fn held_pipe(subject: &Subject) {
    let Some(memory) = Absent::new() else {
        skip("no userfaultfd here");
    };
    let pipe = subject.pipe();
    let (address, w) = (memory.address as usize, &pipe.write);
    scope(|s| {
        let writer = Task::spawn(s, move || write_from(w, address as *const u8, PAGE));
        memory.await_fault();
        for _ in 0..5 {
            let other = subject.pipe();
            write(&other.write, b"free").unwrap();
            knobs::show("stats/writes").parse::<u64>().unwrap();
            let text =
                fs::read_to_string(format!("/proc/self/fdinfo/{}", pipe.read.as_raw_fd())).unwrap();
            assert!(text.contains("altpipe-held:\t1\n"), "{text}");
        }
        assert!(!writer.is_finished());
        memory.deliver();
        assert_eq!(writer.join(), Ok(PAGE));
    });
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", pipe.read.as_raw_fd())).unwrap();
    assert!(text.contains("altpipe-bytes:\t4096\n"), "{text}");
}

// Every pipe must carry its data under whatever mix of knobs it was made.
fn knobs_in_motion(subject: &Subject) {
    const PIPES: usize = 60;
    let control = subject.control();
    let done = AtomicBool::new(false);
    scope(|s| {
        let users: Vec<_> = (0..2)
            .map(|_| {
                Task::spawn(s, || {
                    for _ in 0..PIPES {
                        let (r, w) = control.create(Flags::CLOEXEC, "").expect("make a pipe");
                        scope(|s| {
                            Task::spawn(s, move || {
                                assert_eq!(write(&w, &[b'x'; 5 * PAGE]), Ok(5 * PAGE))
                            });
                            assert_eq!(read_exact(&r, 5 * PAGE + 1), [b'x'; 5 * PAGE]);
                        });
                    }
                })
            })
            .collect();
        Task::spawn(s, || {
            for knob in KNOBS.iter().cycle() {
                for value in values(knob) {
                    knobs::store(&format!("knobs/{}", knob.name), value).unwrap();
                }
                knobs::store("stats/reset", "1").unwrap();
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        users.into_iter().for_each(Task::join);
        done.store(true, Ordering::Relaxed);
    });
}
