// SPDX-License-Identifier: GPL-2.0
//! FIFO devices come and go with the module, and hold it while they are in use.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::io::Errno;

use super::Lifecycle;
use crate::end::{read, write};
use crate::fifo::Fifos;
use crate::module::traces;
use crate::process::Process;

// The names in /dev and in the class, which are to be the same.
fn names() -> Vec<String> {
    let list = |directory: &str| {
        let mut names: Vec<_> = fs::read_dir(directory)
            .into_iter()
            .flatten()
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.into_string().expect("a name in ASCII"))
            .filter(|name| name.starts_with("altpipe") && name != "altpipe")
            .collect();
        names.sort();
        names
    };
    let nodes = list("/dev");
    assert_eq!(nodes, list("/sys/class/altpipe"));
    nodes
}

pub fn devices_parameter(it: &Lifecycle) {
    for (parameters, count, mode) in [
        ("", 4, 0o600),
        ("devices=0", 0, 0),
        ("devices=1 fifo_mode=0640", 1, 0o640),
        ("devices=64 mode=0644 fifo_mode=0666", 64, 0o666),
    ] {
        it.module.load_with(parameters).unwrap();
        let names = names();
        assert_eq!(names.len(), count, "{parameters:?}");
        for number in 0..count {
            let name = format!("altpipe{number}");
            assert!(names.contains(&name), "{name} under {parameters:?}");
            let node = fs::metadata(Path::new("/dev").join(&name)).unwrap();
            assert!(node.file_type().is_char_device());
            assert_eq!(node.mode() & 0o7777, mode);
        }
        it.unload();
        assert!(!Path::new("/sys/class/altpipe").exists());
    }
    for parameter in [
        "devices=65",
        "devices=-1",
        "devices=x",
        "devices=4294967295",
    ] {
        assert_eq!(
            it.module.load_with(parameter),
            Err(Errno::INVAL),
            "{parameter:?}"
        );
        assert_eq!(traces(), [false; 4], "{parameter:?}");
        assert!(names().is_empty(), "{parameter:?}");
    }
}

pub fn file_pins(it: &Lifecycle) {
    it.module.load();
    let both = Fifos::devices("").unwrap().fifo(3).open_both();
    it.assert_refused();
    write(&both, b"abc").unwrap();
    assert_eq!(read(&both, 64).as_deref(), Ok(&b"abc"[..]));
    drop(both);
    it.unload();
}

pub fn waiting_open_pins(it: &Lifecycle) {
    it.module.load();
    let fifo = Fifos::devices("").unwrap().fifo(0);
    let child = Process::fork(|| drop(fifo.open_reader()));
    child.watched().until_opening();
    it.assert_refused();
    child.kill();
    it.module.unload_when_free();
}
