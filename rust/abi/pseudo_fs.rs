// SPDX-License-Identifier: GPL-2.0

//! A pseudo file system whose inodes are pipes.
//!
//! What pins what:
//!
//! ```text
//! open file -> its path -> mount -> superblock -> file system type -> module
//! open file -> its operations ------------------------------------> module
//! ```
//!
//! Nothing else holds the superblock, so a module without open files can be unloaded; a permanent
//! mount by `kern_mount` would pin the module for ever. Whoever makes pipes holds a [`Mount`]
//! meanwhile, so that a busy creator does not build and destroy a superblock for each pipe.
//!
//! C headers: [`include/linux/pseudo_fs.h`](srctree/include/linux/pseudo_fs.h),
//! [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::bindings;
use core::{
    cell::UnsafeCell,
    fmt::Write,
    marker::PhantomData,
    ptr::{self, NonNull},
};
use kernel::{
    error::{from_err_ptr, to_result},
    fs::File,
    module::this_module,
    prelude::*,
    str::Formatter,
    sync::{aref::ARef, Arc},
    types::Opaque,
    ModuleMetadata,
};

mod table;

pub(crate) use table::InodePipe;
use table::{Table, TableOf};

/// What tells one pseudo file system from another.
pub(crate) trait PseudoFs: Send + Sync + 'static {
    /// The module that the file system pins.
    type Module: ModuleMetadata;
    /// Name in `/proc/filesystems`.
    const NAME: &'static CStr;
    /// `f_type` of statfs(2).
    const MAGIC: c_ulong;
    /// What readlink(2) on `/proc/self/fd/N` shows before `:[inode]`.
    const LABEL: &'static str;
}

/// A registered file system type, with the mount that [`Mount`]s share.
///
/// # Invariants
///
/// `kind` is registered. `mount` and `pins` are touched by `simple_pin_fs` and `simple_release_fs`
/// alone, under their lock; `mount` is valid while `pins` is not zero.
#[pin_data(PinnedDrop)]
pub(crate) struct FileSystem<F> {
    #[pin]
    kind: Opaque<bindings::file_system_type>,
    mount: UnsafeCell<*mut bindings::vfsmount>,
    pins: UnsafeCell<c_int>,
    _fs: PhantomData<F>,
}

// SAFETY: The VFS serialises access to `kind`, and by the type invariant the rest is under a lock.
unsafe impl<F> Send for FileSystem<F> {}
// SAFETY: As above.
unsafe impl<F> Sync for FileSystem<F> {}

impl<F: PseudoFs> FileSystem<F> {
    /// Registers the file system.
    pub(crate) fn register() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            kind <- Opaque::try_ffi_init(|slot: *mut bindings::file_system_type| {
                let kind = bindings::file_system_type {
                    name: F::NAME.as_char_ptr(),
                    owner: this_module::<F::Module>().as_ptr(),
                    init_fs_context: Some(Self::init_fs_context),
                    kill_sb: Some(bindings::kill_anon_super),
                    ..pin_init::zeroed()
                };

                // SAFETY: The initialiser may write to the slot, which is pinned.
                unsafe { slot.write(kind) };
                // SAFETY: Just written, and zeros are keys that are not registered.
                unsafe { Self::register_keys(slot) };
                // SAFETY: The type stays where it is until `drop` takes it out of the list.
                to_result(unsafe { bindings::register_filesystem(slot) }).inspect_err(|_| {
                    // SAFETY: Registered above, and no lock came to use them.
                    unsafe { Self::unregister_keys(slot) };
                })
            }),
            mount: UnsafeCell::new(ptr::null_mut()),
            pins: UnsafeCell::new(0),
            _fs: PhantomData,
        })
    }

    const SUPER: bindings::super_operations = bindings::super_operations {
        statfs: Some(bindings::simple_statfs),
        evict_inode: Some(Self::evict_inode),
        ..pin_init::zeroed()
    };

    const DENTRY: bindings::dentry_operations = bindings::dentry_operations {
        d_dname: Some(Self::d_dname),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Called by the VFS with a context of this file system.
    unsafe extern "C" fn init_fs_context(context: *mut bindings::fs_context) -> c_int {
        // SAFETY: By the safety requirement.
        let pseudo = unsafe { bindings::init_pseudo(context, F::MAGIC) };

        if pseudo.is_null() {
            return ENOMEM.to_errno();
        }
        // SAFETY: Not null, so it is ours to fill; both tables live as long as the module, which
        // the superblock pins.
        unsafe {
            (*pseudo).ops = const { &Self::SUPER };
            (*pseudo).dops = const { &Self::DENTRY };
        }
        0
    }

    /// # Safety
    ///
    /// Called by the VFS with an inode of this file system that nobody else uses any more.
    unsafe extern "C" fn evict_inode(inode: *mut bindings::inode) {
        // SAFETY: By the safety requirement.
        unsafe {
            bindings::clear_inode(inode);
            Table::release(inode);
        }
    }

    /// # Safety
    ///
    /// Called by the VFS with a dentry of this file system and a buffer of `len` bytes.
    unsafe extern "C" fn d_dname(
        dentry: *mut bindings::dentry,
        buffer: *mut c_char,
        len: c_int,
    ) -> *mut c_char {
        // SAFETY: By the safety requirement; a dentry of ours always has an inode.
        let ino = unsafe { (*(*dentry).d_inode).i_ino };
        let room = usize::try_from(len).unwrap_or(0);

        // Room for the label, the punctuation and the longest number.
        let mut text = [0u8; 40];
        let mut out = Formatter::new(&mut text);
        if write!(out, "{}:[{}]\0", F::LABEL, ino).is_err() {
            return ENAMETOOLONG.to_ptr();
        }
        let used = out.bytes_written();
        if used > room {
            return ENAMETOOLONG.to_ptr();
        }
        // The caller goes on to the left of what we return, so the name stands at the end.
        // SAFETY: `used` bytes fit before the end of the buffer, and `text` has as many.
        unsafe {
            let name = buffer.add(room - used);

            ptr::copy_nonoverlapping(text.as_ptr(), name.cast(), used);
            name
        }
    }
}

impl<F> FileSystem<F> {
    /// Tells lockdep of the classes of the locks in superblocks and inodes.
    ///
    /// A file system type is static in C, and lockdep takes no key elsewhere on trust: it would
    /// report the first superblock's, and then watch no lock of the whole kernel any more.
    ///
    /// # Safety
    ///
    /// `kind` must be pinned, with keys that are zero, and be there until
    /// [`Self::unregister_keys`].
    unsafe fn register_keys(kind: *mut bindings::file_system_type) {
        // SAFETY: By the safety requirement.
        unsafe { Self::keys(kind, |key| bindings::lockdep_register_key(key)) };
    }

    /// Takes the keys back; may sleep.
    ///
    /// # Safety
    ///
    /// The keys must be registered, and no lock of their classes be taken any more.
    unsafe fn unregister_keys(kind: *mut bindings::file_system_type) {
        // SAFETY: By the safety requirement.
        unsafe { Self::keys(kind, |key| bindings::lockdep_unregister_key(key)) };
    }

    /// # Safety
    ///
    /// `kind` must be valid, and nobody else use its keys meanwhile.
    unsafe fn keys(
        kind: *mut bindings::file_system_type,
        each: impl Fn(*mut bindings::lock_class_key),
    ) {
        // SAFETY: By the safety requirement.
        unsafe {
            each(&raw mut (*kind).s_lock_key);
            each(&raw mut (*kind).s_umount_key);
            each(&raw mut (*kind).s_vfs_rename_key);
            for key in &mut (*kind).s_writers_key {
                each(key);
            }
            each(&raw mut (*kind).i_lock_key);
            each(&raw mut (*kind).i_mutex_key);
            each(&raw mut (*kind).invalidate_lock_key);
            each(&raw mut (*kind).i_mutex_dir_key);
        }
    }
}

#[pinned_drop]
impl<F> PinnedDrop for FileSystem<F> {
    fn drop(self: Pin<&mut Self>) {
        // Fails only for what is not registered.
        // SAFETY: By the type invariant; no superblock is left, for each would pin the module.
        let _ = unsafe { bindings::unregister_filesystem(self.kind.get()) };
        // SAFETY: Registered with the type. Its superblocks and their inodes are gone.
        unsafe { Self::unregister_keys(self.kind.get()) };
    }
}

/// The file system mounted, for as long as this value lives.
///
/// # Invariants
///
/// `mount` is valid: one pin of `fs` is ours.
pub(crate) struct Mount<F> {
    fs: Arc<FileSystem<F>>,
    mount: NonNull<bindings::vfsmount>,
}

// SAFETY: Pins are counted under a lock and belong to no task.
unsafe impl<F> Send for Mount<F> {}
// SAFETY: A mount may be used by many tasks at once.
unsafe impl<F> Sync for Mount<F> {}

impl<F: PseudoFs> Mount<F> {
    /// Mounts the file system, unless it is.
    pub(crate) fn new(fs: Arc<FileSystem<F>>) -> Result<Self> {
        // SAFETY: The type is registered and the two cells are this file system's own.
        to_result(unsafe {
            bindings::simple_pin_fs(fs.kind.get(), fs.mount.get(), fs.pins.get())
        })?;
        // SAFETY: Pinned, so the mount stays as it is.
        let mount = NonNull::new(unsafe { *fs.mount.get() }).ok_or(ENODEV)?;

        // INVARIANT: Just pinned.
        Ok(Self { fs, mount })
    }

    /// Makes the inode of `pipe` and opens both its ends: read, write.
    ///
    /// `flags` are O_NONBLOCK and O_DIRECT as for pipe2(2); `block_size` is a power of two and
    /// becomes `st_blksize`; `nowait` says whether RWF_NOWAIT is honoured.
    pub(crate) fn open_ends<T: InodePipe>(
        &self,
        pipe: Arc<T>,
        block_size: u32,
        nowait: bool,
        flags: u32,
    ) -> Result<(ARef<File>, ARef<File>)> {
        let table = TableOf::<T, F::Module>::TABLE;

        // SAFETY: By the type invariant.
        let inode = unsafe { bindings::new_inode((*self.mount.as_ptr()).mnt_sb) };
        if inode.is_null() {
            T::evicted(pipe);
            return Err(ENFILE);
        }
        // SAFETY: The inode is new, and nobody else sees it yet.
        unsafe {
            (*inode).i_ino = bindings::get_next_ino().into();
            bindings::inode_init_owner(
                &raw mut bindings::nop_mnt_idmap,
                inode,
                ptr::null(),
                (bindings::S_IFIFO | bindings::S_IRUSR | bindings::S_IWUSR) as bindings::umode_t,
            );
            (*inode).i_blkbits = block_size.trailing_zeros() as u8;
            bindings::simple_inode_init_ts(inode);
            bindings::altpipe_inode_assume_dirty(inode);
            table.adopt(inode, pipe);
        }

        // The file drops a reference to the module when it goes, and takes none.
        // SAFETY: Our caller runs in the module, so it is live.
        unsafe { bindings::__module_get(this_module::<F::Module>().as_ptr()) };
        // SAFETY: The inode, the mount and the table are valid; the name is ours to be empty.
        let writer = from_err_ptr(unsafe {
            bindings::alloc_file_pseudo(
                inode,
                self.mount.as_ptr(),
                c"".as_char_ptr(),
                (bindings::O_WRONLY | flags) as c_int,
                table.fops(),
            )
        })
        .inspect_err(|_| {
            // SAFETY: On failure inode and module reference are still ours to give back.
            unsafe {
                bindings::iput(inode);
                bindings::module_put(this_module::<F::Module>().as_ptr());
            }
        })?;
        // SAFETY: A new file on an inode that `adopt` prepared. The VFS did not call `open`.
        unsafe { TableOf::<T, F::Module>::open(inode, writer) };
        // SAFETY: The file is open and its only reference is ours.
        let writer = unsafe { Self::finish(writer, nowait) };

        // SAFETY: The path and the credentials are those of a file that we hold open.
        let reader = from_err_ptr(unsafe {
            let file = writer.as_ptr();

            bindings::dentry_open(
                &raw const (*file).__bindgen_anon_1.f_path,
                (flags & bindings::O_NONBLOCK) as c_int,
                (*file).f_cred,
            )
        })?;
        // SAFETY: As for the writer; here the VFS did call `open`.
        Ok((unsafe { Self::finish(reader, nowait) }, writer))
    }

    /// Gives a new file what the kernel gives an end of a pipe.
    ///
    /// # Safety
    ///
    /// The file must be open, new, and the caller's.
    unsafe fn finish(file: *mut bindings::file, nowait: bool) -> ARef<File> {
        // SAFETY: By the safety requirement nobody else changes the mode.
        unsafe {
            let mut mode = (*file).f_mode & !bindings::FMODE_FSNOTIFY_MASK;

            if nowait {
                mode |= bindings::FMODE_NOWAIT;
            }
            // Permission events make no sense on what has no name; inotify through /proc/self/fd
            // does work on pipes, and stays.
            (*file).f_mode = mode | bindings::FMODE_NONOTIFY_PERM;
        }
        // SAFETY: A file is never null, `File` has its layout, and the caller's reference goes
        // into the result. No task can be in fdget_pos: the file has no descriptor yet.
        unsafe { ARef::from_raw(NonNull::new_unchecked(file.cast())) }
    }
}

impl<F> Drop for Mount<F> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant one pin is ours.
        unsafe { bindings::simple_release_fs(self.fs.mount.get(), self.fs.pins.get()) };
    }
}
