// SPDX-License-Identifier: GPL-2.0

//! The roll of living objects of one kind.
//!
//! Statistics over all pipes must count the living and the dead, and the data path must not pay
//! for it: so each pipe counts for itself, and the roll finds them all.

use core::cell::UnsafeCell;
use kernel::{
    list::{impl_list_arc_safe, impl_list_item, List, ListArc, ListLinks},
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};

/// An object on a roll.
#[pin_data]
pub(crate) struct Live<T: Send + Sync, D: Send + Unpin> {
    #[pin]
    links: ListLinks,
    roll: Arc<Roll<T, D>>,
    /// What the object said when it was asked last; under the roll's lock.
    heard: UnsafeCell<D>,
    #[pin]
    object: T,
}

// SAFETY: Both parts may go to other tasks.
unsafe impl<T: Send + Sync, D: Send + Unpin> Send for Live<T, D> {}
// SAFETY: `object` is made to be shared, and the roll's lock serialises all access to `heard`.
unsafe impl<T: Send + Sync, D: Send + Unpin> Sync for Live<T, D> {}

impl_list_arc_safe! {
    impl{T: Send + Sync, D: Send + Unpin} ListArcSafe<0> for Live<T, D> { untracked; }
}

impl_list_item! {
    impl{T: Send + Sync, D: Send + Unpin} ListItem<0> for Live<T, D> { using ListLinks { self.links }; }
}

impl<T: Send + Sync, D: Send + Unpin> core::ops::Deref for Live<T, D> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.object
    }
}

impl<T: Send + Sync, D: Default + Send + Unpin> Live<T, D> {
    /// Makes an object and puts it on `roll`.
    pub(crate) fn new(roll: &Arc<Roll<T, D>>, object: impl PinInit<T, Error>) -> Result<Arc<Self>> {
        let entry = ListArc::pin_init::<Error>(
            try_pin_init!(Self {
                links <- ListLinks::new(),
                roll: roll.clone(),
                heard: UnsafeCell::new(D::default()),
                object <- object,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let live = entry.clone_arc();

        roll.members.lock().living.push_back(entry);
        Ok(live)
    }

    /// Takes the object off its roll, for good; `last_words` moves what shall survive it.
    pub(crate) fn retire(&self, last_words: impl FnOnce(&T, &mut D)) {
        let mut members = self.roll.members.lock();

        last_words(&self.object, &mut members.dead);
        // SAFETY: `new` put it on this very roll, and no other list takes a `Live`.
        let entry = unsafe { members.living.remove(self) };
        drop(members);
        drop(entry);
    }
}

struct Members<T: Send + Sync, D: Send + Unpin> {
    living: List<Live<T, D>>,
    dead: D,
}

/// The living objects of one kind, and what is remembered of the dead.
///
/// Lock order: a roll's lock comes before any lock of its objects.
#[pin_data]
pub(crate) struct Roll<T: Send + Sync, D: Send + Unpin> {
    #[pin]
    members: Mutex<Members<T, D>>,
}

impl<T: Send + Sync, D: Send + Unpin> Roll<T, D> {
    /// Makes an empty roll.
    pub(crate) fn new(dead: D) -> impl PinInit<Self> {
        pin_init!(Self {
            members <- new_mutex!(Members { living: List::new(), dead }),
        })
    }

    /// Folds the living into a copy of what is remembered of the dead.
    ///
    /// `ask` must not wait: whoever makes an object needs the roll. For one that cannot answer now
    /// stands what it said the last time.
    pub(crate) fn fold(
        &self,
        mut ask: impl FnMut(&T) -> Option<D>,
        mut add: impl FnMut(&mut D, &D),
    ) -> D
    where
        D: Clone,
    {
        let members = self.members.lock();
        let mut sum = members.dead.clone();

        for live in members.living.iter() {
            // SAFETY: The roll is locked, and neither closure has a way to `heard`.
            let heard = unsafe { &mut *live.heard.get() };

            if let Some(answer) = ask(&live.object) {
                *heard = answer;
            }
            add(&mut sum, heard);
        }
        sum
    }
}
