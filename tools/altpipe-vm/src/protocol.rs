// SPDX-License-Identifier: GPL-2.0
//! What the guest and its host say to one another on port 3, and how a run's
//! output gets out whole.
//!
//! ```text
//!   guest   booted
//!           status S A B C        or   no module A B
//!           C bytes of results
//!   host    done
//! ```
//!
//! A port takes what is written to it without waiting for anybody to read it. On a
//! busy host a machine that ended at once was seen to lose 300 kB of its results.
//! So the guest tells how many bytes it gave to the ports of standard output (A)
//! and error (B), and stays until the host has them all.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is heard of a machine while it runs.
pub enum Event {
    Booted,
    Ended(Protocol),
}

/// What the guest said.
#[derive(Debug, PartialEq, Eq)]
pub enum Protocol {
    NoModule,
    Status(u8, Vec<u8>),
    Cut,
}

/// How long a machine may wait for us to have its output.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream of the guest's that is passed on as it comes.
pub struct Copier<W> {
    thread: JoinHandle<io::Result<W>>,
    copied: Arc<AtomicU64>,
}

impl<W: Write + Send + 'static> Copier<W> {
    /// Begins to.
    pub fn start(mut from: impl Read + Send + 'static, mut to: W) -> Self {
        let copied = Arc::new(AtomicU64::new(0));
        let count = copied.clone();
        let thread = thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            loop {
                let length = from.read(&mut buffer)?;
                to.write_all(&buffer[..length])?;
                to.flush()?;
                if length == 0 {
                    return Ok(to);
                }
                count.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        Self { thread, copied }
    }

    /// The number of bytes passed on, for other threads to look at.
    pub fn copied(&self) -> Arc<AtomicU64> {
        self.copied.clone()
    }

    /// Waits for the stream's end.
    pub fn join(self) -> io::Result<W> {
        self.thread.join().expect("the copiers do not panic")
    }
}

/// Follows the guest to the end of its machine. `copied` counts what came of
/// standard output and error.
pub fn listen(port: &UnixStream, copied: &[Arc<AtomicU64>; 2], events: &Sender<Event>) {
    let mut reader = BufReader::new(port);
    let protocol = follow(&mut reader, copied, events).unwrap_or(Protocol::Cut);
    if protocol != Protocol::Cut {
        // A machine that is gone meanwhile needs no answer.
        let mut answer = port;
        let _ = answer.write_all(b"done\n");
    }
    // The end of the stream is the end of the machine.
    let _ = io::copy(&mut reader, &mut io::sink());
    // Nobody listens any more only when the run is over.
    let _ = events.send(Event::Ended(protocol));
}

fn follow(
    port: &mut impl BufRead,
    copied: &[Arc<AtomicU64>; 2],
    events: &Sender<Event>,
) -> Option<Protocol> {
    let mut line = || {
        let mut text = String::new();
        port.read_line(&mut text).ok()?;
        text.strip_suffix('\n').map(str::to_owned)
    };
    if line()? != "booted" {
        return None;
    }
    events.send(Event::Booted).ok()?;
    let end = line()?;
    let (protocol, sent) = if let Some(sent) = end.strip_prefix("no module ") {
        (Protocol::NoModule, numbers::<2>(sent)?)
    } else {
        let [status, output, error, length] = numbers(end.strip_prefix("status ")?)?;
        let mut results = vec![0; usize::try_from(length).ok()?];
        port.read_exact(&mut results).ok()?;
        (
            Protocol::Status(u8::try_from(status).ok()?, results),
            [output, error],
        )
    };
    let start = Instant::now();
    for (copied, sent) in copied.iter().zip(sent) {
        while copied.load(Ordering::Relaxed) < sent && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Some(protocol)
}

fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn hear(said: &[u8], counts: [u64; 2]) -> (Protocol, String) {
        let (host, guest) = UnixStream::pair().unwrap();
        let (events, inbox) = mpsc::channel();
        let copied = counts.map(|count| Arc::new(AtomicU64::new(count)));
        let listener = thread::spawn(move || listen(&host, &copied, &events));
        (&guest).write_all(said).unwrap();
        guest.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        listener.join().unwrap();
        (&guest).read_to_string(&mut answer).unwrap();
        let protocol = inbox.iter().find_map(|event| match event {
            Event::Ended(protocol) => Some(protocol),
            Event::Booted => None,
        });
        (protocol.unwrap(), answer)
    }

    #[test]
    fn results_are_taken_whole_and_answered() {
        let (protocol, answer) = hear(b"booted\nstatus 7 10 0 5\nab\ncd", [10, 0]);
        assert_eq!(protocol, Protocol::Status(7, b"ab\ncd".to_vec()));
        assert_eq!(answer, "done\n");
    }

    #[test]
    fn results_that_stop_short_are_no_results() {
        for said in ["", "booted\n", "booted\nstatus 0 0 0 5\nab", "booted\nstat"] {
            assert_eq!(hear(said.as_bytes(), [0; 2]), (Protocol::Cut, "".into()));
        }
    }

    #[test]
    fn the_guest_is_kept_until_its_output_is_out() {
        let (host, guest) = UnixStream::pair().unwrap();
        let (events, _inbox) = mpsc::channel();
        let copied = [9, 0].map(|count| Arc::new(AtomicU64::new(count)));
        let output = copied[0].clone();
        let listener = thread::spawn(move || listen(&host, &copied, &events));
        (&guest).write_all(b"booted\nno module 10 0\n").unwrap();
        guest
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        assert!((&guest).read(&mut [0]).is_err(), "answered too early");
        output.store(10, Ordering::Relaxed);
        guest.set_read_timeout(None).unwrap();
        assert_eq!((&guest).read(&mut [0; 8]).unwrap(), 5);
        drop(guest);
        listener.join().unwrap();
    }
}
