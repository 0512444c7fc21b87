// SPDX-License-Identifier: GPL-2.0

//! A `file_operations` table for each kind of pipe.
//!
//! The table's address is what tells the kinds apart, so there is one static table per
//! implementation of [`FileOperations`], and an inode of ours says by its `i_fop` how its private
//! data is to be read.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use super::wait::{PollMask, PollTable};
use crate::bindings;
use core::marker::PhantomData;
use kernel::{
    iov::{IovIterDest, IovIterSource},
    prelude::*,
    sync::Arc,
};

/// Which ends of a pipe an open file holds.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// It may read.
    pub(crate) reads: bool,
    /// It may write.
    pub(crate) writes: bool,
}

/// What a pipe does for its open files.
///
/// All calls may come from many tasks at once.
pub(crate) trait FileOperations: Send + Sync + 'static {
    /// A file with these ends was opened.
    fn opened(&self, ends: Ends);
    /// The last reference to a file with these ends went away.
    fn closed(&self, ends: Ends);
    /// read(2) and its kin; returns the number of bytes delivered.
    fn read(&self, call: &IoCall<'_>, to: &mut IovIterDest<'_>) -> Result<usize>;
    /// write(2) and its kin; returns the number of bytes taken.
    fn write(&self, call: &IoCall<'_>, from: &mut IovIterSource<'_>) -> Result<usize>;
    /// poll(2), select(2), epoll(7): registers with the table, then says what is ready.
    fn poll(&self, ends: Ends, table: &PollTable<'_>) -> PollMask;
    /// ioctl(2); [`ENOIOCTLCMD`] where the call is unknown.
    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize>;
    /// O_ASYNC was switched on or off; says whether a list changed.
    fn fasync(&self, ends: Ends, call: &FasyncCall) -> Result<bool>;
    /// The inode is gone, and with it the last way to reach the pipe.
    fn evicted(this: Arc<Self>);
}

/// A read or a write in progress.
///
/// # Invariants
///
/// `iocb` is valid, and its file open, for as long as `'a`.
pub(crate) struct IoCall<'a> {
    iocb: *mut bindings::kiocb,
    _lifetime: PhantomData<&'a ()>,
}

impl IoCall<'_> {
    /// The file read from or written to.
    #[inline]
    pub(super) fn file(&self) -> *mut bindings::file {
        // SAFETY: By the type invariant.
        unsafe { (*self.iocb).ki_filp }
    }

    #[inline]
    fn file_flags(&self) -> u32 {
        // fcntl(2) may change the flags at any time; a word is read whole.
        // SAFETY: By the type invariant.
        unsafe { (&raw const (*self.file()).f_flags).read_volatile() }
    }

    #[inline]
    fn flags(&self) -> c_int {
        // SAFETY: By the type invariant.
        unsafe { (*self.iocb).ki_flags }
    }

    /// Whether the caller wants EAGAIN where he would have to sleep.
    #[inline]
    pub(crate) fn is_nonblocking(&self) -> bool {
        self.file_flags() & bindings::O_NONBLOCK != 0 || self.flags() & bindings::IOCB_NOWAIT != 0
    }

    /// Whether each write is a packet of its own.
    #[inline]
    pub(crate) fn is_packetized(&self) -> bool {
        self.file_flags() & bindings::O_DIRECT != 0
    }

    /// What a write without readers gets: the signal, unless the call declined it, and the error.
    #[cold]
    pub(crate) fn broken_pipe(&self) -> Error {
        if self.flags() & bindings::IOCB_NOSIGNAL == 0 {
            // SAFETY: The current task is valid and signals itself.
            unsafe {
                bindings::send_sig(bindings::SIGPIPE as c_int, bindings::get_current(), 0);
            }
        }
        EPIPE
    }
}

/// A change of a file's O_ASYNC in progress.
///
/// # Invariants
///
/// `file` is valid as long as this value lives.
pub(crate) struct FasyncCall {
    pub(super) fd: c_int,
    pub(super) on: c_int,
    file: *mut bindings::file,
}

impl FasyncCall {
    pub(super) fn file(&self) -> *mut bindings::file {
        self.file
    }
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
    pub(super) unsafe fn adopt<T: FileOperations>(
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

impl<T: FileOperations, M: kernel::ModuleMetadata> TableOf<T, M> {
    /// The table.
    pub(super) const TABLE: &'static Table = &Table {
        fops: bindings::file_operations {
            owner: kernel::module::this_module::<M>().as_ptr(),
            open: Some(Self::open),
            release: Some(Self::release),
            read_iter: Some(Self::read_iter),
            write_iter: Some(Self::write_iter),
            poll: Some(Self::poll),
            unlocked_ioctl: Some(Self::ioctl),
            compat_ioctl: bindings::compat_ptr_ioctl,
            fasync: Some(Self::fasync),
            ..pin_init::zeroed()
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
    /// `file` must be open with this table as its operations.
    unsafe fn pipe<'a>(file: *mut bindings::file) -> &'a T {
        // SAFETY: `open` stored the inode's reference, and a file keeps its inode.
        unsafe { &*(*file).private_data.cast::<T>() }
    }

    /// # Safety
    ///
    /// `file` must be a valid file.
    unsafe fn ends(file: *mut bindings::file) -> Ends {
        // SAFETY: By the safety requirement; the direction does not change while a file is open.
        let mode = unsafe { (*file).f_mode };

        Ends {
            reads: mode & bindings::FMODE_READ != 0,
            writes: mode & bindings::FMODE_WRITE != 0,
        }
    }

    /// # Safety
    ///
    /// Called by the VFS, and by [`super::pseudo_fs`] for a file that the VFS did not open, with a
    /// file on an inode that [`Table::adopt`] prepared with this table.
    pub(super) unsafe extern "C" fn open(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
    ) -> c_int {
        // SAFETY: The inode keeps its pipe until it is evicted, and the file keeps the inode.
        unsafe { (*file).private_data = (*inode).i_private };
        // SAFETY: Both are valid. It makes the file a stream without a position and cannot fail.
        unsafe { bindings::stream_open(inode, file) };
        // SAFETY: `private_data` has just been set.
        unsafe { Self::pipe(file).opened(Self::ends(file)) };
        0
    }

    /// # Safety
    ///
    /// Called by the VFS with a file that [`Self::open`] saw.
    unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the safety requirement.
        unsafe { Self::pipe(file).closed(Self::ends(file)) };
        0
    }

    /// # Safety
    ///
    /// Called by the VFS with a valid kiocb for a file of ours and a valid iterator to fill.
    unsafe extern "C" fn read_iter(
        iocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // INVARIANT: The VFS keeps both until we return.
        let call = IoCall {
            iocb,
            _lifetime: PhantomData,
        };
        // SAFETY: By the safety requirement.
        let to = unsafe { IovIterDest::from_raw(iter) };
        // SAFETY: By the safety requirement.
        let pipe = unsafe { Self::pipe(call.file()) };

        outcome(pipe.read(&call, to))
    }

    /// # Safety
    ///
    /// Called by the VFS with a valid kiocb for a file of ours and a valid iterator to drain.
    unsafe extern "C" fn write_iter(
        iocb: *mut bindings::kiocb,
        iter: *mut bindings::iov_iter,
    ) -> isize {
        // INVARIANT: The VFS keeps both until we return.
        let call = IoCall {
            iocb,
            _lifetime: PhantomData,
        };
        // SAFETY: By the safety requirement.
        let from = unsafe { IovIterSource::from_raw(iter) };
        // SAFETY: By the safety requirement.
        let pipe = unsafe { Self::pipe(call.file()) };

        outcome(pipe.write(&call, from))
    }

    /// # Safety
    ///
    /// Called by the VFS with a file of ours and a poll table or null.
    unsafe extern "C" fn poll(
        file: *mut bindings::file,
        table: *mut bindings::poll_table_struct,
    ) -> bindings::__poll_t {
        // SAFETY: By the safety requirement both hold while we run.
        let table = unsafe { PollTable::from_raw(file, table) };

        // SAFETY: By the safety requirement.
        unsafe { Self::pipe(file).poll(Self::ends(file), &table) }.bits()
    }

    /// # Safety
    ///
    /// Called by the VFS with a file of ours.
    unsafe extern "C" fn ioctl(file: *mut bindings::file, cmd: c_uint, arg: c_ulong) -> c_long {
        // SAFETY: By the safety requirement.
        outcome(unsafe { Self::pipe(file) }.ioctl(cmd, arg)) as c_long
    }

    /// # Safety
    ///
    /// Called by the VFS with a file of ours.
    unsafe extern "C" fn fasync(fd: c_int, file: *mut bindings::file, on: c_int) -> c_int {
        // INVARIANT: The VFS keeps the file until we return.
        let call = FasyncCall { fd, on, file };

        // SAFETY: By the safety requirement.
        match unsafe { Self::pipe(file).fasync(Self::ends(file), &call) } {
            Ok(changed) => c_int::from(changed),
            Err(error) => error.to_errno(),
        }
    }
}

/// A result as the VFS wants it: a count, or a negative errno.
trait Outcome {
    fn count(self) -> isize;
}

impl Outcome for usize {
    fn count(self) -> isize {
        // A call moves at most MAX_RW_COUNT bytes, which fits.
        self as isize
    }
}

impl Outcome for isize {
    fn count(self) -> isize {
        self
    }
}

#[inline]
fn outcome(result: Result<impl Outcome>) -> isize {
    match result {
        Ok(value) => value.count(),
        Err(error) => error.to_errno() as isize,
    }
}
