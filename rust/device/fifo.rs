// SPDX-License-Identifier: GPL-2.0

//! `/dev/altpipeN`: a pipe that is opened by fifo(7)'s rules, as Linux 7.3 keeps them.
//!
//! ```text
//!   open for          waits for     without it, O_NONBLOCK
//!   reading           a writer      succeeds; no hang-up until a writer came
//!   writing           a reader      ENXIO
//!   both              nobody
//! ```
//!
//! A device has one pipe, which lives as long as the device. The last close empties it, and the next
//! open finds it as new: of the size that its knobs say by then, on the account of who opens it. Its
//! config and its counters go on.
//!
//! # Locks
//!
//! The openers' mutex comes before the pipe's. It makes a look at the partners, the count of oneself
//! and the decision to wait one step, and keeps the pipe's own counts equal to those here.

use crate::{
    abi::{
        chrdev::{Opened, PipeDevice, PipeHome},
        file_operations::Ends,
        sysfs::{Groups, List, Owner},
        wait::{Slept, WaitQueue},
    },
    config::Config,
    engine::Engine,
    knobs::{self, Configured},
    limits::Limits,
    stats::{self, Baseline, Counted, Counters},
    sync::Word,
};
use kernel::{
    new_mutex,
    prelude::*,
    static_lock_class,
    sync::{Arc, Mutex},
};

/// The files that are open, and those that wait to be.
struct Openers {
    readers: u32,
    writers: u32,
}

impl Openers {
    /// Whether nobody has the device open, or waits to.
    fn is_none(&self) -> bool {
        self.readers == 0 && self.writers == 0
    }
}

/// A FIFO device with a pipe of engine `E`.
#[pin_data]
pub(crate) struct Fifo<E> {
    #[pin]
    pipe: E,
    #[pin]
    openers: Mutex<Openers>,
    /// Where an open waits for its partner.
    #[pin]
    partners: WaitQueue,
    /// How many readers and how many writers ever came. Written under the openers' mutex. Who waits
    /// for a partner waits for a change: he must not miss one that came and went.
    readers_seen: Word,
    writers_seen: Word,
    #[pin]
    baseline: Baseline,
}

impl<E: Engine> Fifo<E> {
    /// Makes the device, which is yet to be registered.
    pub(crate) fn new(limits: Arc<Limits>) -> Result<impl PinInit<Self, Error>> {
        let pipe = E::new(Config::DEFAULT, limits)?;

        Ok(try_pin_init!(Self {
            pipe <- pipe.pin_chain(|pipe| {
                // The user who loads the module is not the one who will open the device.
                pipe.lay_down();
                Ok(())
            }),
            openers <- new_mutex!(Openers { readers: 0, writers: 0 }, "altpipe openers"),
            partners <- WaitQueue::new(c"altpipe::partners", static_lock_class!()),
            readers_seen: Word::new(0),
            writers_seen: Word::new(0),
            baseline <- Baseline::new(),
        }))
    }

    /// Counts an opener in, and wakes whom he is the first partner for.
    fn enter(&self, openers: &mut Openers, ends: Ends) -> Result {
        let is_first = ends.reads && openers.readers == 0 || ends.writes && openers.writers == 0;

        if openers.is_none() {
            self.pipe.take_up()?;
        }
        self.pipe.opened(ends);
        // The kernel runs out of files long before these overflow.
        openers.readers = openers.readers.saturating_add(ends.reads.into());
        openers.writers = openers.writers.saturating_add(ends.writes.into());
        if ends.reads {
            self.readers_seen.increment();
        }
        if ends.writes {
            self.writers_seen.increment();
        }
        if is_first {
            self.partners.wake_all();
        }
        Ok(())
    }

    /// Counts out who was counted in.
    fn leave(&self, openers: &mut Openers, ends: Ends) {
        openers.readers = openers.readers.saturating_sub(ends.reads.into());
        openers.writers = openers.writers.saturating_sub(ends.writes.into());
        self.pipe.closed(ends);
        if openers.is_none() {
            self.pipe.lay_down();
        }
    }

    /// Waits until `partners` is not what it was.
    ///
    /// A signal ends the wait and undoes the open, unless a partner came before it was noticed: he
    /// has been told that he has a partner.
    #[inline(never)]
    fn await_partner(&self, ends: Ends, partners: &Word, before: u64) -> Result {
        let sleep = self
            .partners
            .sleep_until(false, || partners.load() != before, || ());

        if let Slept::Interrupted = sleep.outcome {
            let mut openers = self.openers.lock();

            if partners.load() == before {
                self.leave(&mut openers, ends);
                return Err(ERESTARTSYS);
            }
        }
        Ok(())
    }
}

impl<E: Engine> PipeDevice for Fifo<E> {
    type Module = crate::Altpipe;
    type Pipe = E;

    const GROUPS: Groups<Self> = Groups::new(
        const {
            &List::new([
                knobs::Directory::<Self>::PRESETS,
                knobs::Directory::<Self>::GROUP,
                stats::Directory::<Self>::GROUP,
            ])
        },
    );

    fn pipe(&self) -> &E {
        &self.pipe
    }

    fn open(&self, ends: Ends, nonblocking: bool) -> Result<Opened> {
        let mut opened = Opened {
            hangup_mark: 0,
            nowait: self.pipe.config().nowait,
        };
        let mut openers = self.openers.lock();
        let has_readers = openers.readers != 0;
        let has_writers = openers.writers != 0;

        match (ends.reads, ends.writes) {
            (true, false) => {
                self.enter(&mut openers, ends)?;
                if !has_writers && nonblocking {
                    opened.hangup_mark = self.pipe.writers_seen();
                } else if !has_writers {
                    let before = self.writers_seen.load();

                    drop(openers);
                    self.await_partner(ends, &self.writers_seen, before)?;
                }
            }
            (false, true) => {
                if !has_readers && nonblocking {
                    return Err(ENXIO);
                }
                self.enter(&mut openers, ends)?;
                if !has_readers {
                    let before = self.readers_seen.load();

                    drop(openers);
                    self.await_partner(ends, &self.readers_seen, before)?;
                }
            }
            (true, true) => self.enter(&mut openers, ends)?,
            // A descriptor for ioctl(2) alone, which a FIFO has no use for.
            (false, false) => return Err(EINVAL),
        }
        Ok(opened)
    }

    fn close(&self, ends: Ends) {
        self.leave(&mut self.openers.lock(), ends);
    }
}

impl<E: Engine> Owner for Fifo<E> {
    type Home = PipeHome;
}

impl<E: Engine> Configured for Fifo<E> {
    /// fstat(2) on a device tells of its node.
    const OMITTED: &'static [&'static str] = &["block_size"];

    fn config(&self) -> Config {
        self.pipe.config()
    }

    fn configure(&self, change: impl FnOnce(&mut Config) -> Result) -> Result {
        self.pipe.reconfigure(change)
    }
}

impl<E: Engine> Counted for Fifo<E> {
    fn counters(&self) -> Counters {
        self.baseline.since(|| self.pipe.counters())
    }

    fn reset(&self) {
        self.baseline.reset(|| self.pipe.counters());
    }
}
