// SPDX-License-Identifier: MIT OR Apache-2.0
//! A library that, preloaded, gives a program pipes of altpipe's where it asks for the kernel's.
//!
//! [`injection`] is how it comes between: symbols of C that the program finds before the C library's. Everything
//! below takes what a system call takes and answers as one, so that another way in (for static programs, or for
//! the C library's own calls) replaces that one file. [`road`] makes pipes, [`size`] answers fcntl(2) for their
//! capacity, [`streams`] is popen(3). [`settings`] is what the process was told by its environment, once, and
//! [`counts`] is what it tells back.
//!
//! # What the road may not do
//!
//! pipe(2) may be called in a signal handler, in a thread while others hold any lock, after fork(2) and after
//! vfork(2). So from [`road`] and [`size`] nothing is called but system calls, nothing is allocated or locked, and
//! all state is either settled before the program begins or a shared atomic counter. No descriptor is kept: the
//! control device is open for the length of one call only, and marked to be closed by exec.

#![cfg_attr(feature = "interpose", no_std)]
#![warn(missing_docs)]

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "whether fcntl's third argument can be passed on without knowing its type is to be shown first"
);

pub mod counts;
mod errno;
#[cfg(feature = "interpose")]
mod injection;
pub mod road;
pub mod settings;
pub mod size;
#[cfg(feature = "interpose")]
mod streams;
