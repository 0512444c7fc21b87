// SPDX-License-Identifier: GPL-2.0
//! What is to be seen of a pipe without moving it.

use std::os::fd::AsRawFd;

use super::ends::Descriptor;
use super::{World, owners_signal};
use crate::differential::call::take_signal;
use crate::differential::transcript::View;

impl World<'_> {
    pub(super) fn told(&self) -> Vec<(i64, u8)> {
        if !self.has_owner {
            return Vec::new();
        }
        let serial = |fd| {
            let end = self.ends.iter().find(|end| end.fd.as_raw_fd() == fd);
            end.map_or(0, |end| end.serial)
        };
        let mut told: Vec<_> = std::iter::from_fn(|| take_signal(owners_signal()))
            .map(|told| (told.band, serial(told.fd)))
            .collect();
        told.sort_unstable();
        told
    }

    pub(super) fn look(&self) -> View {
        const ALL: i16 = 0x27df;
        let mut polled: Vec<_> = self
            .ends
            .iter()
            .map(|end| libc::pollfd {
                fd: end.fd.as_raw_fd(),
                events: ALL,
                revents: 0,
            })
            .collect();
        let mut queued = -1;
        // SAFETY: as many structures as is said, and a place for the number, outlive the calls.
        unsafe {
            libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, 0);
            if let Some(end) = self.ends.first() {
                libc::ioctl(end.fd.as_raw_fd(), libc::FIONREAD, &mut queued);
            }
        }
        let size = |end: &Descriptor| {
            self.subject
                .size(&end.fd)
                .map_err(|error| error.raw_os_error())
        };
        View {
            polled: polled.iter().map(|polled| polled.revents).collect(),
            queued,
            capacity: self.ends.last().map_or(Ok(0), size),
        }
    }
}
