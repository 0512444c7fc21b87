// SPDX-License-Identifier: GPL-2.0

//! Misc devices with a file mode and with files in sysfs.
//!
//! The kernel crate's registration has neither. Here the files exist before user space hears of
//! the device, so that a udev rule may act upon them.
//!
//! C header: [`include/linux/miscdevice.h`](srctree/include/linux/miscdevice.h)

use super::sysfs::{Groups, Home, Owner};
use crate::bindings;
use core::marker::PhantomData;
use kernel::{
    container_of,
    error::to_result,
    module::this_module,
    prelude::*,
    sync::Arc,
    types::{ForeignOwnable, Opaque},
};

/// What lies behind a misc device.
pub(crate) trait MiscDevice: Owner<Home = MiscHome> + Send + 'static {
    /// What the device's open files answer.
    const OPERATIONS: &'static Operations<Self>;

    /// The device's files in sysfs.
    const GROUPS: Groups<Self>;
}

/// A misc device whose open files answer to ioctl(2) alone.
#[vtable]
pub(crate) trait IoctlDevice: MiscDevice {
    /// What an open file owns. It is dropped at the file's last close.
    type Open: ForeignOwnable + Send + Sync;

    /// Opens a file. The misc core's one lock is held, so every opener of any misc device waits for
    /// this: it must not wait for another program.
    fn open(device: &Arc<Self>) -> Result<Self::Open>;

    /// Answers a call, a 32-bit program's too: the arguments must be laid out alike for both. An
    /// unknown command is [`ENOTTY`].
    fn ioctl(
        open: <Self::Open as ForeignOwnable>::Borrowed<'_>,
        command: u32,
        argument: usize,
    ) -> Result<isize>;
}

/// A table of file operations for the device of a `T`.
///
/// # Invariants
///
/// The table's owner is the module that registers the device, so an open file keeps the code. Its
/// `open` expects what misc devices give: a file whose private data is the `misc` of a
/// [`Registration`] of `T`.
#[repr(transparent)]
pub(crate) struct Operations<T>(bindings::file_operations, PhantomData<fn(T)>);

impl<T: IoctlDevice> Operations<T> {
    /// The operations of a device that answers to ioctl(2) alone.
    // INVARIANT: `OwnerModule` is the module that implements the trait.
    pub(crate) const IOCTL: &'static Self = &Self(
        bindings::file_operations {
            owner: this_module::<T::OwnerModule>().as_ptr(),
            open: Some(Self::open),
            release: Some(Self::release),
            unlocked_ioctl: Some(Self::ioctl),
            compat_ioctl: bindings::compat_ptr_ioctl,
            ..pin_init::zeroed()
        },
        PhantomData,
    );

    /// # Safety
    ///
    /// `file` is being opened on the device of a [`Registration`] of `T`.
    unsafe extern "C" fn open(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: A file that is being opened is ours alone.
        let misc = unsafe { (*file).private_data }.cast::<bindings::miscdevice>();
        // SAFETY: `misc_open` left the device here, and holds the lock without which it cannot be
        // deregistered before we return.
        let device = unsafe { Registration::<T>::device(misc) };

        match T::open(device) {
            Ok(open) => {
                // SAFETY: As above. From here on the private data is a `T::Open`.
                unsafe { (*file).private_data = open.into_foreign() };
                0
            }
            Err(error) => error.to_errno(),
        }
    }

    /// # Safety
    ///
    /// `file` was opened by [`Self::open`], and this is its last call.
    unsafe extern "C" fn release(_: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: `open` made the private data, and no call that borrows it is under way or can
        // still come.
        drop(unsafe { T::Open::from_foreign((*file).private_data) });
        0
    }

    /// # Safety
    ///
    /// `file` was opened by [`Self::open`] and stays open until the call returns.
    unsafe extern "C" fn ioctl(
        file: *mut bindings::file,
        command: c_uint,
        argument: c_ulong,
    ) -> c_long {
        // SAFETY: `open` made the private data, and `release` comes only after this call.
        let open = unsafe { T::Open::borrow((*file).private_data) };

        match T::ioctl(open, command, argument) {
            Ok(answer) => answer,
            Err(error) => error.to_errno() as c_long,
        }
    }
}

/// A file mode: who may open the device.
#[derive(Clone, Copy)]
pub(crate) struct Mode(bindings::umode_t);

impl Mode {
    /// The permission bits.
    pub(super) fn bits(self) -> bindings::umode_t {
        self.0
    }
}

impl TryFrom<u32> for Mode {
    type Error = Error;

    /// Takes permission bits, of which there must be at least one: to the driver core none means
    /// that it may choose.
    fn try_from(bits: u32) -> Result<Self> {
        match bindings::umode_t::try_from(bits) {
            Ok(bits @ 0o001..=0o777) => Ok(Self(bits)),
            _ => Err(EINVAL),
        }
    }
}

/// A registered misc device; dropping it takes the device away.
///
/// Register devices last of all: user space may open one at once, and a module whose
/// initialisation fails later is freed under such an open file.
///
/// # Invariants
///
/// `misc` is registered from initialisation to drop, with the operations and groups of `T`, at one
/// address. `device` is valid before and after.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<T: MiscDevice> {
    #[pin]
    misc: Opaque<bindings::miscdevice>,
    device: Arc<T>,
}

// SAFETY: A misc device may be deregistered by any task, and the `Arc` of a `MiscDevice`, which is
// `Send` and `Sync`, may be dropped by any.
unsafe impl<T: MiscDevice> Send for Registration<T> {}
// SAFETY: There are no methods that take `&self`.
unsafe impl<T: MiscDevice> Sync for Registration<T> {}

impl<T: MiscDevice> Registration<T> {
    /// Registers a device of this name.
    pub(crate) fn new(
        name: &'static CStr,
        mode: Mode,
        device: Arc<T>,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // First, because files in sysfs may be read before `misc_register` returns.
            device,
            misc <- Opaque::try_ffi_init(move |slot: *mut bindings::miscdevice| {
                let misc = bindings::miscdevice {
                    minor: bindings::MISC_DYNAMIC_MINOR as c_int,
                    name: name.as_char_ptr(),
                    fops: &raw const T::OPERATIONS.0,
                    groups: T::GROUPS.as_ptr(),
                    mode: mode.0,
                    ..pin_init::zeroed()
                };
                // SAFETY: The slot is ours to write.
                unsafe { slot.write(misc) };
                // SAFETY: `slot` is filled in, pinned, and deregistered before it goes away; name,
                // operations and groups outlive it.
                // INVARIANT: On success the device is registered.
                to_result(unsafe { bindings::misc_register(slot) })
            }),
        })
    }

    /// Finds the device behind its `struct miscdevice`.
    ///
    /// # Safety
    ///
    /// `misc` belongs to a registration of `T` that is not dropped, nor given up, for as long as
    /// `'a`.
    unsafe fn device<'a>(misc: *mut bindings::miscdevice) -> &'a Arc<T> {
        // SAFETY: `misc` is the content of a registration's `misc`, by the caller's promise. Only
        // `device` is referred to: it alone is initialised while `misc_register` runs.
        unsafe {
            let misc = Opaque::cast_from(misc).cast_mut();
            &(*container_of!(misc, Self, misc)).device
        }
    }
}

#[pinned_drop]
impl<T: MiscDevice> PinnedDrop for Registration<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the device is registered.
        unsafe { bindings::misc_deregister(self.misc.get()) };
    }
}

/// The home of what lies behind misc devices.
pub(crate) struct MiscHome;

// SAFETY: Groups of a `MiscDevice` are attached to the devices of its `Registration` alone. The
// misc core makes its `struct miscdevice` the device's driver data before files appear, and takes
// all files away, waiting for calls under way, before `misc_deregister` returns.
unsafe impl<T: MiscDevice> Home<T> for MiscHome {
    unsafe fn owner<'a>(device: *mut bindings::device) -> &'a T {
        // SAFETY: The device is valid while it has files.
        let misc = unsafe { bindings::dev_get_drvdata(device) };
        // SAFETY: By the trait's promise this is the device of a registration of `T`, which has its
        // files for as long as `'a`.
        unsafe { Registration::<T>::device(misc.cast()) }
    }
}
