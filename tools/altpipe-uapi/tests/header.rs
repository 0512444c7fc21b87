// SPDX-License-Identifier: MIT OR Apache-2.0
//! The crate against the header: the system's C compiler says what `altpipe.h` means, and we must agree.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

use altpipe_uapi::{ABI_VERSION, Stats, raw};

const HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rust/uapi/altpipe.h");

/// Compiles a program that prints each expression as a number, runs it, and gives the numbers back.
fn ask_the_compiler(expressions: &[String]) -> Vec<u64> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("ask.c"), folder.path().join("ask"));
    let mut text = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"{HEADER}\"\nint main(void)\n{{\n"
    );
    for expression in expressions {
        writeln!(
            text,
            "\tprintf(\"%llu\\n\", (unsigned long long)({expression}));"
        )
        .unwrap();
    }
    text.push_str("\treturn 0;\n}\n");
    std::fs::write(&source, text).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let compiled = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .args([&program, &source])
        .output()
        .expect("a C compiler is needed, as for linking; set CC if it is not called cc");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let answers = Command::new(program).output().unwrap();
    String::from_utf8(answers.stdout)
        .unwrap()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect()
}

fn compare(expected: &[(String, u64)]) {
    let expressions: Vec<_> = expected
        .iter()
        .map(|(expression, _)| expression.clone())
        .collect();
    for ((expression, ours), header) in expected.iter().zip(ask_the_compiler(&expressions)) {
        assert_eq!(*ours, header, "{expression}");
    }
}

macro_rules! field {
    ($c:literal, $rust:ty, $($field:ident),*) => {
        [$((
            format!("offsetof(struct {}, {})", $c, stringify!($field)),
            offset_of!($rust, $field) as u64,
        )),*]
    };
}

#[test]
fn structures_have_the_headers_layout() {
    let mut expected = vec![
        (
            "sizeof(struct altpipe_create)".into(),
            size_of::<raw::Create>() as u64,
        ),
        (
            "sizeof(struct altpipe_text)".into(),
            size_of::<raw::Text>() as u64,
        ),
        (
            "sizeof(struct altpipe_stats)".into(),
            size_of::<raw::Stats>() as u64,
        ),
    ];
    expected.extend(field!(
        "altpipe_create",
        raw::Create,
        size,
        flags,
        fd,
        config,
        config_len,
        pad
    ));
    expected.extend(field!("altpipe_text", raw::Text, buf, len, pad));
    expected.extend(field!("altpipe_stats", raw::Stats, size, pad));
    let counters = offset_of!(raw::Stats, counters) as u64;
    for (place, name) in (0u64..).zip(Stats::NAMES) {
        let expression = format!("offsetof(struct altpipe_stats, {name})");
        expected.push((expression, counters + 8 * place));
    }
    compare(&expected);
}

#[test]
fn calls_have_the_headers_numbers() {
    // The sign of ioctl's request differs between C libraries; the 32 bits the kernel sees do not.
    let number = |call: libc::Ioctl| u64::from(call as u32);
    compare(&[
        (
            "(unsigned int)ALTPIPE_IOC_VERSION".into(),
            number(raw::VERSION),
        ),
        (
            "(unsigned int)ALTPIPE_IOC_CREATE".into(),
            number(raw::CREATE),
        ),
        (
            "(unsigned int)ALTPIPE_IOC_GET_SIZE".into(),
            number(raw::GET_SIZE),
        ),
        (
            "(unsigned int)ALTPIPE_IOC_SET_SIZE".into(),
            number(raw::SET_SIZE),
        ),
        (
            "(unsigned int)ALTPIPE_IOC_GET_CONFIG".into(),
            number(raw::GET_CONFIG),
        ),
        (
            "(unsigned int)ALTPIPE_IOC_GET_STATS".into(),
            number(raw::GET_STATS),
        ),
        ("ALTPIPE_ABI_VERSION".into(), u64::from(ABI_VERSION)),
    ]);
}
