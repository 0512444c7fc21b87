// SPDX-License-Identifier: GPL-2.0
//! The calls, one line each. Numbers that the library does not name are the kernel's headers'.

use std::ffi::CString;
use std::ptr;

use crate::end::{PAGE, checked};

/// What a call is tried with.
pub struct Stage {
    /// The end.
    pub fd: i32,
    /// A name that leads to it.
    pub link: CString,
    /// A regular file that may be read and written.
    pub file: i32,
    /// A page of memory, zeroed.
    pub page: *mut u8,
}

/// One call: what it returned, or -1 and the errno.
pub type Attempt = fn(&Stage) -> isize;

/// A call with its name.
pub type Named = (&'static str, Attempt);

fn raw(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: pointers among the arguments come from a stage and lead to its page or its name, which
    // outlive the call; none of the calls below writes more than a page.
    unsafe { libc::syscall(number, a, b, c, d, e, f) as isize }
}

// A call whose first argument is the end.
fn on(stage: &Stage, number: libc::c_long, rest: [usize; 5]) -> isize {
    let [b, c, d, e, f] = rest;
    raw(number, [stage.fd as usize, b, c, d, e, f])
}

// A call that gives a descriptor: closed again, for its number means nothing.
fn opened(result: isize) -> isize {
    if result >= 0 {
        // SAFETY: a descriptor of our own that nobody else knows.
        unsafe { libc::close(result as i32) };
        return 0;
    }
    result
}

fn fcntl(stage: &Stage, command: i32, argument: usize) -> isize {
    on(
        stage,
        libc::SYS_fcntl,
        [command as usize, argument, 0, 0, 0],
    )
}

fn ioctl(stage: &Stage, command: u64, argument: usize) -> isize {
    on(
        stage,
        libc::SYS_ioctl,
        [command as usize, argument, 0, 0, 0],
    )
}

fn page(stage: &Stage) -> usize {
    stage.page as usize
}

const AT: usize = libc::AT_EMPTY_PATH as usize;

/// Calls on a file.
pub const FILE_CALLS: &[Named] = &[
    ("fsync", |s| on(s, libc::SYS_fsync, [0; 5])),
    ("fdatasync", |s| on(s, libc::SYS_fdatasync, [0; 5])),
    ("syncfs", |s| on(s, libc::SYS_syncfs, [0; 5])),
    ("sync_file_range", |s| {
        on(s, libc::SYS_sync_file_range, [0, 100, 2, 0, 0])
    }),
    ("ftruncate", |s| {
        on(s, libc::SYS_ftruncate, [10, 0, 0, 0, 0])
    }),
    ("fallocate", |s| {
        on(s, libc::SYS_fallocate, [0, 0, 100, 0, 0])
    }),
    ("fallocate, a hole", |s| {
        on(s, libc::SYS_fallocate, [3, 0, 100, 0, 0])
    }),
    ("readahead", |s| {
        on(s, libc::SYS_readahead, [0, 4096, 0, 0, 0])
    }),
    ("fadvise", |s| on(s, libc::SYS_fadvise64, [0, 0, 4, 0, 0])),
    ("mmap, shared", |s| {
        raw(
            libc::SYS_mmap,
            [0, PAGE, 1, libc::MAP_SHARED as usize, s.fd as usize, 0],
        )
    }),
    ("mmap, private", |s| {
        raw(
            libc::SYS_mmap,
            [0, PAGE, 3, libc::MAP_PRIVATE as usize, s.fd as usize, 0],
        )
    }),
    ("remap_file_pages", |s| {
        on(s, libc::SYS_remap_file_pages, [0; 5])
    }),
    ("getdents64", |s| {
        on(s, libc::SYS_getdents64, [page(s), 4096, 0, 0, 0])
    }),
    ("fchdir", |s| on(s, libc::SYS_fchdir, [0; 5])),
    ("lseek, data", |s| {
        on(s, libc::SYS_lseek, [0, libc::SEEK_DATA as usize, 0, 0, 0])
    }),
    ("lseek, end", |s| {
        on(s, libc::SYS_lseek, [0, libc::SEEK_END as usize, 0, 0, 0])
    }),
    ("pread", |s| on(s, libc::SYS_pread64, [page(s), 1, 0, 0, 0])),
    ("pwrite", |s| {
        on(s, libc::SYS_pwrite64, [page(s), 1, 0, 0, 0])
    }),
    ("fsetxattr", |s| {
        on(
            s,
            libc::SYS_fsetxattr,
            [c"user.a".as_ptr() as usize, page(s), 1, 0, 0],
        )
    }),
    ("fsetxattr, security", |s| {
        on(
            s,
            libc::SYS_fsetxattr,
            [c"security.a".as_ptr() as usize, page(s), 1, 0, 0],
        )
    }),
    ("fsetxattr, trusted", |s| {
        on(
            s,
            libc::SYS_fsetxattr,
            [c"trusted.a".as_ptr() as usize, page(s), 1, 0, 0],
        )
    }),
    ("fgetxattr", |s| {
        on(
            s,
            libc::SYS_fgetxattr,
            [c"user.a".as_ptr() as usize, page(s), 100, 0, 0],
        )
    }),
    ("fgetxattr, acl", |s| {
        let name = c"system.posix_acl_access".as_ptr() as usize;
        on(s, libc::SYS_fgetxattr, [name, page(s), 100, 0, 0])
    }),
    ("flistxattr", |s| {
        on(s, libc::SYS_flistxattr, [page(s), 100, 0, 0, 0])
    }),
    ("fremovexattr", |s| {
        on(
            s,
            libc::SYS_fremovexattr,
            [c"user.a".as_ptr() as usize, 0, 0, 0, 0],
        )
    }),
    ("copy_file_range out", |s| {
        raw(
            libc::SYS_copy_file_range,
            [s.fd as usize, 0, s.file as usize, 0, 10, 0],
        )
    }),
    ("copy_file_range in", |s| {
        raw(
            libc::SYS_copy_file_range,
            [s.file as usize, 0, s.fd as usize, 0, 10, 0],
        )
    }),
    ("sendfile to a file", |s| {
        raw(
            libc::SYS_sendfile,
            [s.file as usize, s.fd as usize, 0, 10, 0, 0],
        )
    }),
    ("sendfile from a file", |s| {
        raw(
            libc::SYS_sendfile,
            [s.fd as usize, s.file as usize, 0, 10, 0, 0],
        )
    }),
    ("flock, shared", |s| {
        on(s, libc::SYS_flock, [libc::LOCK_SH as usize, 0, 0, 0, 0])
    }),
    ("flock, exclusive", |s| {
        on(
            s,
            libc::SYS_flock,
            [(libc::LOCK_EX | libc::LOCK_NB) as usize, 0, 0, 0, 0],
        )
    }),
    ("fchmod", |s| on(s, libc::SYS_fchmod, [0o4777, 0, 0, 0, 0])),
    ("fchown", |s| on(s, libc::SYS_fchown, [1, 2, 0, 0, 0])),
    ("utimensat", |s| on(s, libc::SYS_utimensat, [0; 5])),
    ("linkat", |s| {
        let name = c"/tmp/altpipe-selftests.link".as_ptr() as usize;
        let at = libc::AT_FDCWD as usize;
        on(
            s,
            libc::SYS_linkat,
            [c"".as_ptr() as usize, at, name, AT, 0],
        )
    }),
    ("execveat", |s| {
        on(s, libc::SYS_execveat, [c"".as_ptr() as usize, 0, 0, AT, 0])
    }),
    ("faccessat2, all", |s| {
        on(
            s,
            libc::SYS_faccessat2,
            [c"".as_ptr() as usize, 7, AT, 0, 0],
        )
    }),
    ("name_to_handle_at", |s| {
        on(
            s,
            libc::SYS_name_to_handle_at,
            [c"".as_ptr() as usize, page(s), page(s) + 512, AT, 0],
        )
    }),
    ("open_tree", |s| {
        opened(on(
            s,
            libc::SYS_open_tree,
            [c"".as_ptr() as usize, AT, 0, 0, 0],
        ))
    }),
    ("inotify", |s| {
        let watch = raw(libc::SYS_inotify_init1, [0; 6]);
        let link = s.link.as_ptr() as usize;
        let mask = libc::IN_ALL_EVENTS as usize;
        let result = raw(
            libc::SYS_inotify_add_watch,
            [watch as usize, link, mask, 0, 0, 0],
        );
        opened(watch);
        result
    }),
    ("fanotify", |s| fanotify(s, 0, 0x2 | 0x1)),
    ("fanotify, permission", |s| fanotify(s, 4, 0x20000)),
    ("fanotify, file system", |s| fanotify(s, 0x200, 0x2)),
    ("epoll", |s| {
        let epoll = raw(libc::SYS_epoll_create1, [0; 6]);
        let arguments = [epoll as usize, 1, s.fd as usize, page(s), 0, 0];
        let result = raw(libc::SYS_epoll_ctl, arguments);
        opened(epoll);
        result
    }),
    ("getsockopt", |s| {
        on(s, libc::SYS_getsockopt, [1, 3, page(s), page(s) + 64, 0])
    }),
    ("recvfrom", |s| {
        on(s, libc::SYS_recvfrom, [page(s), 1, 0, 0, 0])
    }),
    ("sendto", |s| on(s, libc::SYS_sendto, [page(s), 1, 0, 0, 0])),
    ("accept4", |s| on(s, libc::SYS_accept4, [0; 5])),
    ("shutdown", |s| on(s, libc::SYS_shutdown, [2, 0, 0, 0, 0])),
    ("timerfd_gettime", |s| {
        on(s, libc::SYS_timerfd_gettime, [page(s), 0, 0, 0, 0])
    }),
    ("pidfd_send_signal", |s| {
        on(s, libc::SYS_pidfd_send_signal, [0; 5])
    }),
    ("quotactl_fd", |s| {
        on(s, libc::SYS_quotactl_fd, [0x800000 << 8, 0, page(s), 0, 0])
    }),
    ("cachestat", |s| {
        on(s, 451, [page(s), page(s) + 64, 0, 0, 0])
    }),
    ("statx", |s| {
        let mask = 0xfff;
        on(
            s,
            libc::SYS_statx,
            [c"".as_ptr() as usize, AT, mask, page(s), 0],
        )
    }),
    ("close_range and back", |s| {
        opened(on(s, libc::SYS_dup, [0; 5]))
    }),
];

// fanotify_init(2) with `class`, then a mark of `mask`. 0x1 is FAN_MARK_ADD, and `class` 0x200 marks
// a whole file system by its identity.
fn fanotify(stage: &Stage, class: usize, mask: usize) -> isize {
    let group = raw(libc::SYS_fanotify_init, [class | 0x2, 0, 0, 0, 0, 0]);
    if group < 0 {
        return group;
    }
    let kind = if class == 0x200 { 0x100 } else { 0 };
    let link = stage.link.as_ptr() as usize;
    let at = libc::AT_FDCWD as usize;
    let result = raw(
        libc::SYS_fanotify_mark,
        [group as usize, 1 | kind, mask, at, link, 0],
    );
    opened(group);
    result
}

/// fcntl(2).
pub const FCNTLS: &[Named] = &[
    ("F_DUPFD", |s| opened(fcntl(s, libc::F_DUPFD, 100))),
    ("F_GETFL", |s| fcntl(s, libc::F_GETFL, 0)),
    ("F_SETFL O_APPEND", |s| {
        fcntl(s, libc::F_SETFL, libc::O_APPEND as usize)
    }),
    ("F_SETFL O_DIRECT", |s| {
        fcntl(s, libc::F_SETFL, libc::O_DIRECT as usize)
    }),
    ("F_SETFL O_NOATIME", |s| {
        fcntl(s, libc::F_SETFL, libc::O_NOATIME as usize)
    }),
    ("F_SETFL O_ASYNC", |s| {
        fcntl(s, libc::F_SETFL, libc::O_ASYNC as usize)
    }),
    ("F_SETFL all of them", |s| {
        let all = libc::O_APPEND | libc::O_DIRECT | libc::O_ASYNC | libc::O_NONBLOCK;
        fcntl(s, libc::F_SETFL, all as usize)
    }),
    ("F_SETFL O_SYNC", |s| {
        fcntl(s, libc::F_SETFL, libc::O_SYNC as usize)
    }),
    ("F_SETFL none", |s| fcntl(s, libc::F_SETFL, 0)),
    ("F_SETLEASE read", |s| {
        fcntl(s, libc::F_SETLEASE, libc::F_RDLCK as usize)
    }),
    ("F_SETLEASE write", |s| {
        fcntl(s, libc::F_SETLEASE, libc::F_WRLCK as usize)
    }),
    ("F_SETLEASE none", |s| {
        fcntl(s, libc::F_SETLEASE, libc::F_UNLCK as usize)
    }),
    ("F_GETLEASE", |s| fcntl(s, libc::F_GETLEASE, 0)),
    ("F_NOTIFY", |s| fcntl(s, libc::F_NOTIFY, 1)),
    ("F_GETLK", |s| lock(s, libc::F_GETLK, libc::F_WRLCK)),
    ("F_SETLK read", |s| lock(s, libc::F_SETLK, libc::F_RDLCK)),
    ("F_SETLK write", |s| lock(s, libc::F_SETLK, libc::F_WRLCK)),
    ("F_OFD_GETLK", |s| lock(s, libc::F_OFD_GETLK, libc::F_WRLCK)),
    ("F_OFD_SETLK write", |s| {
        lock(s, libc::F_OFD_SETLK, libc::F_WRLCK)
    }),
    ("F_ADD_SEALS", |s| fcntl(s, libc::F_ADD_SEALS, 1)),
    ("F_GET_SEALS", |s| fcntl(s, libc::F_GET_SEALS, 0)),
    ("F_GETSIG", |s| fcntl(s, 11, 0)),
    ("F_SETSIG", |s| fcntl(s, 10, libc::SIGUSR1 as usize)),
    ("F_SETSIG none", |s| fcntl(s, 10, 1000)),
    ("F_GETOWN", |s| fcntl(s, libc::F_GETOWN, 0)),
    ("F_GET_RW_HINT", |s| fcntl(s, 1035, page(s))),
    ("F_SET_RW_HINT", |s| fcntl(s, 1036, page(s))),
    ("F_GET_FILE_RW_HINT", |s| fcntl(s, 1037, page(s))),
    ("F_CREATED_QUERY", |s| fcntl(s, 1028, 0)),
    ("F_GETDELEG", |s| fcntl(s, 1039, page(s))),
    ("no such command", |s| fcntl(s, 9999, 0)),
];

fn lock(stage: &Stage, command: i32, kind: i32) -> isize {
    // SAFETY: a stage's page has room for the structure, and all zero is one.
    unsafe { (*stage.page.cast::<libc::flock>()).l_type = kind as i16 };
    fcntl(stage, command, page(stage))
}

/// ioctl(2).
pub const IOCTLS: &[Named] = &[
    ("FIONREAD", |s| ioctl(s, libc::FIONREAD, page(s))),
    ("FIONREAD to nowhere", |s| ioctl(s, libc::FIONREAD, 8)),
    ("FIONBIO", |s| ioctl(s, libc::FIONBIO, page(s))),
    ("FIOASYNC", |s| {
        // SAFETY: the page has room for an int.
        unsafe { s.page.write(1) };
        ioctl(s, 0x5452, page(s))
    }),
    ("FIOCLEX", |s| ioctl(s, libc::FIOCLEX, 0)),
    ("FIONCLEX", |s| ioctl(s, libc::FIONCLEX, 0)),
    ("FIOQSIZE", |s| ioctl(s, 0x5460, page(s))),
    ("FIGETBSZ", |s| ioctl(s, 2, page(s))),
    ("FIBMAP", |s| ioctl(s, 1, page(s))),
    ("FIFREEZE", |s| ioctl(s, 0xc004_5877, 0)),
    ("FITHAW", |s| ioctl(s, 0xc004_5878, 0)),
    ("FITRIM", |s| ioctl(s, 0xc018_5879, page(s))),
    ("FICLONE", |s| ioctl(s, 0x4004_9409, s.file as usize)),
    ("FIDEDUPERANGE", |s| ioctl(s, 0xc018_9436, page(s))),
    ("FS_IOC_FIEMAP", |s| ioctl(s, 0xc020_660b, page(s))),
    ("FS_IOC_GETFLAGS", |s| ioctl(s, 0x8008_6601, page(s))),
    ("FS_IOC_SETFLAGS", |s| ioctl(s, 0x4008_6602, page(s))),
    ("FS_IOC_FSGETXATTR", |s| ioctl(s, 0x801c_581f, page(s))),
    ("FS_IOC_FSSETXATTR", |s| ioctl(s, 0x401c_5820, page(s))),
    ("FS_IOC_GETFSUUID", |s| ioctl(s, 0x8011_1500, page(s))),
    ("FS_IOC_GETFSSYSFSPATH", |s| ioctl(s, 0x8081_1501, page(s))),
    ("FS_IOC_RESVSP", |s| ioctl(s, 0x4030_5828, page(s))),
    ("TCGETS", |s| ioctl(s, libc::TCGETS, page(s))),
    ("TIOCGWINSZ", |s| ioctl(s, libc::TIOCGWINSZ, page(s))),
    ("TIOCOUTQ", |s| ioctl(s, libc::TIOCOUTQ, page(s))),
    ("BLKGETSIZE64", |s| ioctl(s, 0x8008_1272, page(s))),
    ("SIOCGIFCONF", |s| ioctl(s, 0x8912, page(s))),
    ("IOC_WATCH_QUEUE_SET_SIZE", |s| ioctl(s, 0x5760, 1)),
    ("IOC_WATCH_QUEUE_SET_FILTER", |s| ioctl(s, 0x5761, 0)),
    ("VERSION of the control device", |s| ioctl(s, 0xb900, 0)),
];

fn vectored(stage: &Stage, number: libc::c_long, flags: usize) -> isize {
    let vector = libc::iovec {
        iov_base: stage.page.cast(),
        iov_len: 2,
    };
    let at = usize::MAX;
    on(
        stage,
        number,
        [ptr::from_ref(&vector) as usize, 1, at, at, flags],
    )
}

/// Flags of reads and writes, and their bounds.
pub const IO_FLAGS: &[Named] = &[
    ("RWF_HIPRI", |s| both_vectored(s, 0x1)),
    ("RWF_DSYNC", |s| both_vectored(s, 0x2)),
    ("RWF_SYNC", |s| both_vectored(s, 0x4)),
    ("RWF_NOWAIT", |s| both_vectored(s, 0x8)),
    ("RWF_APPEND", |s| both_vectored(s, 0x10)),
    ("RWF_NOAPPEND", |s| both_vectored(s, 0x20)),
    ("RWF_ATOMIC", |s| both_vectored(s, 0x40)),
    ("RWF_DONTCACHE", |s| both_vectored(s, 0x80)),
    ("RWF_NOSIGNAL", |s| both_vectored(s, 0x100)),
    ("an unknown flag", |s| both_vectored(s, 0x8000)),
    ("too long a vector", |s| {
        on(s, libc::SYS_writev, [page(s), 1025, 0, 0, 0])
    }),
    ("a negative length", |s| {
        on(s, libc::SYS_read, [page(s), usize::MAX, 0, 0, 0])
    }),
    ("a negative length out", |s| {
        on(s, libc::SYS_write, [page(s), usize::MAX, 0, 0, 0])
    }),
];

// Reads, then writes; both results in one number.
fn both_vectored(stage: &Stage, flags: usize) -> isize {
    let outcome = |result: isize| match checked(result) {
        Ok(count) => count as isize,
        Err(error) => -(error.raw_os_error() as isize),
    };
    let read = outcome(vectored(stage, libc::SYS_preadv2, flags));
    let write = outcome(vectored(stage, libc::SYS_pwritev2, flags));
    // Errnos are below 200 here; none of it is negative.
    (read + 200) * 1000 + write + 200
}

/// open(2) by a link in /proc.
pub const REOPENINGS: &[Named] = &[
    ("for reading", |s| reopened(s, libc::O_RDONLY)),
    ("for writing", |s| reopened(s, libc::O_WRONLY)),
    ("for both", |s| reopened(s, libc::O_RDWR)),
    ("for neither", |s| reopened(s, 3)),
    ("without waiting", |s| {
        reopened(s, libc::O_RDWR | libc::O_NONBLOCK)
    }),
    ("with packets", |s| {
        reopened(s, libc::O_WRONLY | libc::O_DIRECT)
    }),
    ("to append", |s| {
        reopened(s, libc::O_WRONLY | libc::O_APPEND)
    }),
    ("synchronously", |s| {
        reopened(s, libc::O_WRONLY | libc::O_SYNC)
    }),
    ("with a signal", |s| {
        reopened(s, libc::O_RDONLY | libc::O_ASYNC)
    }),
    ("truncated", |s| reopened(s, libc::O_RDWR | libc::O_TRUNC)),
    ("created", |s| reopened(s, libc::O_RDWR | libc::O_CREAT)),
    ("created anew", |s| {
        reopened(s, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)
    }),
    ("as a directory", |s| {
        reopened(s, libc::O_RDONLY | libc::O_DIRECTORY)
    }),
    ("not by a link", |s| {
        reopened(s, libc::O_RDONLY | libc::O_NOFOLLOW)
    }),
    ("without access times", |s| {
        reopened(s, libc::O_RDONLY | libc::O_NOATIME)
    }),
    ("as a path", |s| reopened(s, libc::O_PATH)),
    ("as a temporary file", |s| {
        reopened(s, libc::O_RDWR | libc::O_TMPFILE)
    }),
];

// The flags of the new description.
fn reopened(stage: &Stage, flags: i32) -> isize {
    let link = stage.link.as_ptr() as usize;
    let at = libc::AT_FDCWD as usize;
    let fd = raw(libc::SYS_openat, [at, link, flags as usize, 0, 0, 0]);
    if fd < 0 {
        return fd;
    }
    let flags = raw(
        libc::SYS_fcntl,
        [fd as usize, libc::F_GETFL as usize, 0, 0, 0, 0],
    );
    opened(fd);
    flags
}
