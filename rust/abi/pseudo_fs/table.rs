// SPDX-License-Identifier: GPL-2.0

//! The operations of pipes that are kept by an inode of ours.
//!
//! The table's address is what tells the kinds apart, so there is one static table per
//! implementation of [`InodePipe`], and an inode of ours says by its `i_fop` how its private data is
//! to be read.

use crate::{
    abi::file_operations::{Calls, Ends, FileOperations},
    bindings,
};
use core::marker::PhantomData;
use kernel::{prelude::*, sync::Arc, ModuleMetadata};

/// What an inode keeps: a pipe, and what is to be done as it comes and goes.
pub(crate) trait InodePipe: Send + Sync + 'static {
    /// The pipe.
    type Pipe: FileOperations;

    /// Finds the pipe.
    fn pipe(&self) -> &Self::Pipe;
    /// A file with these ends was opened.
    fn opened(&self, ends: Ends);
    /// The last reference to a file with these ends went away.
    fn closed(&self, ends: Ends);
    /// The inode is gone, and with it the last way to reach the pipe.
    fn evicted(this: Arc<Self>);
}

/// The operations of the pipes of one kind, as the VFS calls them.
///
/// # Invariants
///
/// `fops` comes first, so that its address is the table's.
#[repr(C)]
pub(super) struct Table {
    fops: bindings::file_operations,
    /// Gives up the reference that an inode's `i_private` holds.
    ///
    /// # Safety
    ///
    /// The pointer must come from [`Arc::into_raw`] of the kind that the table was made for, and
    /// be passed here once only.
    drop: unsafe fn(*const c_void),
}

// SAFETY: The table is constant.
unsafe impl Sync for Table {}

impl Table {
    /// The table's address as the VFS knows it.
    pub(super) const fn fops(&'static self) -> *const bindings::file_operations {
        &raw const self.fops
    }

    /// Makes an inode with these operations the keeper of `pipe`.
    ///
    /// # Safety
    ///
    /// The table must be `TableOf::<T>::TABLE`, and the inode new, of our own file system and not
    /// yet seen by others.
    pub(super) unsafe fn adopt<T: InodePipe>(
        &'static self,
        inode: *mut bindings::inode,
        pipe: Arc<T>,
    ) {
        // SAFETY: By the safety requirement nobody else looks at the inode yet.
        unsafe {
            (*inode).__bindgen_anon_3.i_fop = self.fops();
            (*inode).i_private = Arc::into_raw(pipe).cast_mut().cast();
        }
    }

    /// Drops what an inode of ours keeps.
    ///
    /// # Safety
    ///
    /// `inode` must be of our file system and in eviction.
    pub(super) unsafe fn release(inode: *mut bindings::inode) {
        // SAFETY: Eviction means that nobody else has the inode.
        let pipe = unsafe { (*inode).i_private };

        // The root of the file system is a plain directory and keeps nothing.
        if pipe.is_null() {
            return;
        }
        // SAFETY: Only `adopt` sets `i_private`, and with it `i_fop` to the first field of a
        // `Table` that lives for ever.
        let table = unsafe { &*(*inode).__bindgen_anon_3.i_fop.cast::<Table>() };
        // SAFETY: The table is the one of the pipe's kind, see `adopt`; eviction happens once.
        unsafe { (table.drop)(pipe) };
    }
}

/// Builds the table for the pipes of kind `T`, in module `M`.
pub(super) struct TableOf<T, M>(PhantomData<(T, M)>);

impl<T: InodePipe, M: ModuleMetadata> TableOf<T, M> {
    /// The table.
    pub(super) const TABLE: &'static Table = &Table {
        fops: bindings::file_operations {
            open: Some(Self::open),
            release: Some(Self::release),
            ..Calls::<T::Pipe, M>::OPERATIONS
        },
        drop: Self::drop,
    };

    /// # Safety
    ///
    /// See [`Table::drop`].
    unsafe fn drop(pipe: *const c_void) {
        // SAFETY: By the safety requirement.
        T::evicted(unsafe { Arc::from_raw(pipe.cast()) });
    }

    /// # Safety
    ///
    /// `inode` must be one that [`Table::adopt`] prepared with this table, and have an open file.
    unsafe fn keeper<'a>(inode: *mut bindings::inode) -> &'a T {
        // SAFETY: The inode keeps it until it is evicted, and a file keeps its inode.
        unsafe { &*(*inode).i_private.cast::<T>() }
    }

    /// # Safety
    ///
    /// Called by the VFS, and by [`super`] for a file that the VFS did not open, with a file on an
    /// inode that [`Table::adopt`] prepared with this table.
    pub(super) unsafe extern "C" fn open(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
    ) -> c_int {
        // SAFETY: By the safety requirement.
        let keeper = unsafe { Self::keeper(inode) };
        // SAFETY: The file is being opened, and keeps the pipe by its inode.
        let ends = unsafe { Calls::<T::Pipe, M>::attach(inode, file, keeper.pipe()) };

        // A descriptor for ioctl(2) alone, by a link in /proc: a pipe has no use for it.
        if !ends.reads && !ends.writes {
            return EINVAL.to_errno();
        }
        keeper.opened(ends);
        0
    }

    /// # Safety
    ///
    /// Called by the VFS with a file that [`Self::open`] saw, and its inode.
    unsafe extern "C" fn release(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the safety requirement.
        unsafe { Self::keeper(inode).closed(Calls::<T::Pipe, M>::ends(file)) };
        0
    }
}
