//! The `krafla` binary.

use std::process::ExitCode;

/// Reading what the API server sends is mostly allocating and freeing: with the system's allocator a quarter of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    krafla::main_with(|_| {})
}
