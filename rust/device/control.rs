// SPDX-License-Identifier: GPL-2.0

//! `/dev/altpipe`: makes pipes as pipe2(2) does, each with a config of its own.

use crate::{
    abi::{
        miscdevice::{IoctlDevice, MiscDevice, MiscHome, Operations},
        sysfs::{Groups, List, Owner},
        user,
    },
    config::Config,
    engine::Pipes,
    fs::{self, FileSystem, Mount},
    knobs::{self, Configured, Defaults},
    limits::{self, Limited, Limits},
    pipe::Classic,
    stats::{self, Baseline, Counted, Counters},
};
use kernel::{
    fs::file::{self, FileDescriptorReservation},
    prelude::*,
    sync::Arc,
};

/// The longest config text that a call may bring. All knobs at once stay far below.
const LONGEST_CONFIG: usize = 4096;

/// The flags of pipe2(2) that hold for the descriptors, and those for the files.
const DESCRIPTOR_FLAGS: u32 = file::flags::O_CLOEXEC;
const FILE_FLAGS: u32 = file::flags::O_NONBLOCK | file::flags::O_DIRECT;

/// The control device.
#[pin_data]
pub(crate) struct Control {
    fs: Arc<FileSystem>,
    pipes: Arc<Pipes<Classic>>,
    limits: Arc<Limits>,
    #[pin]
    defaults: Defaults,
    #[pin]
    baseline: Baseline,
}

impl Control {
    /// Makes the device, which is yet to be registered.
    pub(crate) fn new(fs: Arc<FileSystem>, limits: Arc<Limits>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            fs,
            pipes: Arc::pin_init(Pipes::new(Counters::default()), GFP_KERNEL)?,
            limits,
            defaults <- Defaults::new(),
            baseline <- Baseline::new(),
        })
    }

    /// The config that a call brings, over the defaults as they stand.
    fn config(&self, call: &user::Create) -> Result<Config> {
        let defaults = self.defaults.config();
        let len = call.config_len as usize;

        if len == 0 {
            return Ok(defaults);
        }
        if len > LONGEST_CONFIG {
            return Err(EINVAL);
        }
        let mut text = KVec::<u8>::from_elem(0, len, GFP_KERNEL)?;
        user::read_bytes(call.config, &mut text)?;
        let text = core::str::from_utf8(&text).map_err(|_| EINVAL)?;
        let config = Config::parse(text, &defaults).map_err(|_| EINVAL)?;

        // A default that is too large is cut down, as the kernel does; an explicit wish is not
        // quietly changed.
        if config.capacity != defaults.capacity && !self.limits.allows_size(config.capacity.into())
        {
            return Err(EPERM);
        }
        Ok(config)
    }
}

/// An open file of the control device.
///
/// It keeps the file system mounted, so that a busy shell does not build and destroy a superblock
/// for each pipe.
pub(crate) struct Session {
    control: Arc<Control>,
    mount: Mount,
}

impl Session {
    fn create(&self, argument: usize) -> Result<isize> {
        let mut call: user::Create = user::read_sized(argument)?;

        if call.flags & !(DESCRIPTOR_FLAGS | FILE_FLAGS) != 0 || call.pad != 0 {
            return Err(EINVAL);
        }
        let config = self.control.config(&call)?;
        let read = FileDescriptorReservation::get_unused_fd_flags(call.flags & DESCRIPTOR_FLAGS)?;
        let write = FileDescriptorReservation::get_unused_fd_flags(call.flags & DESCRIPTOR_FLAGS)?;
        let pipe = fs::create(
            &self.mount,
            &self.control.pipes,
            &self.control.limits,
            config,
            call.flags & FILE_FLAGS,
        )?;

        // The caller must know the numbers before they mean anything: nothing can fail after
        // this, and nothing is left open before.
        call.fd = [read.reserved_fd() as c_int, write.reserved_fd() as c_int];
        user::write(argument, &call)?;
        read.fd_install(pipe.read);
        write.fd_install(pipe.write);
        Ok(0)
    }
}

#[vtable]
impl IoctlDevice for Control {
    type Open = KBox<Session>;

    fn open(control: &Arc<Self>) -> Result<Self::Open> {
        let mount = Mount::new(control.fs.clone())?;

        Ok(KBox::new(
            Session {
                control: control.clone(),
                mount,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    fn ioctl(session: &Session, command: u32, argument: usize) -> Result<isize> {
        match command {
            user::VERSION => Ok(user::ABI_VERSION as isize),
            user::CREATE => session.create(argument),
            _ => Err(ENOTTY),
        }
    }
}

impl MiscDevice for Control {
    const OPERATIONS: &'static Operations<Self> = Operations::<Self>::IOCTL;
    const GROUPS: Groups<Self> = Groups::new(
        const {
            &List::new([
                knobs::Directory::<Self>::PRESETS,
                knobs::Directory::<Self>::GROUP,
                limits::Directory::<Self>::GROUP,
                stats::Directory::<Self>::GROUP,
            ])
        },
    );
}

impl Owner for Control {
    type Home = MiscHome;
}

impl Configured for Control {
    fn config(&self) -> Config {
        self.defaults.config()
    }

    fn configure(&self, change: impl FnOnce(&mut Config) -> Result) -> Result {
        self.defaults.configure(change)
    }
}

impl Limited for Control {
    fn limits(&self) -> &Limits {
        &self.limits
    }
}

impl Counted for Control {
    fn counters(&self) -> Counters {
        self.baseline.since(|| self.pipes.total())
    }

    fn reset(&self) {
        self.baseline.reset(|| self.pipes.total());
    }
}
