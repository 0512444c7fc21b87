// SPDX-License-Identifier: GPL-2.0

//! What the kernel crate does not wrap yet: one file for each C header.
//!
//! All `unsafe` code of the module is here and in the generated bindings. Each file is written so
//! that it could be offered to `rust/kernel`.

pub(crate) mod chrdev;
pub(crate) mod fasync;
pub(crate) mod file_operations;
pub(crate) mod iov;
pub(crate) mod miscdevice;
pub(crate) mod mutex;
pub(crate) mod pseudo_fs;
pub(crate) mod quota;
pub(crate) mod registry;
pub(crate) mod splice;
pub(crate) mod stack;
pub(crate) mod sysfs;
pub(crate) mod task;
pub(crate) mod times;
pub(crate) mod user;
pub(crate) mod wait;
pub(crate) mod word;
