// SPDX-License-Identifier: GPL-2.0

//! Structures of the user ABI, to and from user space.
//!
//! C header: `rust/uapi/altpipe.h`

use crate::bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    transmute::{AsBytes, FromBytes},
    uaccess::{UserPtr, UserSlice},
};

pub(crate) use bindings::{
    altpipe_create as Create, altpipe_text as Text, ALTPIPE_ABI_VERSION as ABI_VERSION,
    ALTPIPE_IOC_CREATE as CREATE, ALTPIPE_IOC_GET_CONFIG as GET_CONFIG,
    ALTPIPE_IOC_GET_SIZE as GET_SIZE, ALTPIPE_IOC_GET_STATS as GET_STATS,
    ALTPIPE_IOC_SET_SIZE as SET_SIZE, ALTPIPE_IOC_VERSION as VERSION,
    ALTPIPE_SUPER_MAGIC as SUPER_MAGIC, FIONREAD,
};

// SAFETY: All fields are integers and leave no gap, so every pattern of bits is a value.
unsafe impl FromBytes for Create {}
// SAFETY: As above: there is no padding whose bytes could leak.
unsafe impl AsBytes for Create {}
// SAFETY: As for `Create`.
unsafe impl FromBytes for Text {}

/// The largest structure that is taken from, or filled in for, a newer program.
const LARGEST: usize = PAGE_SIZE;

fn slice(address: usize, len: usize) -> UserSlice {
    UserSlice::new(UserPtr::from_addr(address), len)
}

/// Reads a structure of a fixed size.
pub(crate) fn read<T: FromBytes>(address: usize) -> Result<T> {
    slice(address, size_of::<T>()).reader().read()
}

/// Writes a structure of a fixed size.
pub(crate) fn write<T: AsBytes>(address: usize, value: &T) -> Result {
    slice(address, size_of::<T>()).writer().write(value)
}

/// Writes bytes.
pub(crate) fn write_bytes(address: u64, bytes: &[u8]) -> Result {
    let address = usize::try_from(address).map_err(|_| EFAULT)?;

    slice(address, bytes.len()).writer().write_slice(bytes)
}

/// Reads `into.len()` bytes.
pub(crate) fn read_bytes(address: u64, into: &mut [u8]) -> Result {
    let address = usize::try_from(address).map_err(|_| EFAULT)?;

    slice(address, into.len()).reader().read_slice(into)
}

/// Reads a structure that begins with its own size and may grow at its end.
///
/// A shorter one is none of any version: `EINVAL`. A longer one comes from a newer program: it is
/// taken where what we do not know is zero, and `E2BIG` otherwise.
pub(crate) fn read_sized<T: FromBytes>(address: usize) -> Result<T> {
    let size = read::<u32>(address)? as usize;

    if size < size_of::<T>() {
        return Err(EINVAL);
    }
    if size > LARGEST {
        return Err(E2BIG);
    }
    let mut reader = slice(address, size).reader();
    let value = reader.read()?;
    while !reader.is_empty() {
        if reader.read::<u8>()? != 0 {
            return Err(E2BIG);
        }
    }
    Ok(value)
}

/// Fills in a structure of numbers behind a head of two 32-bit fields: its size, and zero.
///
/// What the caller's structure has beyond `values` reads as zero; what it lacks is left out.
pub(crate) fn write_sized(address: usize, values: &[u64]) -> Result {
    const HEAD: usize = 2 * size_of::<u32>();

    let [size, pad] = read::<[u32; 2]>(address)?;
    let room = (size as usize).checked_sub(HEAD).ok_or(EINVAL)?;
    if pad != 0 {
        return Err(EINVAL);
    }
    if room > LARGEST {
        return Err(E2BIG);
    }

    let start = address.checked_add(HEAD).ok_or(EFAULT)?;
    let mut writer = slice(start, room).writer();
    for value in values {
        let bytes = value.to_ne_bytes();
        let fits = writer.len().min(bytes.len());

        writer.write_slice(bytes.get(..fits).unwrap_or(&[]))?;
    }
    while !writer.is_empty() {
        writer.write(&0u8)?;
    }
    Ok(())
}
