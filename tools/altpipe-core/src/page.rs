// SPDX-License-Identifier: GPL-2.0

//! The page size, which the kernel's `page` module gives to the same files there.

/// Bytes in a page of the machines that altpipe has been built for.
pub const PAGE_SIZE: usize = 4096;
