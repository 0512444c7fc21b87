// SPDX-License-Identifier: GPL-2.0
//! What `/proc/self/fdinfo` tells of an end of altpipe's.

use std::fs;
use std::os::fd::AsFd;

use crate::end;

/// The value of one of altpipe's lines.
pub fn field(end: impl AsFd, name: &str) -> String {
    find(&text(end), name)
}

/// The number of tasks that sleep on the pipe; none where a task held the pipe for so long that
/// there is nothing to tell.
pub fn sleepers(end: impl AsFd) -> Option<u64> {
    let text = text(end);
    let is_held = text.contains("altpipe-held:");
    (!is_held).then(|| find(&text, "sleepers").parse().expect("a number"))
}

fn text(end: impl AsFd) -> String {
    fs::read_to_string(format!("/proc/self/fdinfo/{}", end::number(&end)))
        .expect("an open descriptor")
}

fn find(text: &str, name: &str) -> String {
    let start = format!("altpipe-{name}:\t");
    text.lines()
        .find_map(|line| line.strip_prefix(&start))
        .unwrap_or_else(|| panic!("no altpipe-{name} in {text:?}"))
        .to_string()
}

/// The value of a line that holds a number.
pub fn number(end: impl AsFd, name: &str) -> u64 {
    field(end, name).parse().expect("a number")
}
