// SPDX-License-Identifier: GPL-2.0

//! altpipefs: the file system whose inodes are created pipes.

use crate::{
    abi::{
        pseudo_fs::{self, PseudoFs},
        registry::Live,
        user,
    },
    config::Config,
    engine::{Engine, Pipes},
    limits::Limits,
};
use kernel::{
    fs::File,
    prelude::*,
    sync::{aref::ARef, Arc},
};

/// The file system type.
pub(crate) struct Altpipefs;

impl PseudoFs for Altpipefs {
    type Module = crate::Altpipe;
    const NAME: &'static CStr = c"altpipefs";
    const MAGIC: c_ulong = user::SUPER_MAGIC as c_ulong;
    const LABEL: &'static str = "altpipe";
}

/// The registered file system.
pub(crate) type FileSystem = pseudo_fs::FileSystem<Altpipefs>;

/// The mounted file system.
pub(crate) type Mount = pseudo_fs::Mount<Altpipefs>;

/// The two ends of a new pipe.
pub(crate) struct NewPipe {
    /// The end to read from.
    pub(crate) read: ARef<File>,
    /// The end to write to.
    pub(crate) write: ARef<File>,
}

/// Makes a pipe of engine `E` and opens both its ends.
///
/// `flags` are O_NONBLOCK and O_DIRECT as for pipe2(2), and nothing else.
pub(crate) fn create<E: Engine>(
    mount: &Mount,
    pipes: &Arc<Pipes<E>>,
    limits: &Arc<Limits>,
    config: Config,
    flags: u32,
) -> Result<NewPipe> {
    let pipe = Live::new(pipes, E::new(config, limits.clone())?)?;
    let (read, write) = mount.open_ends(pipe, config.block_size, config.nowait, flags)?;

    Ok(NewPipe { read, write })
}
