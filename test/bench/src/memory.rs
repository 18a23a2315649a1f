//! How much memory a process has held, and what a case takes: in a process of its own, which holds nothing else.

use std::process::Command;

/// The word by which this program measures a case's memory and nothing else.
pub const WORD: &str = "memory-of:";

/// The most memory that a process, or `self`, has held, in bytes; 0 where the system does not say.
pub fn peak_bytes(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Runs a case in another process, and answers the most memory that it held, in bytes.
pub fn of_case(case: &str, percent: u32) -> u64 {
    let Ok(program) = std::env::current_exe() else { return 0 };
    let mut command = Command::new(program);
    let output = command.arg(format!("{WORD}{case}")).arg("--percent").arg(percent.to_string()).output();
    output.ok().and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse().ok()).unwrap_or(0)
}
