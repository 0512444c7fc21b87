// SPDX-License-Identifier: GPL-2.0
//! The scenarios, one file for each area.

use crate::case::Area;

mod data;
mod eof;
mod nonblock;
mod poll;

/// Every area, in the order in which they run.
pub const AREAS: &[Area] = &[data::AREA, nonblock::AREA, poll::AREA, eof::AREA];
