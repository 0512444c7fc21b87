// SPDX-License-Identifier: GPL-2.0
//! The document itself.

use std::io::{self, Write};

use super::Exporter;
use crate::document::Document;

/// Everything, for programs and for `altpipe report`.
pub struct Json;

impl Exporter for Json {
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, document)?;
        writeln!(out)
    }
}
