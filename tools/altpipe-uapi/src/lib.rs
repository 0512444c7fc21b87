// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pipes whose behaviour the caller chooses, through `/dev/altpipe`.
//!
//! [`Control`] is the open control device; [`Control::create`] is pipe2(2) with a config. The two ends it gives
//! are ordinary FIFO descriptors: read, write, poll and close them as any pipe. [`get_config`] and [`get_stats`]
//! ask an end how its pipe was made and what it has done since.
//!
//! ```no_run
//! use altpipe_uapi::{Control, Flags, get_stats};
//!
//! let control = Control::open()?;
//! let (reader, writer) = control.create(Flags::CLOEXEC, "tail_update=wait_lock,exclusive=0")?;
//! println!("{} bytes so far", get_stats(&reader)?.bytes_written);
//! # drop(writer);
//! # std::io::Result::Ok(())
//! ```
//!
//! Without the feature `std` only [`raw`] and the types of arguments are left, for those who have no std.
//!
//! Every error is the kernel's own errno as an [`io::Error`]; the header `altpipe.h` says which call gives which.

#![cfg_attr(not(feature = "std"), no_std)]
#![warn(missing_docs)]

#[cfg(feature = "std")]
mod control;
mod flags;
pub mod raw;
mod stats;

#[cfg(feature = "std")]
pub use control::{Control, get_config, get_size, get_stats, set_size};
pub use flags::Flags;
pub use stats::Stats;

/// Where the control device lives.
pub const DEVICE: &str = "/dev/altpipe";

/// The version of the ABI that this crate speaks; `Control::version` gives the module's.
pub const ABI_VERSION: u32 = 1;
