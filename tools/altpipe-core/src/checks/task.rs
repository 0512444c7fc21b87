// SPDX-License-Identifier: GPL-2.0

//! Who uses the pipe of a [`World`](super::world::World), and how far he has come.

/// The two sides of a pipe.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

impl Side {
    pub(super) fn other(self) -> Self {
        match self {
            Side::Read => Side::Write,
            Side::Write => Side::Read,
        }
    }
}

/// What a task does all its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// Calls read for so many bytes.
    Reader(u8),
    /// Calls write for so many bytes.
    Writer(u8),
    /// Calls write for a page from an address where there is nothing.
    BadWriter,
    /// Polls the read end once.
    PollIn,
    /// Polls the write end once.
    PollOut,
}

impl Role {
    pub(super) fn side(self) -> Side {
        match self {
            Role::Reader(_) | Role::PollIn => Side::Read,
            Role::Writer(_) | Role::BadWriter | Role::PollOut => Side::Write,
        }
    }

    pub(super) fn polls(self) -> bool {
        matches!(self, Role::PollIn | Role::PollOut)
    }

    /// Bytes that each call of its asks for.
    pub(super) fn bytes(self) -> u8 {
        match self {
            Role::Reader(bytes) | Role::Writer(bytes) => bytes,
            Role::BadWriter => super::call::PAGE as u8,
            Role::PollIn | Role::PollOut => 0,
        }
    }
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum At {
    /// About to take the lock for a new call; a poller is about to wait.
    Start,
    /// Holds the lock; about to move bytes of one slot.
    Moving,
    /// Holds the lock; about to wake the other side before it moves on.
    WakingInLock,
    /// Holds the lock, the last writer to wait; about to wake readers that hold out for more.
    WakingMergers,
    /// About to wake the other side before it sleeps.
    WakingBeforeSleep,
    /// About to enter the queue.
    Queueing,
    /// In the queue; about to look at the ring.
    Looking,
    /// Asleep, unless woken.
    Asleep,
    /// Taken off the queue by a signal; about to look at the ring.
    Interrupted,
    /// About to take the lock again after a wait.
    Returning,
    /// About to wake the other side, the call being done.
    WakingOther,
    /// About to pass a wake-up on to its own side.
    HandingOver,
    /// About to close its end, or just to go.
    Finished,
    /// Gone.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Task {
    pub(super) role: Role,
    pub(super) at: At,
    /// Calls still to make, this one included.
    pub(super) calls: u8,
    /// Bytes that this call has still to move.
    pub(super) left: u8,
    /// In a write: whether this call published any since it began or last slept.
    pub(super) wrote: bool,
    /// In a write: whether the ring was empty when it began or last slept.
    pub(super) was_empty: bool,
    /// In a read: whether the ring was full when it began or last slept.
    pub(super) was_full: bool,
    /// In a read: whether writers are to be woken at its end.
    pub(super) wake_due: bool,
    /// Whether this call waited.
    pub(super) waited: bool,
    /// Whether a wake-up is to be passed on.
    pub(super) hand_over: bool,
    /// Whether a wake-up reached it since it entered the queue.
    pub(super) woken: bool,
    /// Whether a signal is pending.
    pub(super) signal: bool,
    /// How often the config had changed when this call last took the lock.
    pub(super) generation: u8,
}

impl Task {
    /// A task about to begin the first of `calls` calls.
    pub(super) fn new(role: Role, calls: u8) -> Self {
        Self {
            role,
            at: At::Start,
            calls,
            left: 0,
            wrote: false,
            was_empty: false,
            was_full: false,
            wake_due: false,
            waited: false,
            hand_over: false,
            woken: false,
            signal: false,
            generation: 0,
        }
    }

    /// Whether this call, a read, has bytes to return.
    pub(super) fn has_data(&self) -> bool {
        self.left != self.role.bytes()
    }

    /// What follows once the other side has been woken: the end of the call.
    ///
    /// A call leaves no trace in its task, so that worlds which differ in their past alone are one.
    pub(super) fn after_waking(&mut self) -> At {
        if self.hand_over {
            return At::HandingOver;
        }
        let calls = if self.signal { 0 } else { self.calls - 1 };
        *self = Task::new(self.role, calls);
        match calls {
            0 => At::Finished,
            _ => At::Start,
        }
    }
}
