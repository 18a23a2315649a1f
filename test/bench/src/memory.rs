//! How much memory a process holds, and what a case takes: in a process of its own, which holds nothing else.

use std::process::{Command, Stdio};

/// The word by which this program measures a case's memory and nothing else.
pub const WORD: &str = "memory-of:";

/// The most memory that a process, or `self`, has held, in bytes; 0 where the system does not say.
pub fn peak_bytes(pid: &str) -> u64 {
    line_of_status(pid, "VmHWM:")
}

/// What this process holds now, in bytes; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    line_of_status("self", "VmRSS:")
}

fn line_of_status(pid: &str, key: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Runs a case in another process, and answers what it says.
///
/// # Panics
///
/// If it says no number: that keeps no budget.
pub fn of_case(case: &str, percent: u32) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(program);
    command.arg(format!("{WORD}{case}")).arg("--percent").arg(percent.to_string());
    let output = command.stderr(Stdio::inherit()).output().expect("this program can be run again");
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().unwrap_or_else(|_| panic!("{case} says no number but '{said}'"))
}
