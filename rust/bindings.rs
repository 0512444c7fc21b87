// SPDX-License-Identifier: GPL-2.0

//! Raw bindings: the kernel crate's, and beside them those that it lacks.
//!
//! What bindgen made of `bindings/bindings_helper.h` is included in this very module, not in one
//! of its own: an item shadows a glob import of the same name, whereas two globs would collide.
//! Callers therefore write `bindings::X` without knowing which of the two it is. Only `abi` may
//! use this module.

// The generated half follows C's names and bindgen's habits.
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub
)]

use kernel::ffi;
use pin_init::MaybeZeroable;

pub(crate) use kernel::bindings::*;

include!(concat!(env!("ALTPIPE_OBJ"), "/bindings/generated.rs"));
