// SPDX-License-Identifier: GPL-2.0
//! The control device and its create call.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use altpipe_core::config::Times;
use altpipe_core::{Config, KNOBS};
use altpipe_uapi::{ABI_VERSION, Control, DEVICE, Flags, raw};
use rustix::fd::FromRawFd;
use rustix::io::{Errno, FdFlags, Result, fcntl_getfd};
use rustix::mm::{MprotectFlags, mprotect};

use crate::case::{Area, Case};
use crate::descriptors;
use crate::end::{PAGE, read, read_exact, write};
use crate::knobs;
use crate::memory::{Cliff, NOWHERE, ioctl_at, ioctl_on};
use crate::process::Process;
use crate::subject::{Pipe, Subject, config_of, errno, values};
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
        Case::device(
            "a structure shorter than the first version's is EINVAL",
            short_structure,
        ),
        Case::device(
            "a longer structure with a tail of zeros is taken",
            longer_structure,
        ),
        Case::device(
            "a longer structure with a non-zero tail is E2BIG",
            non_zero_tail,
        ),
        Case::device("a non-zero pad is EINVAL", non_zero_pad),
        Case::device("every unknown flag is EINVAL", unknown_flags),
        Case::device("a structure at a bad address is EFAULT", bad_structure),
        Case::device(
            "a result that cannot be delivered is EFAULT and leaves nothing open",
            read_only_structure,
        ),
        Case::device("a config at a bad address is EFAULT", bad_config_address),
        Case::device(
            "a config of length 0 is the defaults, whatever its address",
            empty_config,
        ),
        Case::device(
            "a config that does not parse is EINVAL and makes no pipe",
            bad_config,
        ),
        Case::device(
            "a config that is not text or has no end is EINVAL",
            not_a_config,
        ),
        Case::device(
            "the config's text needs no terminator and is read no further than its length",
            unterminated_config,
        ),
        Case::device("altpipefs is registered and cannot be mounted", file_system),
        Case::device(
            "nobody but root may open the device or turn a knob",
            root_only,
        ),
        Case::device(
            "knobs may be turned while pipes are made and used",
            knobs_in_motion,
        ),
    ],
};

fn argument(config: &str) -> raw::Create {
    raw::Create {
        size: size_of::<raw::Create>() as u32,
        flags: libc::O_CLOEXEC as u32,
        fd: [-1; 2],
        config: config.as_ptr() as u64,
        config_len: config.len() as u32,
        pad: 0,
    }
}

fn take(fd: [i32; 2]) -> Pipe {
    // SAFETY: the create call just opened them for us.
    let [read, write] = fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Pipe { read, write }
}

fn assert_works(Pipe { read: r, write: w }: Pipe) {
    assert_eq!(write(&w, b"x"), Ok(1));
    assert_eq!(read(&r, 9).as_deref(), Ok(&b"x"[..]));
}

// The call must fail, and leave neither a descriptor nor a pipe behind.
fn assert_refused(expected: Errno, what: &str, call: impl FnOnce() -> Result<usize>) {
    let before = (descriptors::open(), knobs::show("stats/pipes_created"));
    assert_eq!(call(), Err(expected), "{what}");
    assert_eq!(
        (descriptors::open(), knobs::show("stats/pipes_created")),
        before,
        "{what}"
    );
}

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
            ioctl_on(end, raw::CREATE, &mut argument("")),
            Err(Errno::NOTTY)
        );
    }
}

fn no_io(subject: &Subject) {
    assert_eq!(read(subject.control(), 1), Err(Errno::INVAL));
    assert_eq!(write(subject.control(), b"x"), Err(Errno::INVAL));
}

fn short_structure(subject: &Subject) {
    for size in [0, 4, 8, 31] {
        let mut argument = raw::Create {
            size,
            ..argument("")
        };
        assert_refused(Errno::INVAL, &format!("size {size}"), || {
            ioctl_on(subject.control(), raw::CREATE, &mut argument)
        });
    }
}

fn longer_structure(subject: &Subject) {
    for extra in [1, 8, 200] {
        let mut longer = (argument(""), [0u8; 200]);
        longer.0.size += extra;
        ioctl_on(subject.control(), raw::CREATE, &mut longer).unwrap();
        assert_works(take(longer.0.fd));
    }
}

fn non_zero_tail(subject: &Subject) {
    for place in [0, 7, 199] {
        let mut longer = (argument(""), [0u8; 200]);
        longer.0.size += 200;
        longer.1[place] = 1;
        assert_refused(Errno::TOOBIG, &format!("tail byte {place}"), || {
            ioctl_on(subject.control(), raw::CREATE, &mut longer)
        });
    }
}

fn non_zero_pad(subject: &Subject) {
    let mut argument = raw::Create {
        pad: 1,
        ..argument("")
    };
    assert_refused(Errno::INVAL, "pad", || {
        ioctl_on(subject.control(), raw::CREATE, &mut argument)
    });
}

fn unknown_flags(subject: &Subject) {
    let known = (libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_DIRECT) as u32;
    for bit in (0..32).map(|bit| 1 << bit).filter(|bit| known & bit == 0) {
        for flags in [bit, bit | libc::O_CLOEXEC as u32] {
            let mut argument = raw::Create {
                flags,
                ..argument("")
            };
            assert_refused(Errno::INVAL, &format!("{flags:#x}"), || {
                ioctl_on(subject.control(), raw::CREATE, &mut argument)
            });
        }
    }
}

fn bad_structure(subject: &Subject) {
    let cliff = Cliff::new(0);
    for address in [
        ptr::null_mut(),
        NOWHERE,
        cliff.before_edge(0),
        cliff.before_edge(size_of::<raw::Create>() - 1),
    ] {
        if address == cliff.before_edge(size_of::<raw::Create>() - 1) {
            // The size is there and good; what follows runs over the edge.
            let size = size_of::<raw::Create>() as u32;
            // SAFETY: four accessible bytes at least.
            unsafe { address.cast::<u32>().write_unaligned(size) };
        }
        assert_refused(Errno::FAULT, "structure", || {
            ioctl_at(subject.control(), raw::CREATE, address)
        });
    }
}

fn read_only_structure(subject: &Subject) {
    let cliff = Cliff::new(0);
    let address = cliff.before_edge(2 * PAGE);
    // SAFETY: the cliff's own pages; no reference covers them.
    unsafe {
        address.cast::<raw::Create>().write(argument(""));
        mprotect(address.cast(), PAGE, MprotectFlags::READ).unwrap();
    }
    let before = descriptors::open();
    for _ in 0..20 {
        assert_eq!(
            ioctl_at(subject.control(), raw::CREATE, address),
            Err(Errno::FAULT)
        );
    }
    assert_eq!(descriptors::open(), before);
}

fn bad_config_address(subject: &Subject) {
    let cliff = Cliff::new(b'x');
    for address in [NOWHERE, cliff.before_edge(5)] {
        let mut argument = raw::Create {
            config: address as u64,
            config_len: 10,
            ..argument("")
        };
        assert_refused(Errno::FAULT, "config", || {
            ioctl_on(subject.control(), raw::CREATE, &mut argument)
        });
    }
}

fn empty_config(subject: &Subject) {
    for address in [0, NOWHERE as u64] {
        let mut argument = raw::Create {
            config: address,
            config_len: 0,
            ..argument("")
        };
        ioctl_on(subject.control(), raw::CREATE, &mut argument).unwrap();
        assert_works(take(argument.fd));
    }
}

fn bad_config(subject: &Subject) {
    for text in [
        "exclusive",
        "exclusive=",
        "exclusive=2",
        "exclusive=01",
        "=1",
        ",",
        "exclusive=1,",
        ",exclusive=1",
        "exclusive=1,,split_wait=1",
        "exclusive=1,exclusive=1",
        " exclusive=1",
        "exclusive=1\n",
        "exclusive=1\0",
        "EXCLUSIVE=1",
        "no_such_knob=1",
        "block_size=256",
        "block_size=1000",
        "block_size=131072",
        "block_size=4294968320",
        "tail_update=spin_lock",
        "tail_update=mutexx",
        "tail_update=[mutex]",
    ] {
        assert_refused(Errno::INVAL, text, || {
            ioctl_on(subject.control(), raw::CREATE, &mut argument(text))
        });
    }
}

fn not_a_config(subject: &Subject) {
    let bytes = [0xff; 4];
    let mut binary = raw::Create {
        config: bytes.as_ptr() as u64,
        config_len: 4,
        ..argument("")
    };
    assert_refused(Errno::INVAL, "no UTF-8", || {
        ioctl_on(subject.control(), raw::CREATE, &mut binary)
    });
    let long = "exclusive=1,".repeat(100_000);
    assert_refused(Errno::INVAL, "1.2 MB", || {
        ioctl_on(subject.control(), raw::CREATE, &mut argument(&long))
    });
}

fn unterminated_config(subject: &Subject) {
    let text = "exclusive=0,times=full,and the rest is none of the kernel's business";
    let mut argument = raw::Create {
        config_len: 22,
        ..argument(text)
    };
    ioctl_on(subject.control(), raw::CREATE, &mut argument).unwrap();
    let pipe = take(argument.fd);
    assert_eq!(fcntl_getfd(&pipe.read), Ok(FdFlags::CLOEXEC));
    let expected = Config {
        exclusive: false,
        times: Times::Full,
        ..Config::DEFAULT
    };
    assert_eq!(config_of(&pipe.read), expected);
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

fn root_only(_: &Subject) {
    const NOBODY: u32 = 65_534;
    Process::fork(|| {
        // SAFETY: touches no memory; the whole process, of one thread, changes its user.
        assert_eq!(unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) }, 0);
        assert_eq!(
            Control::open().map_err(|error| errno(&error)).map(drop),
            Err(Errno::ACCESS)
        );
        assert_eq!(knobs::store("knobs/exclusive", "0"), Err(Errno::ACCESS));
        assert_eq!(knobs::show("knobs/exclusive"), "1", "reading is for all");
    })
    .succeed();
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
