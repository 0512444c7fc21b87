// SPDX-License-Identifier: GPL-2.0

//! Time stamps of the inode behind a file, and the freeze check around them.
//!
//! C headers: [`include/linux/fs.h`](srctree/include/linux/fs.h),
//! [`include/linux/fs/super.h`](srctree/include/linux/fs/super.h)

use super::file_operations::IoCall;
use crate::bindings;
use kernel::{error::to_result, prelude::*};

/// Notes a read: moves the access time, unless the file was opened with O_NOATIME.
pub(crate) fn accessed(call: &IoCall<'_>) {
    let file = call.file();

    // SAFETY: `call` holds a valid file, and a path does not change while its file is open.
    unsafe {
        if (*file).f_flags & bindings::O_NOATIME == 0 {
            bindings::touch_atime(&raw const (*file).__bindgen_anon_1.f_path);
        }
    }
}

/// Notes a write: moves the modification and change times.
pub(crate) fn modified(call: &IoCall<'_>) -> Result {
    // SAFETY: `call` holds a valid file.
    to_result(unsafe { bindings::file_update_time(call.file()) })
}

/// As [`modified`], where the superblock lets itself be written to; a frozen one keeps its times.
pub(crate) fn modified_unless_frozen(call: &IoCall<'_>) -> Result {
    // SAFETY: `call` holds a valid file, whose inode and superblock outlive it.
    let sb = unsafe { (*(*call.file()).f_inode).i_sb };

    // SAFETY: `sb` is valid, see above.
    if !unsafe { bindings::altpipe_sb_start_write_trylock(sb) } {
        return Ok(());
    }
    let result = modified(call);
    // SAFETY: Write access was taken above.
    unsafe { bindings::altpipe_sb_end_write(sb) };
    result
}
