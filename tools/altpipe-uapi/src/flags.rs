// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flags of a create call.

use core::ops::BitOr;

/// Flags for [`Control::create`](crate::Control::create), with the meaning they have for pipe2(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Close both ends in a program that this one executes.
    pub const CLOEXEC: Self = Self(libc::O_CLOEXEC as u32);
    /// Fail with `EAGAIN` where a read or a write would sleep.
    pub const NONBLOCK: Self = Self(libc::O_NONBLOCK as u32);
    /// Keep each write apart, as a packet.
    pub const DIRECT: Self = Self(libc::O_DIRECT as u32);

    /// No flag.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// The kernel's bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Takes the kernel's bits unchecked: which ones are legal is the module's to say, by `EINVAL`.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
