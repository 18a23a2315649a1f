//! Ports that nobody else takes, also while the server that has one is down for a moment.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below what Linux and macOS give to outgoing connections, any of which could have the port when a server wants it back.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port of 127.0.0.1, claimed as long as this lives.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) number: u16,
    /// A locked file, which tells other sandboxes of this machine. The system unlocks it when a process dies.
    _claim: Option<File>,
}

impl Port {
    /// A port of the caller's choice.
    pub(crate) fn fixed(number: u16) -> Self {
        Self { number, _claim: None }
    }

    /// A free one.
    pub(crate) fn free() -> io::Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let claims = std::env::temp_dir().join("krafla-ports");
        // Made by another user, it may be closed to us; then the look at the port itself has to do.
        let claims = std::fs::create_dir_all(&claims).is_ok().then_some(claims);
        // Processes start apart from each other, so that they seldom want the same one.
        let start = std::process::id().wrapping_mul(97);
        for _ in 0..COUNT {
            let step = start.wrapping_add(u32::from(NEXT.fetch_add(1, Ordering::Relaxed)));
            let number = FIRST + u16::try_from(step % u32::from(COUNT)).unwrap_or_default();
            let Ok(claim) = claim(claims.as_ref(), number) else { continue };
            if TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Ok(Self { number, _claim: claim });
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no port from {FIRST} to {} is free", FIRST + COUNT - 1)))
    }
}

/// The lock of a port; none where no file can be had; an error where another sandbox holds it.
fn claim(folder: Option<&PathBuf>, number: u16) -> Result<Option<File>, std::fs::TryLockError> {
    let Some(Ok(file)) = folder.map(|folder| File::create(folder.join(number.to_string()))) else { return Ok(None) };
    file.try_lock().map(|()| Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_port_is_not_given_twice() {
        let ports: Vec<_> = (0..50).map(|_| Port::free().expect("a port")).collect();
        let mut numbers: Vec<_> = ports.iter().map(|port| port.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
        let claims = std::env::temp_dir().join("krafla-ports");
        assert!(claim(Some(&claims), numbers[0]).is_err(), "another sandbox is told that it is taken");
    }
}
