// SPDX-License-Identifier: GPL-2.0
//! Calls by which the kernel knows its own pipes alone. On ours they are errors, never a pretence.

use std::io;

use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::end::{checked, number, queued, write};
use crate::subject::{Pipe, Subject};

/// Cases about calls that altpipe cannot serve.
pub const AREA: Area = Area {
    name: "foreign",
    cases: &[
        Case::altpipe("F_GETPIPE_SZ and F_SETPIPE_SZ are EBADF", pipe_size),
        Case::altpipe("vmsplice is EBADF and queues nothing", vmsplice),
        Case::altpipe(
            "tee to or from a native pipe is EINVAL and moves nothing",
            tee,
        ),
    ],
};

fn pipe_size(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    for end in [&r, &w] {
        assert_eq!(rustix::pipe::fcntl_getpipe_size(end), Err(Errno::BADF));
        assert_eq!(
            rustix::pipe::fcntl_setpipe_size(end, 8192).map(drop),
            Err(Errno::BADF)
        );
    }
}

fn vmsplice(subject: &Subject) {
    let Pipe { read: r, write: w } = subject.pipe();
    let mut bytes = *b"gift";
    let vector = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: one vector over four bytes that outlive the call; ours takes no page of them.
    let result = checked(unsafe { libc::vmsplice(number(&w), &vector, 1, 0) });
    assert_eq!(result, Err(Errno::BADF));
    assert_eq!(queued(&r), 0);
}

fn tee(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    write(&ours.write, b"ours").unwrap();
    write(&native.write, b"native").unwrap();
    for (from, to) in [
        (&ours.read, &native.write),
        (&native.read, &ours.write),
        (&ours.read, &subject.pipe().write),
    ] {
        // SAFETY: touches no memory of ours.
        let ret = unsafe { libc::tee(number(from), number(to), 100, libc::SPLICE_F_NONBLOCK) };
        assert_eq!(
            (ret, io::Error::last_os_error().raw_os_error()),
            (-1, Some(libc::EINVAL))
        );
    }
    assert_eq!((queued(&ours.read), queued(&native.read)), (4, 6));
}
