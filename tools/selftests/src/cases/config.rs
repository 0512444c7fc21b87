// SPDX-License-Identifier: GPL-2.0
//! What a pipe says of its config.

use altpipe_uapi::{get_config, raw};
use rustix::io::Errno;

use crate::case::{Area, Case};
use crate::memory::{NOWHERE, ioctl_at, ioctl_on};
use crate::subject::{Subject, config_of};

/// Cases about GET_CONFIG.
pub const AREA: Area = Area {
    name: "config",
    cases: &[
        Case::altpipe(
            "GET_CONFIG on either end gives a text that parses back to the pipe's config",
            config_text,
        ),
        Case::altpipe(
            "GET_CONFIG fills a buffer of just the right size and is ERANGE below it",
            config_room,
        ),
        Case::altpipe(
            "GET_CONFIG to a bad address is EFAULT, with a non-zero pad EINVAL",
            config_fault,
        ),
    ],
};

fn config_text(subject: &Subject) {
    let pipe = subject.pipe();
    assert_eq!(
        (config_of(&pipe.read), config_of(&pipe.write)),
        (subject.config(), subject.config())
    );
}

fn config_room(subject: &Subject) {
    let pipe = subject.pipe();
    let text = get_config(&pipe.read).unwrap();
    let mut buffer = vec![b'-'; text.len() + 1];
    let room = |len: usize, buffer: &mut Vec<u8>| {
        let mut argument = raw::Text {
            buf: buffer.as_mut_ptr() as u64,
            len: len as u32,
            pad: 0,
        };
        ioctl_on(&pipe.read, raw::GET_CONFIG, &mut argument)
    };
    assert_eq!(room(text.len(), &mut buffer), Ok(text.len()));
    assert_eq!(buffer, [text.as_bytes(), b"-"].concat(), "no terminator");
    if let Some(less) = text.len().checked_sub(1) {
        assert_eq!(room(less, &mut buffer), Err(Errno::RANGE));
    }
}

fn config_fault(subject: &Subject) {
    let pipe = subject.pipe();
    assert_eq!(
        ioctl_at(&pipe.read, raw::GET_CONFIG, NOWHERE),
        Err(Errno::FAULT)
    );
    let mut padded = raw::Text {
        buf: 0,
        len: 0,
        pad: 1,
    };
    assert_eq!(
        ioctl_on(&pipe.read, raw::GET_CONFIG, &mut padded),
        Err(Errno::INVAL)
    );
    if !get_config(&pipe.read).unwrap().is_empty() {
        let mut argument = raw::Text {
            buf: NOWHERE as u64,
            len: 1000,
            pad: 0,
        };
        assert_eq!(
            ioctl_on(&pipe.read, raw::GET_CONFIG, &mut argument),
            Err(Errno::FAULT)
        );
    }
}
