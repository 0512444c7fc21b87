// SPDX-License-Identifier: GPL-2.0
//! One call with arguments that nobody in his right mind would give.

use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};

use altpipe_uapi::raw;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use super::objects::{self, Objects};
use crate::draw::below;

// fcntl.h; the libc crate lacks it.
const F_SETSIG: i32 = 10;

/// One way to call.
type Call = fn(&mut Objects, &mut ChaCha8Rng) -> i64;

// Those that are the module's own come more often than those that the kernel shares with it.
const CALLS: &[(&str, u32, Call)] = &[
    ("ioctl", 20, ioctl),
    ("create", 20, create),
    ("get_config", 5, get_config),
    ("get_stats", 5, get_stats),
    ("read", 10, read),
    ("write", 10, write),
    ("preadv2", 8, |objects, generator| {
        vectors(objects, generator, libc::SYS_preadv2)
    }),
    ("pwritev2", 8, |objects, generator| {
        vectors(objects, generator, libc::SYS_pwritev2)
    }),
    ("sysfs store", 12, store),
    ("sysfs show", 4, show),
    ("open", 8, open),
    ("open again", 8, open_again),
    ("close", 12, |objects, generator| {
        objects.close(generator);
        0
    }),
    ("dup", 2, dup),
    ("fcntl", 10, fcntl),
    ("lseek", 2, lseek),
    ("poll", 4, poll),
    ("epoll", 4, epoll),
    ("splice", 6, splice),
    ("tee", 2, tee),
    ("vmsplice", 3, vmsplice),
    ("sendfile", 4, sendfile),
    ("mmap", 2, mmap),
    ("inode", 8, inode),
    ("fsnotify", 2, watch),
];

/// The number of calls there are.
pub const KINDS: usize = CALLS.len();

/// The name of one of them.
pub fn name(kind: usize) -> &'static str {
    CALLS[kind].0
}

/// Draws one of them.
pub fn draw(generator: &mut ChaCha8Rng) -> usize {
    let total: u32 = CALLS.iter().map(|(_, weight, _)| weight).sum();
    let mut left = below(generator, total);
    CALLS
        .iter()
        .position(|(_, weight, _)| match left.checked_sub(*weight) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        })
        .expect("the weights add up")
}

/// Makes it with any arguments; gives what it returned, an errno negated.
pub fn make(kind: usize, objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    CALLS[kind].2(objects, generator)
}

// A system call with any arguments. What it may write to is memory of `Objects` that no reference
// is held to.
fn system(number: i64, arguments: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel checks every address; good ones are those of buffers that nobody reads.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 {
        -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        result
    }
}

// Any number, small ones and those at the edges of types more often.
fn number(generator: &mut ChaCha8Rng) -> u64 {
    match below(generator, 6) {
        0 => u64::from(below(generator, 8)),
        1 => 1 << below(generator, 64),
        2 => (1u64 << below(generator, 64)).wrapping_sub(1),
        3 => u64::MAX - u64::from(below(generator, 8)),
        4 => u64::from(generator.next_u32()),
        _ => generator.next_u64(),
    }
}

fn bits(generator: &mut ChaCha8Rng, among: i32) -> u64 {
    match below(generator, 8) {
        0 => number(generator),
        _ => u64::from(generator.next_u32() & among as u32),
    }
}

fn keep(objects: &mut Objects, generator: &mut ChaCha8Rng, fd: i64) -> i64 {
    if let Some(number) = i32::try_from(fd).ok().filter(|number| *number >= 0) {
        // SAFETY: the call just opened it, and nobody else knows it.
        objects.keep(unsafe { OwnedFd::from_raw_fd(number) }, generator);
    }
    fd
}

fn ioctl(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    const KNOWN: [libc::Ioctl; 10] = [
        raw::VERSION,
        raw::CREATE,
        raw::GET_SIZE,
        raw::SET_SIZE,
        raw::GET_CONFIG,
        raw::GET_STATS,
        libc::FIONREAD,
        libc::FIONBIO,
        libc::FIOASYNC,
        libc::TCGETS,
    ];
    let fd = objects.any(generator);
    let mut command = match below(generator, 4) {
        0 => (u64::from(raw::TYPE) << 8) | u64::from(generator.next_u32() & 0xffff_00ff),
        _ => KNOWN[below(generator, KNOWN.len() as u32) as usize],
    };
    if below(generator, 8) == 0 {
        command ^= 1 << below(generator, 34);
    }
    let argument = match below(generator, 3) {
        // Not so large that pipes of root's take all memory there is.
        0 => number(generator) & 0x7f_ffff,
        1 => number(generator) | (1 << 40),
        _ => objects.address(generator) as u64,
    };
    if command == raw::CREATE && argument != 0 {
        // It may succeed, and say so to memory that we do not look at: `create` is for that.
        command = raw::VERSION;
    }
    system(libc::SYS_ioctl, [fd as u64, command, argument, 0, 0, 0])
}

fn create(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let text = objects::text(generator);
    // Room for a longer structure than there is, with anything in it or nothing.
    let mut room = [0u64; 64];
    if below(generator, 4) == 0 {
        room[63] = generator.next_u64();
    }
    let argument = raw::Create {
        size: match below(generator, 8) {
            0 => number(generator) as u32,
            1 => size_of_val(&room) as u32,
            2 => size_of::<raw::Create>() as u32 - 1,
            _ => size_of::<raw::Create>() as u32,
        },
        flags: bits(
            generator,
            libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_DIRECT,
        ) as u32,
        fd: [generator.next_u32() as i32, -1],
        config: match below(generator, 6) {
            0 => objects.address(generator) as u64,
            _ => text.as_ptr() as u64,
        },
        config_len: match below(generator, 6) {
            0 => number(generator) as u32,
            1 => 0,
            _ => text.len() as u32,
        },
        pad: u32::from(below(generator, 30) == 0),
    };
    // SAFETY: the room is larger than the structure, and aligned.
    unsafe { room.as_mut_ptr().cast::<raw::Create>().write(argument) };
    let fd = rustix::fd::AsRawFd::as_raw_fd(&rustix::fd::AsFd::as_fd(&objects.control));
    let address = room.as_mut_ptr() as u64;
    let result = system(libc::SYS_ioctl, [fd as u64, raw::CREATE, address, 0, 0, 0]);
    if result == 0 {
        // SAFETY: as above.
        let made = unsafe { room.as_ptr().cast::<raw::Create>().read() };
        for fd in made.fd {
            // A call on a blocking end is ended by the alarm, which takes its time.
            if below(generator, 20) != 0 {
                system(
                    libc::SYS_fcntl,
                    [
                        fd as u64,
                        libc::F_SETFL as u64,
                        libc::O_NONBLOCK as u64,
                        0,
                        0,
                        0,
                    ],
                );
            }
            keep(objects, generator, fd.into());
        }
    }
    result
}

fn get_config(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let mut argument = raw::Text {
        buf: objects.address(generator) as u64,
        len: Objects::length(generator) as u32,
        pad: u32::from(below(generator, 20) == 0),
    };
    let fd = objects.any(generator);
    let address = (&raw mut argument) as u64;
    system(
        libc::SYS_ioctl,
        [fd as u64, raw::GET_CONFIG, address, 0, 0, 0],
    )
}

fn get_stats(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let mut room = MaybeUninit::<[u64; 1024]>::zeroed();
    let size = match below(generator, 4) {
        0 => number(generator) as u32,
        1 => below(generator, 8192),
        _ => size_of::<raw::Stats>() as u32,
    };
    // A size beyond the room is one that the kernel must refuse: it is more than a page.
    // SAFETY: the room is larger than a u32, and aligned.
    unsafe { room.as_mut_ptr().cast::<u32>().write(size) };
    let fd = objects.any(generator);
    let address = room.as_mut_ptr() as u64;
    system(
        libc::SYS_ioctl,
        [fd as u64, raw::GET_STATS, address, 0, 0, 0],
    )
}

fn read(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    transfer(objects, generator, libc::SYS_read)
}

fn write(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    transfer(objects, generator, libc::SYS_write)
}

fn transfer(objects: &mut Objects, generator: &mut ChaCha8Rng, call: i64) -> i64 {
    let fd = objects.any(generator);
    let address = objects.address(generator);
    // What is read must not run over our own memory behind a good address.
    let length = if call == libc::SYS_read {
        below(generator, 4096) as usize
    } else {
        Objects::length(generator)
    };
    system(call, [fd as u64, address as u64, length as u64, 0, 0, 0])
}

fn vectors(objects: &mut Objects, generator: &mut ChaCha8Rng, call: i64) -> i64 {
    let parts: Vec<_> = (0..below(generator, 6))
        .map(|_| libc::iovec {
            iov_base: objects.address(generator).cast(),
            iov_len: if call == libc::SYS_preadv2 {
                below(generator, 4096) as usize
            } else {
                Objects::length(generator)
            },
        })
        .collect();
    let count = match below(generator, 12) {
        0 if call == libc::SYS_pwritev2 => number(generator),
        _ => parts.len() as u64,
    };
    let start = match below(generator, 12) {
        0 => objects.address(generator) as u64,
        _ => parts.as_ptr() as u64,
    };
    // A good address that holds no vector would have the kernel write anywhere.
    let start = if call == libc::SYS_preadv2 {
        parts.as_ptr() as u64
    } else {
        start
    };
    let offset = match below(generator, 3) {
        0 => number(generator),
        _ => u64::MAX,
    };
    let fd = objects.any(generator);
    let flags = bits(generator, 0xff);
    system(call, [fd as u64, start, count, offset, 0, flags])
}

fn store(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let path = objects.sysfs(generator);
    let Ok(file) = objects::open(&path, libc::O_RDWR) else {
        return -i64::from(libc::EACCES);
    };
    let text = objects::text(generator);
    let length = match below(generator, 8) {
        0 => 0,
        _ => text.len(),
    };
    let address = match below(generator, 12) {
        0 => objects.address(generator) as u64,
        _ => text.as_ptr() as u64,
    };
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    let offset = match below(generator, 8) {
        0 => number(generator),
        _ => 0,
    };
    system(
        libc::SYS_pwrite64,
        [fd as u64, address, length as u64, offset, 0, 0],
    )
}

fn show(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let path = objects.sysfs(generator);
    let Ok(file) = objects::open(&path, libc::O_RDONLY) else {
        return -i64::from(libc::EACCES);
    };
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    let address = objects.address(generator) as u64;
    let length = below(generator, 4096);
    let offset = match below(generator, 3) {
        0 => number(generator),
        _ => 0,
    };
    system(
        libc::SYS_pread64,
        [fd as u64, address, length.into(), offset, 0, 0],
    )
}

fn open(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let path = objects.path(generator);
    let wait = if below(generator, 20) == 0 {
        0
    } else {
        libc::O_NONBLOCK
    };
    let flags = bits(
        generator,
        libc::O_ACCMODE | libc::O_DIRECT | libc::O_APPEND | libc::O_TRUNC | libc::O_NOATIME,
    ) as i32;
    let mut text = path.into_os_string().into_encoded_bytes();
    text.push(0);
    let fd = system(
        libc::SYS_openat,
        [
            libc::AT_FDCWD as u64,
            text.as_ptr() as u64,
            (flags | wait | libc::O_CLOEXEC | libc::O_NOCTTY) as u64,
            0,
            0,
            0,
        ],
    );
    keep(objects, generator, fd)
}

fn open_again(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let path = format!("/proc/self/fd/{}\0", objects.any(generator));
    let flags = bits(
        generator,
        libc::O_ACCMODE | libc::O_DIRECT | libc::O_PATH | libc::O_TRUNC | libc::O_DIRECTORY,
    ) as i32;
    let wait = if below(generator, 20) == 0 {
        0
    } else {
        libc::O_NONBLOCK
    };
    let fd = system(
        libc::SYS_openat,
        [
            libc::AT_FDCWD as u64,
            path.as_ptr() as u64,
            (flags | wait | libc::O_CLOEXEC | libc::O_NOCTTY) as u64,
            0,
            0,
            0,
        ],
    );
    keep(objects, generator, fd)
}

fn dup(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let fd = objects.any(generator);
    let fd = system(libc::SYS_dup, [fd as u64, 0, 0, 0, 0, 0]);
    keep(objects, generator, fd)
}

fn fcntl(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let fd = objects.any(generator);
    let (command, argument) = match below(generator, 10) {
        0 | 1 => {
            let among = libc::O_ASYNC | libc::O_DIRECT | libc::O_APPEND | libc::O_NOATIME;
            (
                libc::F_SETFL,
                bits(generator, among) | libc::O_NONBLOCK as u64,
            )
        }
        2 => (libc::F_GETFL, 0),
        3 => (libc::F_SETPIPE_SZ, number(generator) & 0x7f_ffff),
        4 => (libc::F_GETPIPE_SZ, number(generator)),
        // Signals go to us or to nobody; all that may come are ignored.
        5 => (
            libc::F_SETOWN,
            if below(generator, 2) == 0 {
                0
            } else {
                std::process::id().into()
            },
        ),
        6 => (F_SETSIG, u64::from(32 + below(generator, 32))),
        7 => (libc::F_SETLEASE, number(generator)),
        8 => (libc::F_NOTIFY, number(generator)),
        _ => (
            1024 + below(generator, 16) as i32,
            objects.address(generator) as u64,
        ),
    };
    let result = system(
        libc::SYS_fcntl,
        [fd as u64, command as u64, argument, 0, 0, 0],
    );
    if command == libc::F_DUPFD_CLOEXEC {
        return keep(objects, generator, result);
    }
    result
}

fn lseek(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let fd = objects.any(generator);
    let offset = number(generator);
    let whence = below(generator, 8);
    system(libc::SYS_lseek, [fd as u64, offset, whence.into(), 0, 0, 0])
}

fn poll(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let mut polled: Vec<_> = (0..below(generator, 8))
        .map(|_| libc::pollfd {
            fd: objects.any(generator),
            events: generator.next_u32() as i16,
            revents: 0,
        })
        .collect();
    let address = polled.as_mut_ptr() as u64;
    system(libc::SYS_poll, [address, polled.len() as u64, 0, 0, 0, 0])
}

fn epoll(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let epoll = system(libc::SYS_epoll_create1, [0; 6]);
    if epoll < 0 {
        return epoll;
    }
    let mut result = 0;
    for _ in 0..below(generator, 4) {
        let mut event = libc::epoll_event {
            events: generator.next_u32(),
            u64: 0,
        };
        let fd = objects.any(generator);
        let operation = below(generator, 4);
        let address = (&raw mut event) as u64;
        result = system(
            libc::SYS_epoll_ctl,
            [epoll as u64, operation.into(), fd as u64, address, 0, 0],
        );
    }
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
    system(
        libc::SYS_epoll_wait,
        [epoll as u64, events.as_mut_ptr() as u64, 4, 0, 0, 0],
    );
    // Some stay, so that descriptors are closed under them.
    if below(generator, 2) == 0 {
        keep(objects, generator, epoll);
    } else {
        system(libc::SYS_close, [epoll as u64, 0, 0, 0, 0, 0]);
    }
    result
}

fn splice(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let (from, to) = (objects.any(generator), objects.any(generator));
    let length = Objects::length(generator) as u64;
    let flags = bits(generator, 0xf);
    let mut offset = number(generator);
    let place = match below(generator, 4) {
        0 => (&raw mut offset) as u64,
        _ => 0,
    };
    system(
        libc::SYS_splice,
        [from as u64, place, to as u64, 0, length, flags],
    )
}

fn tee(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let (from, to) = (objects.any(generator), objects.any(generator));
    let length = Objects::length(generator) as u64;
    let flags = bits(generator, 0xf);
    system(libc::SYS_tee, [from as u64, to as u64, length, flags, 0, 0])
}

fn vmsplice(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let fd = objects.any(generator);
    let part = libc::iovec {
        iov_base: objects.address(generator).cast(),
        iov_len: below(generator, 4096) as usize,
    };
    let address = (&raw const part) as u64;
    let flags = bits(generator, 0xf);
    system(libc::SYS_vmsplice, [fd as u64, address, 1, flags, 0, 0])
}

fn sendfile(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let to = objects.any(generator);
    let from = match objects::open(&"/proc/self/exe".into(), libc::O_RDONLY) {
        Ok(file) if below(generator, 2) == 0 => file,
        _ => {
            let from = objects.any(generator);
            return system(libc::SYS_sendfile, [to as u64, from as u64, 0, 4096, 0, 0]);
        }
    };
    let from = std::os::fd::AsRawFd::as_raw_fd(&from);
    let length = below(generator, 1 << 18);
    system(
        libc::SYS_sendfile,
        [to as u64, from as u64, 0, length.into(), 0, 0],
    )
}

fn mmap(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let fd = objects.any(generator);
    let protection = below(generator, 8);
    let flags = if below(generator, 2) == 0 {
        libc::MAP_SHARED
    } else {
        libc::MAP_PRIVATE
    };
    let result = system(
        libc::SYS_mmap,
        [0, 4096, protection.into(), flags as u64, fd as u64, 0],
    );
    if result > 0 {
        system(libc::SYS_munmap, [result as u64, 4096, 0, 0, 0, 0]);
    }
    result
}

fn inode(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let fd = objects.any(generator) as u64;
    let value = number(generator);
    let mut room = [0u64; 128];
    let room = room.as_mut_ptr() as u64;
    match below(generator, 12) {
        0 => system(libc::SYS_fstat, [fd, room, 0, 0, 0, 0]),
        1 => system(libc::SYS_fstatfs, [fd, room, 0, 0, 0, 0]),
        2 => system(libc::SYS_ftruncate, [fd, value, 0, 0, 0, 0]),
        3 => system(libc::SYS_fallocate, [fd, 0, 0, value, 0, 0]),
        4 => system(libc::SYS_fsync, [fd, 0, 0, 0, 0, 0]),
        5 => system(libc::SYS_flock, [fd, (4 | value & 11), 0, 0, 0, 0]),
        6 => system(libc::SYS_fadvise64, [fd, 0, value, value & 7, 0, 0]),
        7 => system(libc::SYS_readahead, [fd, 0, value, 0, 0, 0]),
        8 => system(libc::SYS_getdents64, [fd, room, 1024, 0, 0, 0]),
        9 => system(libc::SYS_futimesat, [fd, 0, 0, 0, 0, 0]),
        10 => system(
            libc::SYS_fsetxattr,
            [fd, c"user.altpipe".as_ptr() as u64, room, 8, 0, 0],
        ),
        _ => system(libc::SYS_sync_file_range, [fd, 0, value, value & 7, 0, 0]),
    }
}

fn watch(objects: &mut Objects, generator: &mut ChaCha8Rng) -> i64 {
    let watch = system(
        libc::SYS_inotify_init1,
        [libc::IN_NONBLOCK as u64, 0, 0, 0, 0, 0],
    );
    if watch < 0 {
        return watch;
    }
    let path = format!("/proc/self/fd/{}\0", objects.any(generator));
    let events = generator.next_u32() & libc::IN_ALL_EVENTS;
    let result = system(
        libc::SYS_inotify_add_watch,
        [watch as u64, path.as_ptr() as u64, events.into(), 0, 0, 0],
    );
    keep(objects, generator, watch);
    result
}
