//! Counting instructions: each case runs in a process of its own under callgrind, which counts while a step that is timed
//! runs, and not while a cluster is put together.

use std::ffi::OsStr;
use std::process::Command;

/// The word by which this program runs a case and nothing else.
pub(super) const WORD: &str = "instructions-of:";
/// Counting goes on while this function runs.
const TOGGLE: &str = "--toggle-collect=*clock::timed_step*";

/// valgrind's version.
pub(super) fn version() -> Result<String, String> {
    let output = Command::new("valgrind").arg("--version").output();
    let output = output.map_err(|error| format!("valgrind cannot be run: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Instructions of a case.
pub(super) fn count(case: &str) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", TOGGLE]);
    // What the environment says must not move a count.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let output = command.arg(&program).arg(format!("{WORD}{case}")).output();
    let output = output.map_err(|error| format!("valgrind cannot be run: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{case} failed under valgrind: {}\n{said}", output.status));
    }
    match collected(&said) {
        None => Err(format!("valgrind says no count:\n{said}")),
        Some(0) => Err(format!("nothing was counted: no function is called like that of {TOGGLE}")),
        Some(count) => Ok(count),
    }
}

/// The count in what callgrind says: `==12== Collected : 34`.
fn collected(said: &str) -> Option<u64> {
    let count = said.lines().find_map(|line| line.split_once("Collected :"))?.1;
    count.trim().parse().ok()
}

/// What counts depend on beside this program's own source: the compiler, the C library, valgrind, and whether the processor
/// has what the C library chooses its copying by.
pub(super) fn toolchain(valgrind: &str) -> String {
    let libc = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let libc = libc.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let libc = if libc.is_empty() { "another C library".to_owned() } else { libc };
    #[cfg(target_arch = "x86_64")]
    let vectors = if std::arch::is_x86_feature_detected!("avx2") { "avx2" } else { "no avx2" };
    #[cfg(not(target_arch = "x86_64"))]
    let vectors = "-";
    let arch = std::env::consts::ARCH;
    format!(
        "{}, {arch}, {vectors}, {libc}, {valgrind}",
        compiler(std::env::current_exe().ok().as_deref().map(AsRef::as_ref))
    )
}

/// The compiler, as it has written itself into what it made.
fn compiler(program: Option<&OsStr>) -> String {
    const SAYS: &[u8] = b"rustc version ";
    let bytes = program.and_then(|program| std::fs::read(program).ok()).unwrap_or_default();
    let found = bytes
        .windows(SAYS.len() + 1)
        .position(|window| window.starts_with(SAYS) && window[SAYS.len()].is_ascii_digit());
    let Some(at) = found else { return "rustc of an unknown version".to_owned() };
    let version = bytes[at + SAYS.len()..].iter().copied().take_while(|byte| byte.is_ascii_graphic() || *byte == b' ');
    format!("rustc {}", String::from_utf8_lossy(&version.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        let said =
            "==7== Callgrind\n==7== Events    : Ir\n==7== Collected : 123456\n==7== \n==7== I   refs:      123,456\n";
        assert_eq!(collected(said), Some(123_456));
        assert_eq!(collected("==7== Callgrind\n"), None);
    }

    #[test]
    fn a_program_says_who_compiled_it() {
        let program = std::env::current_exe().expect("this program");
        let said = compiler(Some(program.as_ref()));
        assert!(said.starts_with("rustc 1."), "{said}");
        assert_eq!(compiler(None), "rustc of an unknown version");
    }
}
