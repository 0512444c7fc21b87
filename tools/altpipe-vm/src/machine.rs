// SPDX-License-Identifier: GPL-2.0
//! One boot of a kernel under QEMU, from power-on to its end.

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::accel::Accelerator;
use crate::console;
use crate::guest::Guest;
use crate::interrupt::Interrupt;
use crate::protocol::{self, Copier, Event, Protocol};

/// From power-on to the first word of our init under KVM; a second is usual.
const KVM_BOOT_TIMEOUT: Duration = Duration::from_secs(30);

/// The same under emulation. An idle host needs 3 s; one with two cores and ten
/// busy tasks was seen to take 37.
const BOOT_TIMEOUT: Duration = Duration::from_secs(90);

/// How often an emulated boot is tried. On a busy host, QEMU 7.2 with a thread
/// for each processor was seen to lose one boot in about fifty, long before
/// anything of ours ran: the second processor never came up, or ran into a
/// breakpoint of the kernel's code patching after that had been taken away.
const BOOT_ATTEMPTS: u32 = 3;

/// What to boot, and how.
#[derive(Clone)]
pub struct Machine {
    pub image: PathBuf,
    /// QEMU's machine type.
    pub board: &'static str,
    /// More words for the kernel's command line.
    pub parameters: &'static str,
    pub accelerator: Accelerator,
    pub processors: u32,
    pub memory_mib: u32,
    pub guest: Guest,
    /// A file system that the guest may write to, and of which nothing is kept.
    pub disk: Option<PathBuf>,
    /// How long the command may take.
    pub timeout: Duration,
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself with this status; /out is in the archive.
    Exited { status: u8, results: Vec<u8> },
    /// The module did not load.
    NoModule,
    /// The kernel reported faults: these lines of its log.
    Reported(Vec<String>),
    /// The kernel did not come up in time.
    BootTimeout,
    /// The command did not end in time.
    CommandTimeout,
    /// The machine went away without saying how the command ended.
    Vanished(ExitStatus),
    /// We were told to stop by this signal.
    Interrupted(u8),
}

impl End {
    /// Would a second try end in the same way?
    fn is_final(&self) -> bool {
        match self {
            Self::Interrupted(_) => true,
            // QEMU itself failed; a machine that resets ends it with success.
            Self::Vanished(status) => !status.success(),
            _ => false,
        }
    }
}

/// What came of one try, and where its output went.
struct Attempt<O> {
    end: End,
    /// Did our init begin? From then on there is no second try.
    booted: bool,
    outputs: O,
}

impl Machine {
    /// Boots, runs the guest's command and collects what it leaves. The
    /// kernel's log goes to `console.log` in `dir`.
    pub fn run(
        &self,
        dir: &Path,
        interrupt: &Interrupt,
        stdout: impl Write + Send + 'static,
        stderr: impl Write + Send + 'static,
    ) -> Result<End> {
        let mut outputs = (stdout, stderr);
        let attempts = match self.accelerator {
            Accelerator::Kvm => 1,
            Accelerator::Tcg | Accelerator::Icount => BOOT_ATTEMPTS,
        };
        for _ in 1..attempts {
            let attempt = self.attempt(dir, interrupt, outputs)?;
            if attempt.booted || attempt.end.is_final() {
                return Ok(attempt.end);
            }
            eprintln!(
                "altpipe-vm: lost before our init: {:?}; trying again",
                attempt.end
            );
            outputs = attempt.outputs;
        }
        Ok(self.attempt(dir, interrupt, outputs)?.end)
    }

    /// One try.
    fn attempt<O, E>(
        &self,
        dir: &Path,
        interrupt: &Interrupt,
        (stdout, stderr): (O, E),
    ) -> Result<Attempt<(O, E)>>
    where
        O: Write + Send + 'static,
        E: Write + Send + 'static,
    {
        let log = dir.join("console.log");
        // QEMU gets the ports as its three standard files, whose other ends nobody
        // else inherits: so their end of file is the end of the machine.
        let (protocol, port) = UnixStream::pair()?;
        let mut command = self.qemu(dir, "panic=-1 oops=panic")?;
        command.args([
            "-chardev",
            &format!("file,id=console,path={}", log.display()),
        ]);
        command.args(["-serial", "chardev:console", "-device", "virtio-serial"]);
        for (number, device) in [
            (1, "file,path=/dev/stdout"),
            (2, "file,path=/dev/stderr"),
            (3, "socket,fd=0"),
        ] {
            command.args(["-chardev", &format!("{device},id=port{number}")]);
            command.args([
                "-device",
                &format!("virtserialport,nr={number},chardev=port{number}"),
            ]);
        }
        let mut child = command
            .stdin(Stdio::from(OwnedFd::from(port)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run setpriv and qemu-system-x86_64")?;
        drop(command);

        let stdout = Copier::start(child.stdout.take().expect("piped"), stdout);
        let stderr = Copier::start(child.stderr.take().expect("piped"), stderr);
        let copied = [stdout.copied(), stderr.copied()];
        let (events, inbox) = mpsc::channel();
        let listener = thread::spawn(move || protocol::listen(&protocol, &copied, &events));
        let (protocol, booted, late) = self.watch(&mut child, &inbox, interrupt)?;
        let status = child.wait().context("cannot wait for qemu")?;
        listener.join().expect("the listener does not panic");
        let stdout = stdout.join()?;
        let stderr = stderr.join()?;

        let text = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        let text = String::from_utf8_lossy(&text);
        let reports = console::reports(&text);
        let end = if let Some(signal) = interrupt.signal() {
            End::Interrupted(signal)
        } else if !reports.is_empty() {
            // A fault that the kernel reports explains everything after it.
            End::Reported(reports.into_iter().map(str::to_owned).collect())
        } else {
            match (late, booted, protocol) {
                (true, true, _) => End::CommandTimeout,
                (true, false, _) => End::BootTimeout,
                (_, _, Protocol::Status(status, results)) => End::Exited { status, results },
                (_, _, Protocol::NoModule) => End::NoModule,
                (_, _, Protocol::Cut) => End::Vanished(status),
            }
        };
        Ok(Attempt {
            end,
            booted,
            outputs: (stdout, stderr),
        })
    }

    /// Waits until the machine has ended, and ends it when it is late or when we
    /// are told to stop. Returns what it said, whether it came up, and whether it
    /// was late.
    fn watch(
        &self,
        child: &mut Child,
        inbox: &Receiver<Event>,
        interrupt: &Interrupt,
    ) -> Result<(Protocol, bool, bool)> {
        let mut deadline = Instant::now()
            + match self.accelerator {
                Accelerator::Kvm => KVM_BOOT_TIMEOUT,
                Accelerator::Tcg | Accelerator::Icount => BOOT_TIMEOUT,
            };
        let (mut booted, mut late) = (false, false);
        loop {
            match inbox.recv_timeout(Interrupt::INTERVAL) {
                Ok(Event::Booted) => {
                    booted = true;
                    deadline = Instant::now() + self.timeout;
                }
                Ok(Event::Ended(protocol)) => return Ok((protocol, booted, late)),
                Err(RecvTimeoutError::Timeout) => {
                    late |= Instant::now() >= deadline;
                    if late || interrupt.signal().is_some() {
                        child.kill().context("cannot end qemu")?;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the listener died"),
            }
        }
    }

    /// Boots with the console on our terminal, until the machine ends.
    pub fn interact(&self, dir: &Path) -> Result<()> {
        let mut command = self.qemu(dir, "quiet")?;
        command.args(["-chardev", "stdio,id=console,mux=on,signal=off"]);
        command.args(["-serial", "chardev:console", "-mon", "chardev=console"]);
        let status = command
            .status()
            .context("cannot run setpriv and qemu-system-x86_64")?;
        if !status.success() {
            bail!("qemu failed ({status})");
        }
        Ok(())
    }

    fn qemu(&self, dir: &Path, parameters: &str) -> Result<Command> {
        let initrd = dir.join("initramfs");
        fs::write(&initrd, self.guest.pack()?)?;
        // However we end, the machine ends with us.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        command.args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-machine",
            self.board,
        ]);
        command.args(self.accelerator.arguments());
        command.args([
            "-smp",
            &self.processors.to_string(),
            "-m",
            &format!("{}M", self.memory_mib),
        ]);
        command
            .arg("-kernel")
            .arg(&self.image)
            .arg("-initrd")
            .arg(&initrd);
        if let Some(disk) = &self.disk {
            command.args([
                "-drive",
                &format!(
                    "file={},format=raw,if=none,id=disk,snapshot=on",
                    disk.display()
                ),
                "-device",
                "nvme,drive=disk,serial=altpipe",
            ]);
        }
        // The processor's random numbers count as entropy, or boot would wait.
        command.args([
            "-append",
            &format!(
                "console=ttyS0 random.trust_cpu=on {parameters} {}",
                self.parameters
            ),
        ]);
        Ok(command)
    }
}
