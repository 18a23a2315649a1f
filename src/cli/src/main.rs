//! The `krafla` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    krafla::main_with(|_| {})
}
