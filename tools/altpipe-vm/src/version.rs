// SPDX-License-Identifier: GPL-2.0
//! The order of Debian's version numbers (deb-version(7)).

use std::cmp::Ordering;

/// Compares two versions as dpkg does: epoch, upstream version, revision.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a_epoch, a_upstream, a_revision) = split(a);
    let (b_epoch, b_upstream, b_revision) = split(b);
    a_epoch
        .cmp(&b_epoch)
        .then_with(|| compare_part(a_upstream, b_upstream))
        .then_with(|| compare_part(a_revision, b_revision))
}

/// The upstream part of a version: `7.3.4` of `7.3.4-1~bpo13+1`.
pub fn upstream(version: &str) -> &str {
    split(version).1
}

fn split(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch.parse().unwrap_or(0), upstream, revision)
}

/// Compares runs of non-digits and runs of digits in turn.
fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (a_text, a_rest) = take(a, |c| !c.is_ascii_digit());
        let (b_text, b_rest) = take(b, |c| !c.is_ascii_digit());
        let (a_digits, a_next) = take(a_rest, |c| c.is_ascii_digit());
        let (b_digits, b_next) = take(b_rest, |c| c.is_ascii_digit());
        let order = compare_text(a_text, b_text).then_with(|| compare_number(a_digits, b_digits));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (a_next, b_next);
    }
    Ordering::Equal
}

fn take(s: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    s.split_at(s.find(|c| !wanted(c)).unwrap_or(s.len()))
}

/// `~` sorts before the end, the end before letters, letters before the rest.
fn compare_text(a: &str, b: &str) -> Ordering {
    let weight = |c: Option<u8>| match c {
        Some(b'~') => -1,
        None => 0,
        Some(c) if c.is_ascii_alphabetic() => i32::from(c),
        Some(c) => i32::from(c) + 256,
    };
    let (a, b) = (a.as_bytes(), b.as_bytes());
    (0..a.len().max(b.len()))
        .map(|i| weight(a.get(i).copied()).cmp(&weight(b.get(i).copied())))
        .find(|order| *order != Ordering::Equal)
        .unwrap_or(Ordering::Equal)
}

/// Compares numbers of any length: without leading zeros, the longer is larger.
fn compare_number(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_dpkg_sorts_them() {
        let ascending = [
            "7.3~rc4-1",
            "7.3-1~bpo13+1",
            "7.3-1",
            "7.3.4-1~bpo13+1",
            "7.3.4-1",
            "7.3.4-1+b1",
            "7.3.4-2",
            "7.3.10-1",
            "7.3.10a-1",
            "7.3.10+1-1",
            "7.10-1",
            "1:1.0-1",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} against {b}");
            }
        }
    }

    #[test]
    fn leading_zeros_do_not_count() {
        assert_eq!(compare("1.010", "1.10"), Ordering::Equal);
    }

    #[test]
    fn upstream_drops_epoch_and_revision() {
        assert_eq!(upstream("7.3.4-1~bpo13+1"), "7.3.4");
        assert_eq!(upstream("1:7.3-rc1-2"), "7.3-rc1");
    }
}
