// SPDX-License-Identifier: GPL-2.0

//! The machine's page size, for the pure core.
//!
//! [`config`](crate::config) and [`ring`](crate::ring) name nothing of the kernel, so they take the
//! page size from here; the host twin in `tools/altpipe-core` has a `page` module of its own.

/// Bytes in a page: what one slot of a ring can hold.
pub(crate) use kernel::page::PAGE_SIZE;
