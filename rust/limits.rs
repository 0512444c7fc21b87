// SPDX-License-Identifier: GPL-2.0

//! How large pipes may be, and how much of them a user may have.
//!
//! The rules are those of `/proc/sys/fs/pipe-user-pages-soft`, `pipe-user-pages-hard` and
//! `pipe-max-size`; the numbers are the files below `limits/`.

use crate::{
    abi::{
        quota::{self, Charge},
        sysfs::{Entry, File, Group, List, Owner, Show, Store},
    },
    config::{Config, PageRule},
    page::PAGE_SIZE,
    sync::Word,
};
use core::{fmt, marker::PhantomData};
use kernel::prelude::*;

/// The largest pipe there can be, in bytes: its slots are counted in 32 bits, and the kernel's own
/// pipe stops here as well.
const LARGEST: u64 = 1 << 31;

/// The limits that hold for all pipes.
pub(crate) struct Limits {
    /// Over so many slots a user's new pipes are small, and none of his may grow; 0 is no limit.
    user_pages_soft: Word,
    /// Over so many slots a user gets no new pipe; 0 is no limit.
    user_pages_hard: Word,
    /// Bytes in the largest pipe that a user may ask for.
    max_size: Word,
}

impl Limits {
    /// The kernel's own defaults.
    pub(crate) const fn new() -> Self {
        Self {
            // 1024 pipes of 16 slots.
            user_pages_soft: Word::new(16 * 1024),
            user_pages_hard: Word::new(0),
            max_size: Word::new(1 << 20),
        }
    }

    fn is_over_soft(&self, slots: u64) -> bool {
        let soft = self.user_pages_soft.load();

        soft != 0 && slots > soft
    }

    fn is_over_hard(&self, slots: u64) -> bool {
        let hard = self.user_pages_hard.load();

        hard != 0 && slots > hard
    }

    /// Whether the current task may have a pipe of `bytes`.
    pub(crate) fn allows_size(&self, bytes: u64) -> bool {
        bytes <= self.max_size.load() || quota::may_exceed_size()
    }

    /// Charges a new pipe; returns the number of its slots.
    pub(crate) fn charge_new(&self, config: &Config, charge: &mut Charge) -> Result<u32> {
        let mut bytes = u64::from(config.capacity);
        if !self.allows_size(bytes) {
            bytes = self.max_size.load();
        }
        let mut slots = u32::try_from(bytes / PAGE_SIZE as u64).map_err(|_| EINVAL)?;

        // The kernel's pipe keeps two pages for its next writes and charges nobody for them. Who wants
        // more has them on his account, or he could pin them without a limit.
        charge.set_spare(
            PageRule::of(config)
                .keep
                .saturating_sub(PageRule::of(&Config::DEFAULT).keep),
        );
        let mut total = charge.set(slots);
        if self.is_over_soft(total) && !quota::may_exceed_quota() {
            slots = slots.min(config.min_def_buffers);
            total = charge.set(slots);
        }
        if self.is_over_hard(total) && !quota::may_exceed_quota() {
            // As for pipe(2): alloc_pipe_info() fails, and all that the caller hears is this.
            return Err(ENFILE);
        }
        Ok(slots)
    }

    /// Charges a pipe that changes its size to `slots`.
    pub(crate) fn charge_resized(&self, slots: u32, charge: &mut Charge) -> Result {
        let before = charge.slots();
        let bytes = u64::from(slots).saturating_mul(PAGE_SIZE as u64);
        let grows = slots > before;

        if grows && !self.allows_size(bytes) {
            return Err(EPERM);
        }
        let total = charge.set(slots);
        if grows
            && (self.is_over_soft(total) || self.is_over_hard(total))
            && !quota::may_exceed_quota()
        {
            charge.set(before);
            return Err(EPERM);
        }
        Ok(())
    }
}

/// The number of slots for a pipe of at least `bytes`: a power of two, and at least one.
pub(crate) fn slots_for(bytes: u64) -> Result<u32> {
    if bytes > LARGEST {
        return Err(EINVAL);
    }
    let bytes = bytes.max(PAGE_SIZE as u64).next_power_of_two();

    u32::try_from(bytes / PAGE_SIZE as u64).map_err(|_| EINVAL)
}

/// Something with limits.
pub(crate) trait Limited {
    /// Its limits.
    fn limits(&self) -> &Limits;
}

/// One limit: the name of its file, where it is kept, and which values it takes.
struct Limit {
    file: &'static CStr,
    word: fn(&Limits) -> &Word,
    round: fn(u64) -> Result<u64>,
}

const USER_PAGES_SOFT: &Limit = &Limit {
    file: c"user_pages_soft",
    word: |limits| &limits.user_pages_soft,
    round: Ok,
};

const USER_PAGES_HARD: &Limit = &Limit {
    file: c"user_pages_hard",
    word: |limits| &limits.user_pages_hard,
    round: Ok,
};

const MAX_SIZE: &Limit = &Limit {
    file: c"max_size",
    word: |limits| &limits.max_size,
    // As for /proc/sys/fs/pipe-max-size: a pipe's size, so rounded like one.
    round: |bytes| Ok(u64::from(slots_for(bytes)?).saturating_mul(PAGE_SIZE as u64)),
};

impl<O: Limited> Show<O> for Limit {
    fn show(&self, owner: &O, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{}", (self.word)(owner.limits()).load())
    }
}

impl<O: Limited> Store<O> for Limit {
    fn store(&self, owner: &O, text: &str) -> Result {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(EINVAL);
        }
        let value = text.parse::<u64>().map_err(|_| EINVAL)?;

        (self.word)(owner.limits()).store((self.round)(value)?);
        Ok(())
    }
}

/// The directory `limits/` of an `O`.
pub(crate) struct Directory<O>(PhantomData<O>);

impl<O: Limited + Owner + 'static> Directory<O> {
    const FILES: &'static [File<O, Limit>; 3] = &[
        File::read_write(USER_PAGES_SOFT.file, USER_PAGES_SOFT),
        File::read_write(USER_PAGES_HARD.file, USER_PAGES_HARD),
        File::read_write(MAX_SIZE.file, MAX_SIZE),
    ];

    const LIST: &'static List<Entry<O>, 3> = &List::of(Self::FILES, Self::FILES[0].entry());

    /// The directory itself.
    pub(crate) const GROUP: &'static Group<O> = &Group::new(c"limits", Self::LIST);
}

#[kunit_tests(altpipe_limits)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_SIZE as u64;

    fn limits(soft: u64, hard: u64, size: u64) -> Limits {
        let limits = Limits::new();

        limits.user_pages_soft.store(soft);
        limits.user_pages_hard.store(hard);
        limits.max_size.store(size);
        limits
    }

    #[test]
    fn a_size_is_rounded_up_to_a_power_of_two_of_pages() {
        for (bytes, slots) in [
            (0, 1),
            (1, 1),
            (PAGE, 1),
            (PAGE + 1, 2),
            (5 * PAGE, 8),
            (LARGEST, (LARGEST / PAGE) as u32),
        ] {
            assert_eq!(slots_for(bytes), Ok(slots));
        }
        assert_eq!(slots_for(LARGEST + 1), Err(EINVAL));
        assert_eq!(slots_for(u64::MAX), Err(EINVAL));
    }

    #[test]
    fn a_limit_is_exceeded_above_it_and_zero_is_none() {
        let some = limits(100, 200, PAGE);
        let none = limits(0, 0, PAGE);

        assert!(!some.is_over_soft(100) && some.is_over_soft(101));
        assert!(!some.is_over_hard(200) && some.is_over_hard(201));
        assert!(!none.is_over_soft(u64::MAX) && !none.is_over_hard(u64::MAX));
    }

    #[test]
    fn a_user_is_charged_what_his_pipes_have_and_gets_it_back() -> Result {
        let mut one = Charge::new()?;
        let mut other = Charge::new()?;
        let before = one.set(0);

        assert_eq!(one.set(16), before + 16);
        assert_eq!(other.set(4), before + 20);
        assert_eq!(one.set(2), before + 6);
        drop(one);
        assert_eq!(other.set(4), before + 4);
        Ok(())
    }

    // Whoever loads a module may exceed every limit. What a user may not is for the selftests.
    #[test]
    fn the_privileged_exceed_every_limit() -> Result {
        let tight = limits(1, 1, PAGE);
        let mut charge = Charge::new()?;
        let config = Config::DEFAULT;

        assert!(tight.allows_size(2 * PAGE));
        assert_eq!(
            tight.charge_new(&config, &mut charge),
            slots_for(config.capacity.into())
        );
        assert_eq!(tight.charge_resized(64, &mut charge), Ok(()));
        assert_eq!(charge.slots(), 64);
        Ok(())
    }
}
