// SPDX-License-Identifier: GPL-2.0
//! Sets up the kernel that altpipe is tested on, and runs commands in it.

mod accel;
mod archive;
mod boots;
mod cache;
mod checkout;
mod cli;
mod console;
mod cost;
mod cpio;
mod exit;
mod guest;
mod interrupt;
mod kernel;
mod ktap;
mod libtest;
mod lint;
mod machine;
mod protocol;
mod rootfs;
mod run;
mod step;
mod suite;
mod tally;
mod version;

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use cache::Cache;
use checkout::Checkout;
use cli::{Cli, Command};
use interrupt::Interrupt;
use kernel::stock;
use run::Wish;
use suite::Suite;
use tally::Tally;

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
    let refresh = matches!(&command, Command::Setup(setup) if setup.refresh);
    let stock = stock::set_up(&cache, &checkout, refresh)?;
    let debug = command
        .needs_debug()
        .then(|| kernel::debug::set_up(&cache, &checkout, &stock))
        .transpose()?;
    let kernel = debug.as_ref().unwrap_or(&stock);
    // Not before set-up, which a signal may end at any point.
    let interrupt = Interrupt::catch()?;
    let mut suite = Suite {
        cache: &cache,
        checkout: &checkout,
        kernel: &stock,
        debug: debug.as_ref(),
        interrupt: &interrupt,
        total: Tally::default(),
    };
    let machine = |wish: Wish| wish.machine(&cache, &checkout, kernel, &interrupt);
    match command {
        Command::Setup(setup) => {
            if setup.modules {
                step::step("module for the debug kernel", || {
                    kernel::debug::build_modules(&checkout, kernel)
                })?;
            }
            println!("{} {}", kernel.release()?, kernel.kdir().display());
            Ok(0)
        }
        Command::Run(run) => {
            let mut machine = machine(run.machine.wish())?;
            machine.guest.command = Some(run.command);
            Ok(run::run(&machine, run.out.as_deref(), &interrupt, io::stdout())?.status)
        }
        Command::Boots(boots) => {
            let (wish, series) = boots.split();
            series.run(&machine(wish)?, &interrupt)
        }
        Command::Shell(shell) => {
            machine(shell.machine.wish())?.interact(tempfile::tempdir()?.path())?;
            Ok(0)
        }
        Command::Test(test) if test.debug => suite.run_debug(),
        Command::Test(test) if test.long => suite.run_long(),
        Command::Test(test) => suite.run(test.check),
        Command::Check(_) => suite.lint(),
    }
}
