// SPDX-License-Identifier: GPL-2.0
//! Reading the kernel's log: what in it means that the kernel found a fault.

/// Messages of the kernel's checkers, by how a message begins. Anchored there
/// because harmless boot messages have the same words inside.
const BEGINS: &[&str] = &[
    "BUG:",
    "BUG ",
    "WARNING:",
    "INFO: possible",
    "INFO: task ",
    "INFO: rcu",
    "INFO: trying to register non-static key",
    "rcu: INFO:",
    "kernel BUG at",
    "Oops:",
    "general protection fault",
    "Kernel panic",
    "Internal error:",
    "UBSAN:",
    "ODEBUG:",
    "list_add corruption",
    "list_del corruption",
    "rust_kernel: panicked",
    "watchdog: BUG:",
    "refcount_t:",
];

/// Words that only ever come from a checker, wherever they stand.
const CONTAINS: &[&str] = &[
    "KASAN:",
    "KCSAN:",
    "inconsistent lock state",
    "bad unlock balance",
    "suspicious RCU usage",
    "sleeping function called from invalid context",
    "unreferenced object",
    "new suspected memory leaks",
];

/// The lines of a console log in which the kernel reports a fault.
pub fn reports(log: &str) -> Vec<&str> {
    log.lines()
        .filter(|line| {
            let text = message(line);
            BEGINS.iter().any(|begin| text.starts_with(begin))
                || CONTAINS.iter().any(|word| text.contains(word))
        })
        .collect()
}

/// The messages of a log without what printk puts in front, indented as they were.
pub fn messages(log: &str) -> String {
    let mut text = String::new();
    for line in log.lines() {
        let message = body(line);
        text.push_str(message.strip_prefix(' ').unwrap_or(message));
        text.push('\n');
    }
    text
}

/// A line without the time stamp and the task that printk puts in front.
fn message(line: &str) -> &str {
    body(line).trim()
}

/// The same, with the space between that and the message.
fn body(line: &str) -> &str {
    let mut text = line;
    while let Some((stamp, rest)) = text
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        let stamp = stamp.trim();
        let is_time = stamp
            .split_once('.')
            .is_some_and(|(a, b)| is_number(a) && is_number(b));
        let is_caller = stamp.strip_prefix(['T', 'C']).is_some_and(is_number);
        if !is_time && !is_caller {
            break;
        }
        text = rest;
    }
    text
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_all_checkers_are_found() {
        for line in [
            "[    3.141592] BUG: kernel NULL pointer dereference, address: 0000000000000000",
            "[    3.141592][   T12] BUG: KASAN: slab-use-after-free in altpipe_read+0x1/0x2",
            "[    3.1] WARNING: CPU: 1 PID: 7 at fs/pipe.c:100 pipe_release+0x1/0x2",
            "[    3.1] WARNING: possible circular locking dependency detected",
            "[    3.1] WARNING: inconsistent lock state",
            "[    3.1] INFO: possible recursive locking detected",
            "[  243.1] INFO: task cat:77 blocked for more than 120 seconds.",
            "[    3.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "[    3.1] Oops: 0002 [#1] SMP PTI",
            "[    3.1] Oops: general protection fault, probably for non-canonical address: 0000 [#1]",
            "[    3.1] Kernel panic - not syncing: Fatal exception",
            "[    3.1] kernel BUG at mm/slub.c:42!",
            "[    3.1] rust_kernel: panicked at rust/kernel/x.rs:1:2:",
            "[    3.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [cat:12]",
            "unreferenced object 0xffff888003d1e000 (size 1024):",
            "[    3.1] kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
        ] {
            assert_eq!(reports(line), [line]);
        }
    }

    #[test]
    fn messages_keep_their_own_indentation() {
        assert_eq!(
            messages("[    1.5] KTAP version 1\n[    1.6][   T12]     ok 1 a\nplain\n"),
            "KTAP version 1\n    ok 1 a\nplain\n"
        );
    }

    #[test]
    fn an_ordinary_boot_has_none() {
        for line in [
            "[    0.000000] [Firmware Bug]: TSC doesn't count with P0 frequency!",
            "[    0.100000] RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable to RETBleed attacks",
            "[    0.100000] Warning: unable to open an initial console.",
            "[    0.100000] altpipe: loading out-of-tree module taints kernel.",
            "[    0.100000] tsc: Marking TSC unstable due to clocksource watchdog",
            "INFO: this line is a program's own",
        ] {
            assert!(reports(line).is_empty(), "{line}");
        }
    }
}
