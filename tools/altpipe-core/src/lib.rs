// SPDX-License-Identifier: GPL-2.0

//! The host twin of altpipe's pure core.
//!
//! The kernel module owns the files under `rust/config` and `rust/ring`; this crate compiles the
//! very same files, with nothing conditional in them. It serves two ends:
//!
//! * the tools parse and print configs with the kernel's own code, and get from here what the kernel
//!   has no use for: errors that [list the choices](ParseError);
//! * the rules of the core are tested in seconds, without a kernel.
//!
//! Where the kernel's files ask their crate for something of the machine, here [`page`] and, for
//! the ring's tests, `sync`, this crate has a module of the same name.
//!
//! ```
//! use altpipe_core::Config;
//!
//! let config = Config::parse("tail_update=wait_lock,exclusive=0", &Config::DEFAULT)?;
//! assert!(!config.exclusive);
//! assert_eq!(config.to_string(), "v7.3,tail_update=wait_lock,exclusive=0");
//!
//! let error = Config::parse("times=ctime", &Config::DEFAULT).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     r#"times cannot be "ctime"; it takes none, atime, mtime or full"#
//! );
//! # Ok::<(), altpipe_core::ParseError<'static>>(())
//! ```

#![warn(missing_docs)]

#[cfg(test)]
mod checks;
mod explain;
pub mod page;
#[cfg(test)]
mod sync;

// An inline module with a path: the files below it then find their own parts where the kernel's
// build finds them.
#[path = "../../../rust"]
mod shared {
    pub mod config;
    #[cfg(test)]
    pub mod ring;
}

pub use shared::config;
pub use shared::config::{Config, Knob, ParseError, Preset, KNOBS, PRESETS};
#[cfg(test)]
use shared::ring;
