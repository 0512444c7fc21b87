// SPDX-License-Identifier: GPL-2.0
//! Sets up the kernel that altpipe is tested on, and runs commands in it.

mod accel;
mod archive;
mod cache;
mod checkout;
mod cli;
mod console;
mod cpio;
mod exit;
mod guest;
mod interrupt;
mod kernel;
mod machine;
mod run;
mod step;
mod version;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use cache::Cache;
use checkout::Checkout;
use cli::{Cli, Command};
use interrupt::Interrupt;

fn main() -> ExitCode {
    match perform(Cli::parse().command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("altpipe-vm: {error:#}");
            ExitCode::from(exit::SETUP)
        }
    }
}

fn perform(command: Command) -> Result<u8> {
    let cache = Cache::open()?;
    let checkout = Checkout::find()?;
    match command {
        Command::Setup(setup) => {
            let kernel = kernel::stock::set_up(&cache, &checkout, setup.refresh)?;
            println!("{} {}", kernel.release()?, kernel.kdir().display());
            Ok(0)
        }
        Command::Run(run) => {
            let interrupt = Interrupt::catch()?;
            let mut machine = run.machine.wish().machine(&cache, &checkout, &interrupt)?;
            machine.guest.command = Some(run.command);
            run::run(&machine, run.out.as_deref(), &interrupt)
        }
        Command::Shell(shell) => {
            let machine = shell
                .machine
                .wish()
                .machine(&cache, &checkout, &Interrupt::default())?;
            machine.interact(tempfile::tempdir()?.path())?;
            Ok(0)
        }
    }
}
