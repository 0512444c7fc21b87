// SPDX-License-Identifier: GPL-2.0
//! Pages that a splice handed on, and the module they came from.

use std::thread::scope;

use altpipe_uapi::{Control, Flags};

use super::{Lifecycle, assert_no_leak};
use crate::end::{CAPACITY, PAGE, fill, queued, read, read_exact, write};
use crate::subject::{Pipe, Subject};
use crate::task::{Call, Task};
use crate::transfer::{file_of, sendfile, splice};

pub fn outlive(it: &Lifecycle) {
    let data: Vec<u8> = (0..5 * PAGE).map(|at| (at / 7) as u8).collect();
    let native = Subject::Native.pipe();
    for _ in 0..3 {
        let (r, w) = it.load_and_make();
        write(&w, &data).unwrap();
        // Part of a page too: then the pipe has a share in what it gave.
        assert_eq!(splice(&r, &native.write, PAGE / 2), Ok(PAGE / 2));
        assert_eq!(splice(&r, &native.write, 4 * PAGE), Ok(4 * PAGE));
        it.assert_refused();
        drop((r, w));
        it.unload();
        // What frees memory and takes it again would show a page that was not held.
        let others = Subject::Native.pipe();
        fill(&others.write, PAGE);
        assert_eq!(read_exact(&native.read, 9 * PAGE / 2), data[..9 * PAGE / 2]);
    }
    // They move on as pages of the kernel's do.
    let (r, w) = it.load_and_make();
    write(&w, &data).unwrap();
    assert_eq!(splice(&r, &native.write, 5 * PAGE), Ok(5 * PAGE));
    drop((r, w));
    it.unload();
    let another = Subject::Native.pipe();
    assert_eq!(splice(&native.read, &another.write, CAPACITY), Ok(5 * PAGE));
    drop(native);
    write(&another.write, b"behind").unwrap();
    assert_eq!(read_exact(&another.read, 5 * PAGE), data);
    assert_eq!(read(&another.read, 100).as_deref(), Ok(&b"behind"[..]));
}

pub fn come_back(it: &Lifecycle) {
    let Pipe { read: r, write: w } = Subject::Native.pipe();
    let file = file_of(&[b'f'; PAGE]);
    it.module.load();
    let control = Control::open().unwrap();
    // A page lost in each turn would be 8000 KiB.
    assert_no_leak(2_000, || {
        let (ours, to_ours) = control.create(Flags::CLOEXEC, "").unwrap();
        for _ in 0..5 {
            write(&w, &[b'x'; PAGE]).unwrap();
            assert_eq!(splice(&r, &to_ours, PAGE), Ok(PAGE));
        }
        let mut at = 0;
        assert_eq!(
            rustix::fs::sendfile(&to_ours, &file, Some(&mut at), PAGE),
            Ok(PAGE)
        );
        assert_eq!(sendfile(&ours, &w, PAGE), Ok(PAGE));
        assert_eq!(read_exact(&r, PAGE), [b'x'; PAGE]);
        read_exact(&ours, 100);
        assert_eq!(queued(&ours), 5 * PAGE - 100);
    });
    drop(control);
    it.unload();
}

pub fn splice_pins(it: &Lifecycle) {
    let (r, w) = it.load_and_make();
    let native = Subject::Native.pipe();
    scope(|s| {
        let reader = Task::asleep_in(s, Call::Splice, &r, || splice(&r, &native.write, 1));
        it.assert_refused();
        drop(w);
        assert_eq!(reader.join(), Ok(0));
    });
    drop(r);
    it.unload();
}
