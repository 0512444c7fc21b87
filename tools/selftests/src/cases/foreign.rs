// SPDX-License-Identifier: GPL-2.0
//! Calls by which the kernel knows its own pipes alone. On ours they are errors, never a pretence.

use std::io;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{SpliceFlags, splice};

use crate::case::{Area, Case};
use crate::end::{checked, number, queued, write};
use crate::subject::{Pipe, Subject};
use crate::transfer::{self, sendfile};

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
        Case::altpipe(
            "an offset for an end of a splice is EINVAL, where a native pipe gives ESPIPE",
            offsets,
        ),
        Case::altpipe("a splice to a write end with O_APPEND is EINVAL", append),
        Case::altpipe(
            "sendfile from a read end to a native pipe is a splice",
            sendfile_to_native,
        ),
        Case::altpipe(
            "sendfile from what has no position is EINVAL",
            sendfile_from_socket,
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

fn offsets(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    let flags = SpliceFlags::NONBLOCK;
    let mut at = 0;
    write(&ours.write, b"ours").unwrap();
    write(&native.write, b"native").unwrap();
    for (subject, other, expected) in [
        (&ours, &native, Errno::INVAL),
        (&native, &ours, Errno::SPIPE),
    ] {
        let from = splice(&subject.read, Some(&mut at), &other.write, None, 100, flags);
        assert_eq!(from, Err(expected));
        let to = splice(&other.read, None, &subject.write, Some(&mut at), 100, flags);
        assert_eq!(to, Err(expected));
    }
    assert_eq!((queued(&ours.read), queued(&native.read)), (4, 6));
}

fn append(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    let flags = fcntl_getfl(&ours.write).unwrap();
    fcntl_setfl(&ours.write, flags | OFlags::APPEND).unwrap();
    write(&native.write, b"stays").unwrap();
    assert_eq!(
        transfer::splice(&native.read, &ours.write, 100),
        Err(Errno::INVAL)
    );
    assert_eq!(write(&ours.write, b"as ever"), Ok(7));
}

fn sendfile_to_native(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    write(&ours.write, b"moved").unwrap();
    assert_eq!(sendfile(&ours.read, &native.write, 100), Ok(5));
    write(&native.write, b"stays").unwrap();
    let another = Subject::Native.pipe();
    assert_eq!(
        sendfile(&native.read, &another.write, 100),
        Err(Errno::INVAL)
    );
    assert_eq!(queued(&native.read), 10);
}

fn sendfile_from_socket(subject: &Subject) {
    let ours = subject.pipe();
    let native = Subject::Native.pipe();
    let (left, right) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    write(&left, b"socket").unwrap();
    assert_eq!(sendfile(&right, &ours.write, 100), Err(Errno::INVAL));
    assert_eq!(sendfile(&right, &native.write, 100), Ok(6));
}
