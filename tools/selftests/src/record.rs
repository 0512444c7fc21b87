// SPDX-License-Identifier: GPL-2.0
//! Records that know their writer, number and length, and whose every byte follows from these
//! three.
//!
//! A record that was torn, mixed with another or shifted by one byte cannot be taken for a good
//! one.

/// Bytes of the header; no record is shorter.
pub const HEADER: usize = 8;

/// One numbered record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who wrote it.
    pub writer: u16,
    /// Its length in bytes with the header.
    pub len: u16,
    /// Its place among the records of its writer.
    pub number: u32,
}

impl Record {
    /// The record's bytes.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len.into());
        bytes.extend_from_slice(&self.writer.to_le_bytes());
        bytes.extend_from_slice(&self.len.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend((HEADER..self.len.into()).map(|at| self.filling(at)));
        bytes
    }

    /// The record at the front of `stream`, or `None` where it has not arrived whole. Panics on
    /// bytes that no record has.
    pub fn at_front(stream: &[u8]) -> Option<Self> {
        let header = stream.get(..HEADER)?;
        let record = Self {
            writer: u16::from_le_bytes([header[0], header[1]]),
            len: u16::from_le_bytes([header[2], header[3]]),
            number: u32::from_le_bytes([header[4], header[5], header[6], header[7]]),
        };
        assert!(
            usize::from(record.len) >= HEADER,
            "no record begins like this: {record:?}"
        );
        let body = stream.get(HEADER..record.len.into())?;
        let torn = (HEADER..)
            .zip(body)
            .find(|&(at, &byte)| byte != record.filling(at));
        assert!(
            torn.is_none(),
            "{record:?} is torn at byte {}",
            torn.map_or(0, |(at, _)| at)
        );
        Some(record)
    }

    fn filling(self, at: usize) -> u8 {
        (self.number as usize)
            .wrapping_mul(131)
            .wrapping_add(usize::from(self.writer) * 29 + at * 7) as u8
    }
}

/// Checks that each writer's records come in order and none is lost.
pub struct Ledger {
    next: Vec<u32>,
}

impl Ledger {
    /// A ledger for writers 0 to `writers` - 1, nothing received yet.
    pub fn new(writers: usize) -> Self {
        Self {
            next: vec![0; writers],
        }
    }

    /// Enters a record which must be the next of its writer.
    pub fn enter(&mut self, record: Record) {
        let next = &mut self.next[usize::from(record.writer)];
        assert_eq!(record.number, *next, "out of order: {record:?}");
        *next += 1;
    }

    /// Enters all records that `stream` holds whole and leaves the rest in it; returns their
    /// number.
    pub fn enter_all(&mut self, stream: &mut Vec<u8>) -> u64 {
        let mut records = 0;
        let mut done = 0;
        while let Some(record) = Record::at_front(&stream[done..]) {
            self.enter(record);
            done += usize::from(record.len);
            records += 1;
        }
        stream.drain(..done);
        records
    }

    /// Checks that `each` records of every writer have been entered.
    pub fn assert_complete(&self, each: u32) {
        self.assert_sent(&vec![each; self.next.len()]);
    }

    /// Checks that of each writer as many records have been entered as it sent.
    pub fn assert_sent(&self, sent: &[u32]) {
        assert_eq!(self.next, sent, "records received, and sent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_trip() {
        let record = Record {
            writer: 3,
            len: 100,
            number: 70_000,
        };
        assert_eq!(Record::at_front(&record.bytes()), Some(record));
        assert_eq!(Record::at_front(&record.bytes()[..99]), None);
    }

    #[test]
    #[should_panic(expected = "torn at byte 50")]
    fn a_torn_record_is_noticed() {
        let mut bytes = Record {
            writer: 3,
            len: 100,
            number: 7,
        }
        .bytes();
        bytes[50..].copy_from_slice(
            &Record {
                writer: 2,
                len: 100,
                number: 7,
            }
            .bytes()[50..],
        );
        Record::at_front(&bytes);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn a_lost_record_is_noticed() {
        let mut ledger = Ledger::new(1);
        ledger.enter(Record {
            writer: 0,
            len: 8,
            number: 1,
        });
    }
}
