//! All commands of Krafla, with the plugins of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    krafla::main_with(krafla_out_of_tree::extend)
}
