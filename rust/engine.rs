// SPDX-License-Identifier: GPL-2.0

//! What the rest of the module knows of a pipe, whichever engine drives it.
//!
//! An engine is one implementation of a pipe's data path. `fs` and `device` make pipes and open
//! their ends, `knobs` and `stats` look at them, all by [`Engine`] alone; each engine gets its own
//! `file_operations` from the generic code below, so the road of a byte has no indirect call but
//! the VFS's.

use crate::{
    abi::{
        file_operations::{Ends, FasyncCall, FileOperations, IoCall},
        pseudo_fs::InodePipe,
        registry::{Live, Roll},
        splice::{NativeSink, NativeSource},
        task, user,
        wait::{PollMask, PollTable},
    },
    config::Config,
    limits::Limits,
    stats::Counters,
};
use kernel::{
    iov::{IovIterDest, IovIterSource},
    prelude::*,
    seq_file::SeqFile,
    str::CString,
    sync::Arc,
};

/// A pipe's data path.
pub(crate) trait Engine: Sized + Send + Sync + 'static {
    /// Makes a pipe that behaves as `config` says, on the current user's account.
    fn new(config: Config, limits: Arc<Limits>) -> Result<impl PinInit<Self, Error>>;
    /// Takes a pipe that nobody has open into use again: with the size that its config says, on the
    /// current user's account.
    fn take_up(&self) -> Result;
    /// Gives back the room and the account of a pipe that nobody has open, until it is taken up.
    fn lay_down(&self);
    /// A file with these ends was opened.
    fn opened(&self, ends: Ends);
    /// A file with these ends was closed.
    fn closed(&self, ends: Ends);
    /// Delivers bytes to a reader.
    fn read(&self, call: &IoCall<'_>, to: &mut IovIterDest<'_>) -> Result<usize>;
    /// Takes bytes from a writer.
    fn write(&self, call: &IoCall<'_>, from: &mut IovIterSource<'_>) -> Result<usize>;
    /// Moves bytes, at most `len`, to a pipe of the kernel's.
    fn splice_read(&self, to: &mut NativeSink<'_>, len: usize) -> Result<usize>;
    /// Takes bytes from a pipe of the kernel's.
    fn splice_write(&self, from: &mut NativeSource<'_>) -> Result<usize>;
    /// Registers with `table` and says what is ready.
    fn poll(&self, ends: Ends, table: &PollTable<'_>) -> PollMask;
    /// Switches SIGIO for the file of `call` on or off; says whether that changed anything.
    fn fasync(&self, ends: Ends, call: &FasyncCall) -> Result<bool>;
    /// The number of bytes left to read.
    fn unread(&self) -> usize;
    /// The number of bytes that fit if every write fills whole pages.
    fn capacity(&self) -> usize;
    /// Makes room for at least `bytes`; returns the new capacity.
    fn set_capacity(&self, bytes: usize) -> Result<usize>;
    /// How many writers have been seen, and one more: never zero.
    fn writers_seen(&self) -> u64;
    /// How the pipe behaves.
    fn config(&self) -> Config;
    /// Has the live pipe behave by what `change` makes of its config, all who sleep in it too.
    ///
    /// `change` sees no other change between what it reads and what it writes. Where it fails, the
    /// config stays as it was.
    fn reconfigure(&self, change: impl FnOnce(&mut Config) -> Result) -> Result;
    /// What there is to tell about the pipe, all at one time; none while somebody holds it.
    fn try_status(&self) -> Option<Status>;
    /// What the pipe has counted so far.
    fn counters(&self) -> Counters;
    /// The same, or none while somebody holds the pipe.
    fn try_counters(&self) -> Option<Counters>;
}

/// A pipe as fdinfo shows it.
pub(crate) struct Status {
    /// How it behaves.
    pub(crate) config: Config,
    /// The bytes that it holds when full, if each slot is.
    pub(crate) capacity: usize,
    /// The slots in use.
    pub(crate) slots: u32,
    /// The bytes left to read.
    pub(crate) bytes: usize,
    /// The files open for reading.
    pub(crate) readers: u32,
    /// The files open for writing.
    pub(crate) writers: u32,
    /// The tasks that sleep for data or for room.
    pub(crate) sleepers: u32,
}

/// For how many ticks who looks at pipes waits for one that is held.
const PATIENCE: u32 = 10;

/// A pipe on the roll of its engine's pipes.
pub(crate) type LivePipe<E> = Live<E, Counters>;

/// All pipes of an engine, with the counts of those that are gone.
pub(crate) type Pipes<E> = Roll<E, Counters>;

impl<E: Engine> Pipes<E> {
    /// The counts of all pipes that were ever on the roll.
    ///
    /// Somebody may hold a pipe for as long as he likes, in a fault on memory that is slow to come.
    /// So while one is held all are asked again, a few times, and then that one counts as it did
    /// before.
    pub(crate) fn total(&self) -> Counters {
        let mut patience = PATIENCE;

        loop {
            let mut is_held = false;
            let total = self.fold(
                |pipe| {
                    let answer = pipe.try_counters();

                    is_held |= answer.is_none();
                    answer
                },
                |sum, counters| sum.add(counters),
            );

            if !is_held || patience == 0 {
                return total;
            }
            patience = patience.saturating_sub(1);
            task::give_way();
        }
    }
}

impl<E: Engine> FileOperations for E {
    #[inline]
    fn read(&self, call: &IoCall<'_>, to: &mut IovIterDest<'_>) -> Result<usize> {
        Engine::read(self, call, to)
    }

    #[inline]
    fn write(&self, call: &IoCall<'_>, from: &mut IovIterSource<'_>) -> Result<usize> {
        Engine::write(self, call, from)
    }

    fn splice_read(&self, to: &mut NativeSink<'_>, len: usize) -> Result<usize> {
        Engine::splice_read(self, to, len)
    }

    fn splice_write(&self, from: &mut NativeSource<'_>) -> Result<usize> {
        Engine::splice_write(self, from)
    }

    #[inline]
    fn poll(&self, ends: Ends, table: &PollTable<'_>) -> PollMask {
        Engine::poll(self, ends, table)
    }

    fn ioctl(&self, cmd: u32, arg: usize) -> Result<isize> {
        match cmd {
            user::FIONREAD => {
                // The kernel's own pipe counts in an int, too.
                user::write(arg, &(self.unread() as c_int))?;
                Ok(0)
            }
            user::GET_SIZE => Ok(self.capacity() as isize),
            user::SET_SIZE => Ok(self.set_capacity(arg)? as isize),
            user::GET_CONFIG => get_config(self, arg),
            user::GET_STATS => {
                user::write_sized(arg, &self.counters().values())?;
                Ok(0)
            }
            _ => Err(ENOIOCTLCMD),
        }
    }

    fn fasync(&self, ends: Ends, call: &FasyncCall) -> Result<bool> {
        Engine::fasync(self, ends, call)
    }

    fn fdinfo(&self, out: &SeqFile) {
        // Whoever looks at all processes must not be held up by one of them.
        let Some(status) = (0..PATIENCE).find_map(|_| {
            let status = self.try_status();

            if status.is_none() {
                task::give_way();
            }
            status
        }) else {
            out.call_printf(format_args!("altpipe-held:\t1\n"));
            return;
        };

        out.call_printf(format_args!("altpipe-config:\t{}\n", status.config));
        out.call_printf(format_args!("altpipe-capacity:\t{}\n", status.capacity));
        out.call_printf(format_args!("altpipe-slots:\t{}\n", status.slots));
        out.call_printf(format_args!("altpipe-bytes:\t{}\n", status.bytes));
        out.call_printf(format_args!("altpipe-readers:\t{}\n", status.readers));
        out.call_printf(format_args!("altpipe-writers:\t{}\n", status.writers));
        out.call_printf(format_args!("altpipe-sleepers:\t{}\n", status.sleepers));
    }
}

impl<E: Engine> InodePipe for LivePipe<E> {
    type Pipe = E;

    fn pipe(&self) -> &E {
        self
    }

    fn opened(&self, ends: Ends) {
        Engine::opened(&**self, ends);
    }

    fn closed(&self, ends: Ends) {
        Engine::closed(&**self, ends);
    }

    fn evicted(this: Arc<Self>) {
        this.retire(|pipe, dead| dead.add(&pipe.counters()));
    }
}

/// Writes the config's text to the caller's buffer; returns its length.
fn get_config(pipe: &impl Engine, arg: usize) -> Result<isize> {
    let place: user::Text = user::read(arg)?;

    if place.pad != 0 {
        return Err(EINVAL);
    }
    let text = CString::try_from_fmt(format_args!("{}", pipe.config()))?;
    let bytes = text.to_bytes();
    if bytes.len() > place.len as usize {
        return Err(ERANGE);
    }
    user::write_bytes(place.buf, bytes)?;
    Ok(bytes.len() as isize)
}
