// SPDX-License-Identifier: GPL-2.0
//! The create call, with every argument that it must refuse.

use std::os::fd::OwnedFd;
use std::ptr;

use altpipe_core::Config;
use altpipe_core::config::Times;
use altpipe_uapi::raw;
use rustix::fd::FromRawFd;
use rustix::io::{Errno, FdFlags, Result, fcntl_getfd};
use rustix::mm::{MprotectFlags, mprotect};

use crate::case::{Area, Case};
use crate::descriptors;
use crate::end::{PAGE, read, write};
use crate::knobs;
use crate::memory::{Cliff, NOWHERE, ioctl_at, ioctl_on};
use crate::subject::{Pipe, Subject, config_of};

/// Cases about ALTPIPE_IOC_CREATE.
pub const AREA: Area = Area {
    name: "create",
    cases: &[
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
