// SPDX-License-Identifier: GPL-2.0

//! What the pure core shares between tasks, as the kernel has it.
//!
//! The core names it by `crate::sync`, so that the same file runs on the kernel's memory model here
//! and on std's or loom's in the host twin (`tools/altpipe-core`).

pub(crate) use crate::abi::word::Word;
