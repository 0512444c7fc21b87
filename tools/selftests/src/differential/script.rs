// SPDX-License-Identifier: GPL-2.0
//! What a sequence is: a pipe to begin with, and the operations on it, in a form to be read by
//! people.

use std::fmt;

/// A sequence of operations, and the pipe on which they begin.
#[derive(Clone, Debug)]
pub struct Script {
    /// The slots that the pipe is resized to at first.
    pub pages: u32,
    /// Whether both ends keep packets apart at first.
    pub direct: bool,
    /// Whether all is looked at after each operation, and not at the end alone. A look polls, and
    /// to some rules it is not the same whether anybody ever did.
    pub looks: bool,
    /// Which side is kept from sleeping where the config lets only one of them sleep.
    pub patient: Side,
    /// The operations.
    pub ops: Vec<Op>,
}

/// The side of a pipe that a task is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who takes data.
    Readers,
    /// Who gives data.
    Writers,
}

/// An open descriptor, by its number among those of its kind.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// One that can be read from.
    Reader(u8),
    /// One that can be written to.
    Writer(u8),
    /// Whichever.
    Any(u8),
}

/// What is at the address that a transfer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Room enough.
    Good,
    /// Nothing.
    Nowhere,
    /// So many bytes, and nothing behind them.
    Edge(u16),
}

/// One address and length.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The length.
    pub len: u32,
    /// What is there.
    pub memory: Memory,
}

/// By which call a transfer is made.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// read(2) or write(2) of the first part.
    Plain,
    /// readv(2) or writev(2).
    Vector,
    /// preadv2(2) or pwritev2(2) at the file's position.
    Flags {
        /// RWF_NOWAIT
        nowait: bool,
        /// RWF_NOSIGNAL
        nosignal: bool,
    },
}

/// A read or a write.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The descriptor.
    pub end: End,
    /// From where or to where.
    pub parts: Vec<Part>,
    /// The call.
    pub form: Form,
}

/// A flag that F_SETFL changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// O_NONBLOCK
    Nonblock,
    /// O_DIRECT
    Direct,
    /// O_ASYNC
    Async,
}

/// How a descriptor is opened anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// O_RDONLY
    Read,
    /// O_WRONLY
    Write,
    /// O_RDWR
    Both,
}

/// A call that pipes refuse, or that changes nothing.
#[derive(Clone, Copy, Debug)]
pub enum Odd {
    /// lseek(2)
    Seek,
    /// pread(2) of a byte
    Pread,
    /// pwrite(2) of a byte
    Pwrite,
    /// ftruncate(2) to nothing
    Truncate,
    /// fsync(2)
    Sync,
    /// FIONREAD to a bad address
    CountNowhere,
    /// An ioctl that no pipe knows.
    Unknown,
}

/// One operation.
#[derive(Clone, Debug)]
pub enum Op {
    /// Reads, by a second task where that may sleep.
    Read(Transfer),
    /// Writes, likewise.
    Write(Transfer),
    /// Writes so many bytes at a time, without sleeping, until no more go in.
    Fill(End, u32),
    /// Reads so many bytes at a time, without sleeping, until none are left.
    Drain(End, u32),
    /// F_SETPIPE_SZ, or the ioctl that stands for it.
    Resize(End, u32),
    /// F_SETFL
    Set(End, Flag, bool),
    /// poll(2) without a timeout by a second task: sleeps until there is something to report.
    Poll(End, i16),
    /// EPOLL_CTL_ADD, or EPOLL_CTL_MOD where the descriptor is there already.
    Watch(End, u32),
    /// EPOLL_CTL_DEL
    Unwatch(End),
    /// epoll_wait(2) with a timeout of 0.
    Events,
    /// epoll_wait(2) by a second task, until there is an event.
    AwaitEvents,
    /// dup(2)
    Dup(End),
    /// close(2)
    Close(End),
    /// close(2) of all descriptors of one side.
    CloseAll(Side),
    /// open(2) of the descriptor's link in /proc.
    Reopen(End, Access, bool),
    /// A signal to the first task that sleeps, whose handler asks for restarts or does not.
    Signal(bool),
    /// A call that is refused.
    Odd(End, Odd),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reader(number) => write!(f, "reader {number}"),
            Self::Writer(number) => write!(f, "writer {number}"),
            Self::Any(number) => write!(f, "end {number}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.memory {
            Memory::Good => write!(f, "{}", self.len),
            Memory::Nowhere => write!(f, "{} nowhere", self.len),
            Memory::Edge(good) => write!(f, "{} of which {good} good", self.len),
        }
    }
}

impl Transfer {
    /// Whether the call itself asks not to sleep.
    pub fn is_nowait(&self) -> bool {
        matches!(self.form, Form::Flags { nowait: true, .. })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let parts: Vec<_> = self.parts.iter().map(Part::to_string).collect();
        match self.form {
            Form::Plain => write!(f, "{name} {}: {}", self.end, parts[0]),
            Form::Vector => write!(f, "{name}v {}: [{}]", self.end, parts.join(", ")),
            Form::Flags { nowait, nosignal } => {
                write!(f, "p{name}v2 {}: [{}]", self.end, parts.join(", "))?;
                f.write_str(if nowait { " RWF_NOWAIT" } else { "" })?;
                f.write_str(if nosignal { " RWF_NOSIGNAL" } else { "" })
            }
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(transfer) => transfer.write(f, "read"),
            Self::Write(transfer) => transfer.write(f, "write"),
            Self::Fill(end, chunk) => write!(f, "fill {end} by {chunk}"),
            Self::Drain(end, chunk) => write!(f, "drain {end} by {chunk}"),
            Self::Resize(end, bytes) => write!(f, "resize {end} to {bytes}"),
            Self::Set(end, flag, on) => {
                let flag = match flag {
                    Flag::Nonblock => "O_NONBLOCK",
                    Flag::Direct => "O_DIRECT",
                    Flag::Async => "O_ASYNC",
                };
                write!(f, "{} {flag} on {end}", if *on { "set" } else { "clear" })
            }
            Self::Poll(end, events) => write!(f, "poll {end} for {events:#x}"),
            Self::Watch(end, events) => write!(f, "epoll watches {end} for {events:#x}"),
            Self::Unwatch(end) => write!(f, "epoll forgets {end}"),
            Self::Events => f.write_str("epoll_wait, timeout 0"),
            Self::AwaitEvents => f.write_str("epoll_wait"),
            Self::Dup(end) => write!(f, "dup {end}"),
            Self::Close(end) => write!(f, "close {end}"),
            Self::CloseAll(Side::Readers) => f.write_str("close all that read"),
            Self::CloseAll(Side::Writers) => f.write_str("close all that write"),
            Self::Reopen(end, access, nonblock) => write!(
                f,
                "reopen {end} to {access:?}{}",
                if *nonblock { ", O_NONBLOCK" } else { "" }
            ),
            Self::Signal(true) => f.write_str("signal, SA_RESTART"),
            Self::Signal(false) => f.write_str("signal"),
            Self::Odd(end, odd) => write!(f, "{odd:?} {end}"),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a pipe of {} pages{}, looked at {}",
            self.pages,
            if self.direct { " with O_DIRECT" } else { "" },
            if self.looks {
                "at each step"
            } else {
                "at the end"
            },
        )
    }
}
