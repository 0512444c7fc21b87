// SPDX-License-Identifier: GPL-2.0

//! Which time stamps an I/O call touches.

use super::Times;

impl Times {
    /// Whether a read moves the access time.
    #[inline]
    pub fn touches_atime(self) -> bool {
        matches!(self, Self::Atime | Self::Full)
    }

    /// Whether a write moves the modification and change times.
    #[inline]
    pub fn touches_mtime(self) -> bool {
        matches!(self, Self::Mtime | Self::Full)
    }
}
