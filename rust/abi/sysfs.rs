// SPDX-License-Identifier: GPL-2.0

//! The files of a device in sysfs, from tables made by the compiler.
//!
//! A [`File`] joins a name to a *row*: any value whose type says how the file is shown ([`Show`])
//! and stored ([`Store`]). Files are listed in a [`Group`], which is a directory, and groups in
//! [`Groups`], which a device takes when it is registered. Nothing here is allocated and nothing
//! can fail, so a device either has all its files or does not exist.
//!
//! C headers: [`include/linux/device.h`](srctree/include/linux/device.h),
//! [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h)

use crate::bindings;
use core::{fmt, marker::PhantomData, ptr::NonNull};
use kernel::{page::PAGE_SIZE, prelude::*};

/// An object whose device shows it in sysfs.
pub(crate) trait Owner: Sync + Sized {
    /// Who registers its device, and so attaches its [`Groups`].
    type Home: Home<Self>;
}

/// Whoever registers the devices of an `O` and finds the one behind the other.
///
/// # Safety
///
/// [`Groups`] of `O` are attached only to devices for which [`Home::owner`] may be called from the
/// time the first file appears until the last is gone.
pub(crate) unsafe trait Home<O> {
    /// Finds the object behind a device.
    ///
    /// # Safety
    ///
    /// `device` is one that [`Groups`] of `O` are attached to, and has its files for as long as
    /// `'a`.
    unsafe fn owner<'a>(device: *mut bindings::device) -> &'a O;
}

/// A row whose file can be read.
pub(crate) trait Show<O>: Sync {
    /// Writes what the file holds, without a newline at the end. An error stands for a text that
    /// is longer than a page.
    fn show(&self, owner: &O, text: &mut dyn fmt::Write) -> fmt::Result;
}

/// A row whose file can be written.
pub(crate) trait Store<O>: Sync {
    /// Takes what was written, without the newline at its end. On error nothing has changed.
    fn store(&self, owner: &O, text: &str) -> Result;
}

/// One file.
///
/// # Invariants
///
/// `raw` names callbacks of this very type only, so whoever calls them passes a pointer to the
/// `raw` of a whole `File<O, R>`.
#[repr(C)]
pub(crate) struct File<O, R: 'static> {
    raw: bindings::device_attribute,
    row: &'static R,
    owner: PhantomData<fn(&O)>,
}

impl<O, R> Clone for File<O, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O, R> Copy for File<O, R> {}

impl<O: Owner, R: Show<O> + Store<O>> File<O, R> {
    /// A file that all may read and root may write.
    pub(crate) const fn read_write(name: &'static CStr, row: &'static R) -> Self {
        let mut file = Self::new(name, 0o644, row);
        file.raw.__bindgen_anon_1.show_const = Some(Self::show);
        file.raw.__bindgen_anon_2.store_const = Some(Self::store);
        file
    }
}

impl<O: Owner, R: Show<O>> File<O, R> {
    /// A file that all may read and nobody may write.
    pub(crate) const fn read_only(name: &'static CStr, row: &'static R) -> Self {
        let mut file = Self::new(name, 0o444, row);
        file.raw.__bindgen_anon_1.show_const = Some(Self::show);
        file
    }

    /// # Safety
    ///
    /// `device` and `attribute` are those of a file in a group of `O`, which cannot go away before
    /// the call returns; `page` is a page that nobody else uses meanwhile.
    unsafe extern "C" fn show(
        device: *mut bindings::device,
        attribute: *const bindings::device_attribute,
        page: *mut c_char,
    ) -> isize {
        // SAFETY: By the type invariant `attribute` is the first field of a `Self`, which lives as
        // long as the module.
        let file = unsafe { &*attribute.cast::<Self>() };
        // SAFETY: The caller passes a device with a group of `O`, and sysfs removes a file only
        // when no call into it is under way.
        let owner = unsafe { O::Home::owner(device) };
        // SAFETY: The caller passes a page of its own, which sysfs has zeroed.
        let page = unsafe { core::slice::from_raw_parts_mut(page.cast::<u8>(), ROOM) };

        let mut text = Text(page);
        let shown = file.row.show(owner, &mut text);
        match shown.and_then(|()| fmt::Write::write_char(&mut text, '\n')) {
            // At most a page, which is far below the largest `isize`.
            Ok(()) => text.length() as isize,
            Err(fmt::Error) => EOVERFLOW.to_errno() as isize,
        }
    }
}

impl<O: Owner, R: Store<O>> File<O, R> {
    /// A file that root may write and nobody may read.
    pub(crate) const fn write_only(name: &'static CStr, row: &'static R) -> Self {
        let mut file = Self::new(name, 0o200, row);
        file.raw.__bindgen_anon_2.store_const = Some(Self::store);
        file
    }

    /// # Safety
    ///
    /// `device` and `attribute` are those of a file in a group of `O`, which cannot go away before
    /// the call returns; `bytes` holds `count` bytes that nobody changes meanwhile.
    unsafe extern "C" fn store(
        device: *mut bindings::device,
        attribute: *const bindings::device_attribute,
        bytes: *const c_char,
        count: usize,
    ) -> isize {
        // SAFETY: By the type invariant `attribute` is the first field of a `Self`, which lives as
        // long as the module.
        let file = unsafe { &*attribute.cast::<Self>() };
        // SAFETY: The caller passes a device with a group of `O`, and sysfs removes a file only
        // when no call into it is under way.
        let owner = unsafe { O::Home::owner(device) };
        // SAFETY: The caller passes that many bytes, in a buffer of its own.
        let bytes = unsafe { core::slice::from_raw_parts(bytes.cast::<u8>(), count) };

        match line(bytes).and_then(|text| file.row.store(owner, text)) {
            // sysfs hands over a page at most, which is far below the largest `isize`.
            Ok(()) => count as isize,
            Err(error) => error.to_errno() as isize,
        }
    }
}

impl<O, R> File<O, R> {
    const fn new(name: &'static CStr, mode: bindings::umode_t, row: &'static R) -> Self {
        let mut raw: bindings::device_attribute = pin_init::zeroed();
        raw.attr.name = kernel::str::as_char_ptr_in_const_context(name);
        raw.attr.mode = mode;
        // INVARIANT: There are no callbacks yet.
        Self {
            raw,
            row,
            owner: PhantomData,
        }
    }

    /// The file as a group lists it.
    pub(crate) const fn entry(&'static self) -> Entry<O> {
        // The pointer is made from the whole file, not from its first field, because the callbacks
        // go back from the one to the other.
        // SAFETY: A reference is never null.
        let whole = unsafe { NonNull::new_unchecked(core::ptr::from_ref(self).cast_mut()) };
        // INVARIANT: `attr` is the first field of `raw`, and `raw` the first of a file.
        Entry(whole.cast(), PhantomData)
    }
}

/// The text behind what was written: one line, which may end in a newline.
///
/// sysfs cuts a longer write at a page and says nothing, so a whole page may be the beginning of
/// something else and is refused.
fn line(bytes: &[u8]) -> Result<&str> {
    if bytes.len() >= PAGE_SIZE {
        return Err(EINVAL);
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    core::str::from_utf8(line).map_err(|_| EINVAL)
}

/// What a file may show, in bytes: sysfs complains about a full page.
const ROOM: usize = PAGE_SIZE - 1;

/// A text that is being written: the room that it leaves. Once a piece has not fitted there is no
/// room any more.
struct Text<'a>(&'a mut [u8]);

impl Text<'_> {
    /// The bytes written so far.
    fn length(&self) -> usize {
        ROOM.saturating_sub(self.0.len())
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let (place, rest) = core::mem::take(&mut self.0)
            .split_at_mut_checked(piece.len())
            .ok_or(fmt::Error)?;
        place.copy_from_slice(piece.as_bytes());
        self.0 = rest;
        Ok(())
    }
}

/// A file of an `O`, whatever its row.
///
/// # Invariants
///
/// The pointer leads to the `attr` of a [`File`] of `O` that lives as long as the module.
#[repr(transparent)]
pub(crate) struct Entry<O>(NonNull<bindings::attribute>, PhantomData<fn(&O)>);

impl<O> Clone for Entry<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Entry<O> {}

/// A list that ends in a null pointer.
///
/// `T` is a pointer that is never null, so that `None` is a null pointer in memory.
#[repr(C)]
pub(crate) struct List<T, const N: usize> {
    items: [Option<T>; N],
    end: Option<T>,
}

impl<T: Copy, const N: usize> List<T, N> {
    /// Makes a list of these items.
    pub(crate) const fn new(items: [T; N]) -> Self {
        let mut list = [None; N];
        let mut at = 0;
        while at < N {
            list[at] = Some(items[at]);
            at += 1;
        }
        Self::up_to_none(list)
    }

    /// Makes a list of those items that come before the first `None`.
    pub(crate) const fn up_to_none(items: [Option<T>; N]) -> Self {
        Self { items, end: None }
    }
}

impl<O, const N: usize> List<Entry<O>, N> {
    /// Makes a list of `files`, with `other` in the places that they leave.
    ///
    /// It is run by the compiler: more files than places fail the build.
    pub(crate) const fn of<R>(files: &'static [File<O, R>], other: Entry<O>) -> Self {
        let mut items = [other; N];
        let mut at = 0;
        while at < files.len() {
            items[at] = files[at].entry();
            at += 1;
        }
        Self::new(items)
    }
}

/// The files of one directory below the device's own.
#[repr(transparent)]
pub(crate) struct Group<O>(bindings::attribute_group, PhantomData<fn(&O)>);

impl<O: 'static> Group<O> {
    /// A directory of this name with these files.
    pub(crate) const fn new<const N: usize>(
        name: &'static CStr,
        files: &'static List<Entry<O>, N>,
    ) -> Self {
        let mut group = Self::unnamed(files);
        group.0.name = kernel::str::as_char_ptr_in_const_context(name);
        group
    }

    /// These files, in the device's own directory.
    pub(crate) const fn unnamed<const N: usize>(files: &'static List<Entry<O>, N>) -> Self {
        let mut raw: bindings::attribute_group = pin_init::zeroed();
        // An `Entry` is a pointer, and so is an `Option` of one, null for `None`.
        raw.__bindgen_anon_2.attrs_const = core::ptr::from_ref(files).cast();
        Self(raw, PhantomData)
    }
}

/// All files of a device.
///
/// # Invariants
///
/// The pointer leads to a null-terminated list of groups of `O` that lives as long as the module.
pub(crate) struct Groups<O>(*const *const bindings::attribute_group, PhantomData<fn(&O)>);

impl<O: 'static> Groups<O> {
    /// The files of these groups.
    pub(crate) const fn new<const N: usize>(groups: &'static List<&'static Group<O>, N>) -> Self {
        // INVARIANT: A reference is a pointer, and so is an `Option` of one, null for `None`.
        Self(core::ptr::from_ref(groups).cast(), PhantomData)
    }

    /// The list as the C side takes it. It is never written through.
    pub(super) const fn as_ptr(&self) -> *mut *const bindings::attribute_group {
        self.0.cast_mut()
    }
}
