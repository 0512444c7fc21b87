// SPDX-License-Identifier: GPL-2.0
//! What executes this machine's instructions: it decides which figures can be trusted.

/// QEMU's emulator, with a clock of its own.
pub const TCG: &str = "tcg";
/// QEMU's emulator, whose clock counts instructions.
pub const ICOUNT: &str = "icount";
/// A hypervisor that left no name.
const UNKNOWN: &str = "unknown hypervisor";

/// `metal`, `uml`, `kvm`, `tcg`, `icount`, or another hypervisor's name.
pub fn detect() -> &'static str {
    if std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("User Mode Linux")) {
        return "uml";
    }
    match vendor() {
        None => "metal",
        Some(TCG) if counts_instructions() => ICOUNT,
        Some(vendor) => vendor,
    }
}

/// The hypervisor's name by its CPUID signature.
#[cfg(target_arch = "x86_64")]
fn vendor() -> Option<&'static str> {
    use std::arch::x86_64::__cpuid;
    // A safe function from Rust 1.94 on, an unsafe one before.
    #[allow(unused_unsafe)]
    // SAFETY: every x86-64 CPU has CPUID; a leaf that it lacks reads as another, which the first test rules out.
    let (features, hypervisor) = unsafe { (__cpuid(1), __cpuid(0x4000_0000)) };
    if features.ecx & (1 << 31) == 0 {
        return None;
    }
    let signature: Vec<u8> = [hypervisor.ebx, hypervisor.ecx, hypervisor.edx]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    Some(match signature.as_slice() {
        b"KVMKVMKVM\0\0\0" => "kvm",
        b"TCGTCGTCGTCG" => TCG,
        b"Microsoft Hv" => "hyper-v",
        b"VMwareVMware" => "vmware",
        b"XenVMMXenVMM" => "xen",
        b"VBoxVBoxVBox" => "virtualbox",
        b"bhyve bhyve " => "bhyve",
        _ => UNKNOWN,
    })
}

/// The hypervisor's name by the firmware's words, where there is no CPUID.
#[cfg(not(target_arch = "x86_64"))]
fn vendor() -> Option<&'static str> {
    let vendor = crate::environment::line("/sys/class/dmi/id/sys_vendor")?;
    vendor.contains("QEMU").then_some(UNKNOWN)
}

/// Whether a loop of a known number of instructions takes that many nanoseconds, times a power of two (icount's
/// shift), in its fastest tries. Ticks and other tasks make some tries longer; none can be shorter. A clock that
/// runs by itself neither repeats a minimum to 0.1% nor has it fall on a power of two within 0.5%.
#[cfg(target_arch = "x86_64")]
fn counts_instructions() -> bool {
    const TURNS: u64 = 100_000;
    let one_try = || {
        let begin = crate::usage::now_ns().ok()?;
        // SAFETY: counts a register of its own down to zero and touches nothing else.
        unsafe {
            std::arch::asm!(
                "2: dec {turns}",
                "jnz 2b",
                turns = inout(reg) TURNS => _,
                options(nomem, nostack)
            );
        }
        Some((crate::usage::now_ns().ok()? - begin) as f64 / (2 * TURNS) as f64)
    };
    let mut tries: Vec<f64> = (0..16).filter_map(|_| one_try()).collect();
    tries.sort_by(f64::total_cmp);
    let [best, _, third, ..] = tries[..] else {
        return false;
    };
    let shift = best.log2().round();
    (0.0..=10.0).contains(&shift)
        && third / best < 1.001
        && (best / shift.exp2() - 1.0).abs() < 0.005
}

#[cfg(not(target_arch = "x86_64"))]
fn counts_instructions() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_stable_answer() {
        let first = detect();
        assert!(!first.is_empty());
        assert_eq!(first, detect());
    }
}
