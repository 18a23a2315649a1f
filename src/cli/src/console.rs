//! Standard output and error, either of which may close early: `krafla simulate | head` is no failure.

use std::io::{ErrorKind, Write};

use anyhow::Context;

/// Prints results. A reader that has gone away has read enough.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}

/// Tells the person at the terminal something, in a line. If nobody can hear it, there is nobody to tell.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
