// SPDX-License-Identifier: GPL-2.0

//! Character devices whose open files are pipes: a region of numbers, a class, and a device for each
//! number, with files in sysfs.
//!
//! A FIFO is opened by waiting for a partner. The misc core calls a device's open with its one lock
//! held, so a misc device that waits there would stop every open of every misc device on the
//! machine, its partner's too. The character device core holds no lock.
//!
//! C headers: [`include/linux/cdev.h`](srctree/include/linux/cdev.h),
//! [`include/linux/device/class.h`](srctree/include/linux/device/class.h)

use super::{
    file_operations::{Calls, Ends, FileOperations},
    miscdevice::Mode,
    sysfs::{Groups, Home, Owner},
};
use crate::bindings;
use core::{marker::PhantomData, ptr};
use kernel::{
    container_of,
    error::{from_err_ptr, to_result},
    module::this_module,
    prelude::*,
    sync::Arc,
    types::Opaque,
    ModuleMetadata,
};

/// A device whose open files are pipes, all of them the same one.
pub(crate) trait PipeDevice: Owner<Home = PipeHome> + Send + 'static {
    /// The module that an open file pins.
    type Module: ModuleMetadata;
    /// The pipe.
    type Pipe: FileOperations;
    /// The device's files in sysfs.
    const GROUPS: Groups<Self>;

    /// Finds the pipe.
    fn pipe(&self) -> &Self::Pipe;

    /// Opens a file with these ends; may sleep, for a partner too.
    fn open(&self, ends: Ends, nonblocking: bool) -> Result<Opened>;

    /// The last reference to a file with these ends went away.
    fn close(&self, ends: Ends);
}

/// What a device says of a file that it opened.
pub(crate) struct Opened {
    /// What [`PollTable::hangup_mark`](super::wait::PollTable::hangup_mark) shall return for it.
    pub(crate) hangup_mark: u64,
    /// Whether RWF_NOWAIT is honoured.
    pub(crate) nowait: bool,
}

/// The home of pipe devices.
pub(crate) struct PipeHome;

// SAFETY: Groups of a `PipeDevice` are attached to the devices of its `Nodes` alone. The driver data
// is the object's address before files appear. `device_unregister` takes all files away, waiting
// for calls under way, and the object outlives that: see the order of fields in `Region`.
unsafe impl<T: PipeDevice> Home<T> for PipeHome {
    unsafe fn owner<'a>(device: *mut bindings::device) -> &'a T {
        // SAFETY: The device is valid while it has files, and has a `T` as its driver data.
        unsafe { &*bindings::dev_get_drvdata(device).cast::<T>() }
    }
}

/// A range of device numbers that is ours.
///
/// # Invariants
///
/// `count` numbers from `first` on are allocated.
struct Numbers {
    first: bindings::dev_t,
    count: u32,
}

impl Numbers {
    fn allocate(count: u32, name: &'static CStr) -> Result<Self> {
        let mut first = 0;

        // SAFETY: `first` is writable, and the name lives for ever.
        to_result(unsafe {
            bindings::alloc_chrdev_region(&raw mut first, 0, count, name.as_char_ptr())
        })?;
        // INVARIANT: Just allocated.
        Ok(Self { first, count })
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::unregister_chrdev_region(self.first, self.count) };
    }
}

/// A class of devices, which says how their nodes are to be made.
///
/// # Invariants
///
/// `class` is registered, at one address.
#[pin_data(PinnedDrop)]
struct Class {
    #[pin]
    class: Opaque<bindings::class>,
    mode: Mode,
}

// SAFETY: A class may be unregistered by any task.
unsafe impl Send for Class {}
// SAFETY: The driver core serialises what it does with a class.
unsafe impl Sync for Class {}

impl Class {
    fn register(name: &'static CStr, mode: Mode) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // First, because `devnode` reads it.
            mode,
            class <- Opaque::try_ffi_init(move |slot: *mut bindings::class| {
                let class = bindings::class {
                    name: name.as_char_ptr(),
                    devnode: Some(Self::devnode),
                    ..pin_init::zeroed()
                };
                // SAFETY: The slot is ours to write.
                unsafe { slot.write(class) };
                // SAFETY: The class is filled in, pinned, and unregistered before it goes away.
                // INVARIANT: On success it is registered.
                to_result(unsafe { bindings::class_register(slot) })
            }),
        })
    }

    /// # Safety
    ///
    /// Called by the driver core with a device of this class, and with a place for the mode or
    /// null.
    unsafe extern "C" fn devnode(
        device: *const bindings::device,
        mode: *mut bindings::umode_t,
    ) -> *mut c_char {
        // SAFETY: A device of this class names it, which lies in a `Class`.
        let class = unsafe {
            let class = Opaque::cast_from((*device).class);
            &*container_of!(class, Self, class)
        };

        if !mode.is_null() {
            // SAFETY: By the safety requirement.
            unsafe { *mode = class.mode.bits() };
        }
        // The node bears the device's own name.
        ptr::null_mut()
    }
}

#[pinned_drop]
impl PinnedDrop for Class {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant.
        unsafe { bindings::class_unregister(self.class.get()) };
    }
}

/// What open(2) on a device number of ours leads to.
///
/// # Invariants
///
/// `cdev` is live, at one address, for as many numbers from `first` on as there are `devices`, with
/// the operations of `T`.
#[pin_data(PinnedDrop)]
struct Openable<T: PipeDevice> {
    #[pin]
    cdev: Opaque<bindings::cdev>,
    first: bindings::dev_t,
    devices: KVec<Arc<T>>,
}

// SAFETY: A cdev may be deleted by any task, and so may the `Arc`s be dropped.
unsafe impl<T: PipeDevice> Send for Openable<T> {}
// SAFETY: The character device core serialises what it does with a cdev; the rest is constant.
unsafe impl<T: PipeDevice> Sync for Openable<T> {}

impl<T: PipeDevice> Openable<T> {
    const OPERATIONS: &'static bindings::file_operations = &bindings::file_operations {
        open: Some(Self::open),
        release: Some(Self::release),
        ..Calls::<T::Pipe, T::Module>::OPERATIONS
    };

    fn new(numbers: &Numbers, devices: KVec<Arc<T>>) -> impl PinInit<Self, Error> + use<'_, T> {
        let Numbers {
            first: begin,
            count,
        } = *numbers;

        try_pin_init!(Self {
            // First, because an open may come before `cdev_add` returns.
            first: begin,
            devices,
            cdev <- Opaque::try_ffi_init(move |slot: *mut bindings::cdev| {
                // SAFETY: The slot is ours to write, and the table lives as long as the module.
                unsafe {
                    bindings::cdev_init(slot, Self::OPERATIONS);
                    (*slot).owner = this_module::<T::Module>().as_ptr();
                }
                // SAFETY: The cdev is filled in, pinned, and deleted before it goes away.
                // INVARIANT: On success it is live.
                to_result(unsafe { bindings::cdev_add(slot, begin, count) })
            }),
        })
    }

    /// Finds the device that a node leads to.
    ///
    /// # Safety
    ///
    /// `inode` must be a node of ours with a file that is open or being opened, and stay so as long
    /// as `'a`.
    unsafe fn device<'a>(inode: *mut bindings::inode) -> Option<&'a T> {
        // SAFETY: The core left our cdev in the inode, and an open file, or an open in progress,
        // holds a reference to the module: so the cdev is not deleted.
        let (this, number) = unsafe {
            let cdev = Opaque::cast_from((*inode).__bindgen_anon_5.i_cdev).cast_mut();
            (&*container_of!(cdev, Self, cdev), (*inode).i_rdev)
        };

        let index = number.wrapping_sub(this.first) as usize;
        this.devices.get(index).map(|device| &**device)
    }

    /// # Safety
    ///
    /// Called by the character device core with a new file on a node of ours.
    unsafe extern "C" fn open(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the safety requirement.
        let Some(device) = (unsafe { Self::device(inode) }) else {
            return ENXIO.to_errno();
        };
        // SAFETY: The file is being opened. It pins the module, and with it the device and its
        // pipe.
        let ends = unsafe { Calls::<T::Pipe, T::Module>::attach(inode, file, device.pipe()) };
        // SAFETY: As above.
        let flags = unsafe { (*file).f_flags };

        match device.open(ends, flags & bindings::O_NONBLOCK != 0) {
            Ok(opened) => {
                // SAFETY: Nobody else has the file yet.
                unsafe {
                    (*file).__bindgen_anon_2.f_pipe = opened.hangup_mark;
                    if opened.nowait {
                        (*file).f_mode |= bindings::FMODE_NOWAIT;
                    }
                    if flags & bindings::O_DIRECT == 0 {
                        // Lets fcntl(2) switch to packets, as on a FIFO; open(2) with O_DIRECT
                        // fails on a FIFO, too.
                        (*file).f_mode |= bindings::FMODE_CAN_ODIRECT;
                    }
                }
                0
            }
            Err(error) => error.to_errno(),
        }
    }

    /// # Safety
    ///
    /// Called by the VFS with a file that [`Self::open`] saw, and its inode.
    unsafe extern "C" fn release(inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
        // SAFETY: By the safety requirement.
        let (device, ends) =
            unsafe { (Self::device(inode), Calls::<T::Pipe, T::Module>::ends(file)) };

        if let Some(device) = device {
            device.close(ends);
        }
        0
    }
}

#[pinned_drop]
impl<T: PipeDevice> PinnedDrop for Openable<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant.
        unsafe { bindings::cdev_del(self.cdev.get()) };
    }
}

/// The devices in sysfs, and by devtmpfs the nodes in `/dev`.
///
/// # Invariants
///
/// `class` is registered, and has `count` devices with the numbers from `first` on.
struct Nodes<T> {
    class: *const bindings::class,
    first: bindings::dev_t,
    count: u32,
    _devices: PhantomData<fn(T)>,
}

// SAFETY: Devices may be unregistered by any task.
unsafe impl<T> Send for Nodes<T> {}
// SAFETY: There are no methods that take `&self`.
unsafe impl<T> Sync for Nodes<T> {}

impl<T: PipeDevice> Nodes<T> {
    /// Makes the devices `name`0 and following.
    ///
    /// # Safety
    ///
    /// `class` and the devices must outlive the result.
    unsafe fn new(
        class: &Class,
        numbers: &Numbers,
        name: &'static CStr,
        devices: &[Arc<T>],
    ) -> Result<Self> {
        // INVARIANT: There is none yet.
        let mut nodes = Self {
            class: class.class.get(),
            first: numbers.first,
            count: 0,
            _devices: PhantomData,
        };

        for device in devices {
            // SAFETY: The class is registered, and the number allocated. The object and the groups
            // outlive the device. The format fits the arguments, and copies the name.
            from_err_ptr(unsafe {
                bindings::device_create_with_groups(
                    nodes.class,
                    ptr::null_mut(),
                    nodes.first.wrapping_add(nodes.count),
                    ptr::from_ref::<T>(device).cast_mut().cast(),
                    T::GROUPS.as_ptr(),
                    c"%s%u".as_char_ptr(),
                    name.as_char_ptr(),
                    nodes.count,
                )
            })?;
            // INVARIANT: Just made.
            nodes.count = nodes.count.wrapping_add(1);
        }
        Ok(nodes)
    }
}

impl<T> Drop for Nodes<T> {
    fn drop(&mut self) {
        for index in 0..self.count {
            // SAFETY: By the type invariant.
            unsafe { bindings::device_destroy(self.class, self.first.wrapping_add(index)) };
        }
    }
}

/// Registered devices; dropping it takes them away.
///
/// As with a misc device, whatever may fail in a module's initialisation comes before this, and of
/// two registrations the one that opens quickest comes last.
pub(crate) struct Region<T: PipeDevice> {
    // Dropped in this order: what leads to a thing goes before the thing.
    _nodes: Nodes<T>,
    _openable: Pin<KBox<Openable<T>>>,
    _class: Pin<KBox<Class>>,
    _numbers: Numbers,
}

impl<T: PipeDevice> Region<T> {
    /// Registers `devices` as `name`0 and following, in a class of that name.
    pub(crate) fn new(name: &'static CStr, mode: Mode, devices: KVec<Arc<T>>) -> Result<Self> {
        let count = u32::try_from(devices.len())?;
        let numbers = Numbers::allocate(count, name)?;
        let class = KBox::pin_init(Class::register(name, mode), GFP_KERNEL)?;
        let openable = KBox::pin_init(Openable::new(&numbers, devices), GFP_KERNEL)?;
        // SAFETY: Both are kept in what we return, and dropped after it.
        let nodes = unsafe { Nodes::new(&class, &numbers, name, &openable.devices)? };

        Ok(Self {
            _nodes: nodes,
            _openable: openable,
            _class: class,
            _numbers: numbers,
        })
    }
}
