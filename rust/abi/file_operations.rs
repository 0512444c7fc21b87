// SPDX-License-Identifier: GPL-2.0

//! What the VFS calls for an open pipe, whatever the way on which it was opened.
//!
//! A pipe that an inode keeps and one that a device keeps differ in how they are opened and closed.
//! Both have the rest of their `file_operations` from here, and the very same code where they are of
//! one type.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use super::{
    splice::{self, NativeSink, NativeSource},
    wait::{PollMask, PollTable},
};
use crate::bindings;
use core::marker::PhantomData;
use kernel::{
    iov::{IovIterDest, IovIterSource},
    module::this_module,
    prelude::*,
    seq_file::SeqFile,
    ModuleMetadata,
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
    /// read(2) and its kin; returns the number of bytes delivered.
    fn read(&self, call: &IoCall<'_>, to: &mut IovIterDest<'_>) -> Result<usize>;
    /// write(2) and its kin; returns the number of bytes taken.
    fn write(&self, call: &IoCall<'_>, from: &mut IovIterSource<'_>) -> Result<usize>;
    /// splice(2) to a pipe of the kernel's; returns the number of bytes, at most `len`, moved there.
    fn splice_read(&self, to: &mut NativeSink<'_>, len: usize) -> Result<usize>;
    /// splice(2) from a pipe of the kernel's, and sendfile(2); returns the number of bytes taken.
    fn splice_write(&self, from: &mut NativeSource<'_>) -> Result<usize>;
    /// poll(2), select(2), epoll(7): registers with the table, then says what is ready.
    fn poll(&self, ends: Ends, table: &PollTable<'_>) -> PollMask;
    /// ioctl(2); [`ENOIOCTLCMD`] where the call is unknown.
    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize>;
    /// O_ASYNC was switched on or off; says whether a list changed.
    fn fasync(&self, ends: Ends, call: &FasyncCall) -> Result<bool>;
    /// Writes the lines that `/proc/<pid>/fdinfo` shows for a file.
    fn fdinfo(&self, out: &SeqFile);
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
        // SAFETY: By the type invariant.
        unsafe { flags_of(self.file()) }
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

    /// As [`Self::is_nonblocking`], for a read into `to`.
    ///
    /// From a file with O_DIRECT splice(2) reads into pages of its own, and that with the mutex of
    /// the kernel's pipe held: a sleep here would keep everybody from that pipe.
    #[inline]
    pub(crate) fn may_not_sleep_for(&self, to: &mut IovIterDest<'_>) -> bool {
        self.is_nonblocking() || self.is_packetized() && self.is_splice(to)
    }

    #[cold]
    fn is_splice(&self, to: &mut IovIterDest<'_>) -> bool {
        // SAFETY: Both are valid. io_uring, which reads into pages as well, has a completion.
        unsafe {
            u32::from((*to.as_raw()).iter_type) == bindings::iter_type_ITER_BVEC
                && (*self.iocb).ki_complete.is_none()
        }
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
            splice::send_sigpipe();
        }
        EPIPE
    }
}

/// A file's flags as they are at the moment: fcntl(2) may change them at any time.
///
/// # Safety
///
/// `file` must be a valid file.
#[inline]
unsafe fn flags_of(file: *mut bindings::file) -> u32 {
    // A word is read whole.
    // SAFETY: By the safety requirement.
    unsafe { (&raw const (*file).f_flags).read_volatile() }
}

/// Whether a splice on `file` with `flags` wants EAGAIN where it would have to sleep.
///
/// # Safety
///
/// `file` must be a valid file.
unsafe fn is_nonblocking_splice(file: *mut bindings::file, flags: c_uint) -> bool {
    flags & bindings::SPLICE_F_NONBLOCK != 0
        // SAFETY: By the safety requirement.
        || unsafe { flags_of(file) } & bindings::O_NONBLOCK != 0
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

/// What an open file of a pipe of type `T` answers, in module `M`.
pub(super) struct Calls<T, M>(PhantomData<(T, M)>);

impl<T: FileOperations, M: ModuleMetadata> Calls<T, M> {
    /// The operations that are the same however a pipe is opened.
    ///
    /// Whoever completes the table opens each file by [`Self::attach`].
    pub(super) const OPERATIONS: bindings::file_operations = bindings::file_operations {
        owner: this_module::<M>().as_ptr(),
        read_iter: Some(Self::read_iter),
        write_iter: Some(Self::write_iter),
        splice_read: Some(Self::splice_read),
        splice_write: Some(Self::splice_write),
        poll: Some(Self::poll),
        unlocked_ioctl: Some(Self::ioctl),
        compat_ioctl: bindings::compat_ptr_ioctl,
        fasync: Some(Self::fasync),
        show_fdinfo: Some(Self::show_fdinfo),
        ..pin_init::zeroed()
    };

    /// Makes a new file one of `pipe`, and a stream without a position.
    ///
    /// # Safety
    ///
    /// `file` must be in its open operation, on `inode`, with [`Self::OPERATIONS`]; `pipe` must
    /// live until the file is gone.
    pub(super) unsafe fn attach(
        inode: *mut bindings::inode,
        file: *mut bindings::file,
        pipe: &T,
    ) -> Ends {
        // SAFETY: A file that is being opened is ours alone. `f_pipe` lies in the place of a lock
        // that a file without a position does not use.
        unsafe {
            (*file).private_data = core::ptr::from_ref(pipe).cast_mut().cast();
            // It cannot fail.
            bindings::stream_open(inode, file);
            (*file).__bindgen_anon_2.f_pipe = 0;
            Self::ends(file)
        }
    }

    /// # Safety
    ///
    /// `file` must be one that [`Self::attach`] saw.
    unsafe fn pipe<'a>(file: *mut bindings::file) -> &'a T {
        // SAFETY: `attach` left the pipe here, which lives as long as the file.
        unsafe { &*(*file).private_data.cast::<T>() }
    }

    /// # Safety
    ///
    /// `file` must be a valid file.
    pub(super) unsafe fn ends(file: *mut bindings::file) -> Ends {
        // SAFETY: By the safety requirement; the direction does not change while a file is open.
        let mode = unsafe { (*file).f_mode };

        Ends {
            reads: mode & bindings::FMODE_READ != 0,
            writes: mode & bindings::FMODE_WRITE != 0,
        }
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
    /// Called by the VFS with a file of ours and a valid pipe of its own, whose mutex is held.
    unsafe extern "C" fn splice_read(
        file: *mut bindings::file,
        _position: *mut bindings::loff_t,
        pipe: *mut bindings::pipe_inode_info,
        len: usize,
        flags: c_uint,
    ) -> isize {
        // SAFETY: By the safety requirement, until we return.
        let mut to = unsafe { NativeSink::from_raw(pipe, is_nonblocking_splice(file, flags)) };

        // SAFETY: By the safety requirement.
        outcome(unsafe { Self::pipe(file) }.splice_read(&mut to, len))
    }

    /// # Safety
    ///
    /// Called by the VFS with a file of ours and a valid pipe of its own, whose mutex is not held.
    unsafe extern "C" fn splice_write(
        pipe: *mut bindings::pipe_inode_info,
        file: *mut bindings::file,
        _position: *mut bindings::loff_t,
        len: usize,
        flags: c_uint,
    ) -> isize {
        // SAFETY: By the safety requirement, until we return.
        let mut from =
            unsafe { NativeSource::from_raw(pipe, len, is_nonblocking_splice(file, flags)) };

        // SAFETY: By the safety requirement.
        outcome(unsafe { Self::pipe(file) }.splice_write(&mut from))
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

    /// # Safety
    ///
    /// Called by procfs with a file of ours and a seq_file that nobody else uses.
    unsafe extern "C" fn show_fdinfo(out: *mut bindings::seq_file, file: *mut bindings::file) {
        // SAFETY: By the safety requirement.
        unsafe { Self::pipe(file).fdinfo(SeqFile::from_raw(out)) };
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
