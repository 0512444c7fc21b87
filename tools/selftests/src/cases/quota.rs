// SPDX-License-Identifier: GPL-2.0
//! How large a user's pipes may be, and how many pages of them he may have.
//!
//! Each scenario runs in a process of a user who has no other pipes, under the kernel's default
//! limits: 1 MiB for a pipe and 16384 pages for a user.

use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};

use crate::case::{Area, Case};
use crate::child::skip;
use crate::descriptors;
use crate::end::{CAPACITY, PAGE, fill, read_exact, set_nonblocking, write};
use crate::knobs;
use crate::process::Process;
use crate::subject::{Pipe, Subject};

/// Cases about limits and quotas.
pub const AREA: Area = Area {
    name: "quota",
    cases: &[
        Case::every(
            "a user may have a pipe of the largest size and no larger one: EPERM",
            largest,
        ),
        Case::long(
            "over the soft quota a new pipe is small, none may grow, and any may shrink",
            soft_quota,
        ),
        Case::long("a quota counts again when pipes are closed", quota_returns),
        Case::every(
            "a small pipe over the quota takes a byte while one is unread, if it has two slots",
            small_pipe,
        ),
        Case::device("capacity gives new pipes their size", capacity_knob),
        Case::device(
            "min_def_buffers gives the slots of a pipe over the soft quota",
            min_def_buffers,
        ),
        Case::device(
            "over the hard quota there is no new pipe: ENFILE, and nothing is left open",
            hard_quota,
        ),
        Case::device(
            "max_size bounds a user's pipes, rounded as a size is",
            max_size,
        ),
        Case::device(
            "pages that a pipe keeps beyond two are on its user's account",
            spare_pages,
        ),
        Case::device(
            "a user's native pipes and altpipe's are on one account",
            one_account,
        ),
        Case::device("a limit takes any number, and nothing else", limit_files),
    ],
};

const MIB: u32 = 1 << 20;

// Runs `body` as a user without privileges, whose pipes nobody else makes.
fn as_user(body: impl FnOnce()) {
    const USER: u32 = 61_234;
    if !geteuid().is_root() {
        skip("only root can become another user");
    }
    Process::fork(|| {
        // SAFETY: touches no memory; the whole process, of one thread, changes its user.
        assert_eq!(unsafe { libc::setresuid(USER, USER, USER) }, 0, "setresuid");
        body();
    })
    .succeed();
}

// As many pipes as the quota allows, the largest first.
fn exhaust(subject: &Subject) -> Vec<Pipe> {
    let mut pipes = Vec::new();
    loop {
        let pipe = subject.pipe();
        if subject.size(&pipe.read) != Ok(CAPACITY) {
            return pipes;
        }
        let mut size = MIB;
        while subject.resize(&pipe.read, size) == Err(Errno::PERM) {
            size /= 2;
        }
        pipes.push(pipe);
    }
}

fn largest(subject: &Subject) {
    as_user(|| {
        let pipe = subject.pipe();
        assert_eq!(subject.resize(&pipe.read, MIB), Ok(MIB as usize));
        assert_eq!(subject.resize(&pipe.read, MIB + 1), Err(Errno::PERM));
        assert_eq!(subject.size(&pipe.read), Ok(MIB as usize));
    });
    // Root in a container may lack the capability.
    let privileged = capabilities(None)
        .unwrap()
        .effective
        .contains(CapabilitySet::SYS_RESOURCE);
    let pipe = subject.pipe();
    let expected = if privileged {
        Ok(2 * MIB as usize)
    } else {
        Err(Errno::PERM)
    };
    assert_eq!(subject.resize(&pipe.read, 2 * MIB), expected);
}

fn soft_quota(subject: &Subject) {
    let small = subject.config().min_def_buffers as usize * PAGE;
    as_user(|| {
        let full = exhaust(subject);
        let pipe = subject.pipe();
        assert_eq!(subject.size(&pipe.read), Ok(small));
        assert_eq!(
            subject.resize(&pipe.read, 4 * PAGE as u32),
            Err(Errno::PERM)
        );
        assert_eq!(subject.size(&pipe.read), Ok(small));
        // A shrink that fails gives nothing back.
        fill(&full[1].write, PAGE);
        assert_eq!(subject.resize(&full[1].read, PAGE as u32), Err(Errno::BUSY));
        assert_eq!(
            subject.resize(&pipe.read, 4 * PAGE as u32),
            Err(Errno::PERM)
        );
        assert_eq!(subject.resize(&pipe.read, PAGE as u32), Ok(PAGE));
        assert_eq!(subject.resize(&full[0].read, CAPACITY as u32), Ok(CAPACITY));
        // What that one gave up is there for others.
        assert_eq!(subject.resize(&pipe.read, 4 * PAGE as u32), Ok(4 * PAGE));
    });
}

fn quota_returns(subject: &Subject) {
    as_user(|| {
        for _ in 0..3 {
            drop(exhaust(subject));
        }
        let pipe = subject.pipe();
        assert_eq!(subject.size(&pipe.read), Ok(CAPACITY));
    });
}

// Job servers dead-locked on one slot: they keep a token unread and write another.
fn small_pipe(subject: &Subject) {
    let slots = subject.config().min_def_buffers as usize;
    as_user(|| {
        let _full = exhaust(subject);
        let pipe = subject.pipe();
        assert_eq!(fill(&pipe.write, PAGE), slots * PAGE);
        read_exact(&pipe.read, slots * PAGE - 1);
        set_nonblocking(&pipe.write, true);
        let expected = if slots > 1 { Ok(1) } else { Err(Errno::AGAIN) };
        assert_eq!(write(&pipe.write, b"x"), expected);
    });
}

fn capacity_knob(subject: &Subject) {
    for bytes in [4096, 8192, 1 << 17, 2 * MIB] {
        knobs::store("knobs/capacity", bytes.to_string()).unwrap();
        let pipe = subject.pipe();
        assert_eq!(subject.size(&pipe.read), Ok(bytes as usize));
        as_user(|| {
            assert_eq!(
                subject.size(&subject.pipe().read),
                Ok(bytes.min(MIB) as usize),
                "cut down to max_size"
            )
        });
    }
}

fn min_def_buffers(subject: &Subject) {
    for slots in [1, 2] {
        knobs::store("knobs/min_def_buffers", slots.to_string()).unwrap();
        as_user(|| {
            let _full = exhaust(subject);
            assert_eq!(subject.size(&subject.pipe().read), Ok(slots * PAGE));
        });
    }
}

fn hard_quota(subject: &Subject) {
    knobs::store("limits/user_pages_hard", "32").unwrap();
    as_user(|| {
        let pipes = [subject.pipe(), subject.pipe()];
        let before = descriptors::open();
        for _ in 0..3 {
            assert_eq!(
                subject
                    .pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                    .map(drop),
                Err(Errno::NFILE)
            );
        }
        assert_eq!(descriptors::open(), before);
        assert_eq!(
            subject.resize(&pipes[0].read, 2 * CAPACITY as u32),
            Err(Errno::PERM)
        );
        drop(pipes);
        drop([subject.pipe(), subject.pipe()]);
    });
    // Root may.
    drop([subject.pipe(), subject.pipe(), subject.pipe()]);
}

fn max_size(subject: &Subject) {
    knobs::store("limits/max_size", "100000").unwrap();
    assert_eq!(knobs::show("limits/max_size"), "131072");
    as_user(|| {
        let pipe = subject.pipe();
        assert_eq!(subject.resize(&pipe.read, 131_072), Ok(131_072));
        assert_eq!(subject.resize(&pipe.read, 131_073), Err(Errno::PERM));
        let wish = subject
            .control()
            .create(altpipe_uapi::Flags::CLOEXEC, "capacity=262144");
        assert_eq!(
            wish.map(drop).map_err(|error| error.raw_os_error()),
            Err(Some(libc::EPERM))
        );
    });
}

fn spare_pages(subject: &Subject) {
    knobs::store("limits/user_pages_hard", "64").unwrap();
    as_user(|| {
        let create = |config: &str| {
            let made = subject
                .control()
                .create(altpipe_uapi::Flags::CLOEXEC, config);
            made.map_err(|error| error.raw_os_error())
        };
        let thrifty: Vec<_> = (0..4).map(|_| create("").unwrap()).collect();
        assert_eq!(create("").map(drop), Err(Some(libc::ENFILE)));
        drop(thrifty);
        let lavish = [(); 2].map(|()| create("prealloc_keep=16").unwrap());
        assert_eq!(create("").map(drop), Err(Some(libc::ENFILE)));
        drop(lavish);
        drop((0..4).map(|_| create("").unwrap()).collect::<Vec<_>>());
    });
}

fn one_account(subject: &Subject) {
    knobs::store("limits/user_pages_hard", "64").unwrap();
    as_user(|| {
        let native = [(); 3].map(|()| Subject::Native.pipe());
        let ours = subject.pipe();
        assert_eq!(
            subject
                .pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map(drop),
            Err(Errno::NFILE)
        );
        drop(native);
        drop((ours, [(); 3].map(|()| subject.pipe())));
    });
}

fn limit_files(_: &Subject) {
    for name in ["limits/user_pages_soft", "limits/user_pages_hard"] {
        for value in ["0", "7", "16384"] {
            knobs::store(name, format!("{value}\n")).unwrap();
            assert_eq!(knobs::show(name), value);
        }
        for bad in [
            "\n",
            "x",
            "-1",
            "+1",
            " 1",
            "1 ",
            "0x10",
            "99999999999999999999",
            "1\n\n",
        ] {
            assert_eq!(
                knobs::store(name, bad),
                Err(Errno::INVAL),
                "{name} from {bad:?}"
            );
        }
        assert_eq!(knobs::show(name), "16384");
    }
    // The kernel cuts a store at a page. What is left of this one is a number, but another.
    let long = format!("{}16384", "0".repeat(PAGE - 1));
    assert_eq!(
        knobs::store("limits/user_pages_hard", long),
        Err(Errno::INVAL)
    );
    assert_eq!(knobs::show("limits/user_pages_hard"), "16384");
    for (text, shown) in [
        ("0", "4096"),
        ("4097", "8192"),
        ("2147483648", "2147483648"),
    ] {
        knobs::store("limits/max_size", text).unwrap();
        assert_eq!(knobs::show("limits/max_size"), shown);
    }
    for bad in ["2147483649", "x", "\n"] {
        assert_eq!(
            knobs::store("limits/max_size", bad),
            Err(Errno::INVAL),
            "{bad:?}"
        );
    }
    assert_eq!(knobs::show("limits/max_size"), "2147483648");
}
