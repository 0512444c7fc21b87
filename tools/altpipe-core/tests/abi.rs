// SPDX-License-Identifier: GPL-2.0

//! The text of the sysfs ABI follows from the code, word by word.
//!
//! Knobs are described by their table, counters by the kernel-doc of `struct altpipe_stats`. So an
//! entry can be neither missing nor stale nor wrong. After a change to either, write the file anew:
//!
//! ```sh
//! ALTPIPE_WRITE_ABI=1 cargo test -p altpipe-core --test abi
//! ```

use altpipe_core::config::Values;
use altpipe_core::{Config, Knob, KNOBS, PRESETS};
use std::fmt::Write;
use std::path::PathBuf;

const DIRECTORY: &str = "/sys/class/misc/altpipe";

/// The directory of each FIFO device.
const FIFO_DIRECTORY: &str = "/sys/class/altpipe/altpipe<N>";

/// The knob that FIFO devices lack.
const OMITTED: &str = "block_size";

/// Columns of text to the right of the two tabs by which it is indented.
const WIDTH: usize = 60;

/// A file of this repository.
fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Appends `text` as lines behind `indent`.
fn paragraph(abi: &mut String, indent: &str, text: &str) {
    let mut line = String::new();
    let width = WIDTH - 8 * (indent.len() - 2);
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            writeln!(abi, "{indent}{line}").unwrap();
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(abi, "{indent}{line}").unwrap();
}

fn entry(abi: &mut String, path: &str, description: &[&str]) {
    describe(abi, &[format!("{DIRECTORY}/{path}")], description);
}

fn describe(abi: &mut String, paths: &[String], description: &[&str]) {
    if !abi.is_empty() {
        abi.push('\n');
    }
    for path in paths {
        writeln!(abi, "What:\t\t{path}").unwrap();
    }
    writeln!(abi, "Date:\t\tNovember 2026").unwrap();
    writeln!(abi, "KernelVersion:\t7.3").unwrap();
    writeln!(abi, "Contact:\tThe altpipe developers").unwrap();
    writeln!(abi, "Description:").unwrap();
    for (position, text) in description.iter().enumerate() {
        if position > 0 {
            abi.push('\n');
        }
        paragraph(abi, "\t\t", text);
    }
}

fn describe_knob(abi: &mut String, knob: &Knob) {
    let path = format!("knobs/{}", knob.name);
    let mut default = String::new();
    knob.write_value(&Config::DEFAULT, &mut default).unwrap();
    match knob.values {
        Values::Choice(choices) => {
            entry(abi, &path, &[knob.doc]);
            for choice in choices {
                writeln!(abi, "\n\t\t{}:", choice.word).unwrap();
                paragraph(abi, "\t\t\t", choice.doc);
            }
            abi.push('\n');
            paragraph(abi, "\t\t", &format!("Default: {default}."));
        }
        Values::Switch | Values::Number { .. } | Values::PowerOfTwo { .. } => {
            let values = format!("Takes {}. Default: {default}.", knob.values);
            entry(abi, &path, &[knob.doc, &values]);
        }
    }
}

/// The names of the counters in `struct altpipe_stats`, with what its kernel-doc says of each.
fn counters() -> Vec<(String, String)> {
    let header = read("rust/uapi/altpipe.h");
    let doc = header
        .split_once(" * struct altpipe_stats - ")
        .expect("the struct has kernel-doc")
        .1;
    let (doc, definition) = doc.split_once("*/").expect("a comment ends");
    let (_, fields) = definition.split_once('{').expect("fields follow");
    let (fields, _) = fields.split_once('}').expect("a struct ends");

    let said = |name: &str| {
        let mark = format!(" * @{name}: ");
        let (_, text) = doc
            .split_once(&mark)
            .unwrap_or_else(|| panic!("no doc of {name}"));
        let text = text.split_once("\n * @").map_or(text, |(text, _)| text);
        text.replace("\n *", " ")
    };
    fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("__u64"))
        .map(|field| field.trim().trim_end_matches(';').to_string())
        .map(|name| (name.clone(), said(&name)))
        .collect()
}

/// Makes a sentence of a kernel-doc line.
fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut letters = text.chars();
    let first = letters.next().expect("some text");
    format!("{}{}.", first.to_uppercase(), letters.as_str())
}

fn text() -> String {
    let mut abi = String::new();
    entry(
        &mut abi,
        "preset",
        &[
            "Sets all knobs at once. Shows the names of all presets, in brackets each whose knobs are \
             those of now: several or none may be. Takes a name, then any knob=value, separated by \
             commas; without a name, the knobs that are not named stay as they are. Anything else \
             is refused with EINVAL and changes nothing.",
            "A preset bears the name of the first release of Linux that behaved so, by approximation. \
             Each describes what changed since the one before it.",
        ],
    );
    for preset in PRESETS {
        writeln!(abi, "\n\t\t{}:", preset.name).unwrap();
        paragraph(&mut abi, "\t\t\t", preset.doc);
    }
    entry(
        &mut abi,
        "knobs/",
        &[
            "How pipes behave that are made through /dev/altpipe from now on, one knob a file. A pipe \
             takes a copy when it is made: a change acts on later pipes, and a pipe that is created \
             with a config of its own takes from here what that config does not name.",
            "A knob with named values shows all of them, the active one in brackets. Others show a \
             number. Each takes one value, written as it is shown and without brackets. Anything \
             else is refused with EINVAL and changes nothing.",
        ],
    );
    for knob in KNOBS {
        describe_knob(&mut abi, knob);
    }
    entry(
        &mut abi,
        "stats/",
        &[
            "What all pipes made through /dev/altpipe have counted, those that are gone included, \
             since the module was loaded or the counters were reset. ALTPIPE_IOC_GET_STATS gives \
             the counters of one pipe.",
        ],
    );
    for (name, said) in counters() {
        entry(&mut abi, &format!("stats/{name}"), &[&sentence(&said)]);
    }
    entry(
        &mut abi,
        "stats/reset",
        &[
            "Takes 1, after which all counters count from zero again. Anything else is refused with \
             EINVAL. Pipes go on counting as before: what ALTPIPE_IOC_GET_STATS says does not change.",
        ],
    );
    abi
}

/// The files of FIFO devices: most mean what the control device's of the same name do.
fn fifo_text() -> String {
    let mut abi = String::new();
    let path = |file: &str| format!("{FIFO_DIRECTORY}/{file}");
    let knobs: Vec<_> = KNOBS
        .iter()
        .filter(|knob| knob.name != OMITTED)
        .map(|knob| path(&format!("knobs/{}", knob.name)))
        .collect();
    let stats: Vec<_> = counters()
        .into_iter()
        .map(|(name, _)| path(&format!("stats/{name}")))
        .collect();

    describe(
        &mut abi,
        &[path("")],
        &[
            "A FIFO device, of which the module's parameter devices makes as many as it says.              /dev/altpipe<N> is opened, read and written as fifo(7) says, and its pipe behaves as              the files below tell.",
        ],
    );
    describe(
        &mut abi,
        &[path("preset")],
        &[&format!(
            "Shows and sets all knobs of this device at once, as {DIRECTORY}/preset does for pipes \
             to be created. A change acts as that of each knob does."
        )],
    );
    describe(
        &mut abi,
        &knobs,
        &[
            &format!(
                "How the device's pipe behaves. {DIRECTORY}/knobs describes each, its values and \
                 its default. These are the device's own: neither another device nor the control \
                 device shares them, and closing the device leaves them as they are."
            ),
            "A change acts on the live pipe at once, and wakes all who sleep in it, so that they go on              by the new rule. But nowait acts on later opens, and capacity and min_def_buffers on              the next open after a last close. There is no block_size, since fstat on an open              device tells of the device's node. times goes to that node, too.",
        ],
    );
    describe(
        &mut abi,
        &stats,
        &[&format!(
            "What the device's pipe has counted since the module was loaded or the counters were \
             reset, over all its opens. {DIRECTORY}/stats describes each. pipes_created is 1, or 0 \
             after a reset, since a device has one pipe."
        )],
    );
    describe(
        &mut abi,
        &[path("stats/reset")],
        &[
            "Takes 1, after which the device's counters count from zero again. Anything else is              refused with EINVAL. What ALTPIPE_IOC_GET_STATS says does not change.",
        ],
    );
    abi
}

fn assert_says(path: &str, text: &str) {
    if std::env::var_os("ALTPIPE_WRITE_ABI").is_some() {
        std::fs::write(file(path), text).unwrap();
    }
    assert!(
        read(path) == text,
        "{path} is not what the code says; write it by\n\
         ALTPIPE_WRITE_ABI=1 cargo test -p altpipe-core --test abi"
    );
}

#[test]
fn the_abi_text_says_what_the_code_does() {
    assert_says(
        "Documentation/ABI/testing/sysfs-class-misc-altpipe",
        &text(),
    );
}

#[test]
fn the_abi_text_of_fifo_devices_says_what_the_code_does() {
    assert!(read("rust/device/fifo.rs").contains(&format!("&[\"{OMITTED}\"]")));
    assert_says(
        "Documentation/ABI/testing/sysfs-class-altpipe",
        &fifo_text(),
    );
}

#[test]
fn the_module_shows_the_counters_of_the_user_abi() {
    let source = read("rust/stats.rs");
    let (_, rows) = source
        .split_once("\ncounters! {\n")
        .expect("a table of counters");
    let (rows, _) = rows.split_once("\n}\n").expect("the table ends");
    let shown: Vec<_> = rows
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("///"))
        .map(|line| line.trim_end_matches(',').to_string())
        .collect();
    let told: Vec<_> = counters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(shown, told);
}
