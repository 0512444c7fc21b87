// SPDX-License-Identifier: GPL-2.0
//! What `/proc/self/fdinfo` tells of an end of altpipe's.

use std::fs;
use std::os::fd::AsFd;

use crate::end;

/// The value of one of altpipe's lines.
pub fn field(end: impl AsFd, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", end::number(&end)))
        .expect("an open descriptor");
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
