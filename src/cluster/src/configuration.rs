//! The configuration file: read at the start, and again when it changes.
//!
//! A mounted ConfigMap changes by a swapped link, which file notifications see in many ways or not at all; looking
//! every second is simpler and surer.

use std::path::{Path, PathBuf};
use std::time::Duration;

use krafla_engine::Input;
use tokio::time::sleep;
use tracing::warn;

use crate::inbox::Inbox;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A configuration is a few kilobytes.
const MOST_BYTES: u64 = 1 << 20;

/// Reads the file.
pub(crate) async fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    let size = tokio::fs::metadata(path).await.map_err(|error| format!("{name}: cannot be read: {error}"))?.len();
    if size > MOST_BYTES {
        return Err(format!("{name}: larger than the {} MiB that are read; is this the right file?", MOST_BYTES >> 20));
    }
    tokio::fs::read_to_string(path).await.map_err(|error| format!("{name}: cannot be read: {error}"))
}

/// Tells the engine of each new content, for ever, in the words of `make`.
pub(crate) async fn follow(
    path: PathBuf,
    mut known: Option<String>,
    inbox: Inbox,
    make: impl Fn(&Path, String) -> Input + Send,
) {
    let mut failed = false;
    loop {
        match read(&path).await {
            Ok(text) => {
                failed = false;
                if known.as_ref() != Some(&text) {
                    known = Some(text.clone());
                    inbox.input(make(&path, text)).await;
                }
            }
            Err(why) => {
                if !std::mem::replace(&mut failed, true) {
                    warn!("{why}; the last good configuration stays");
                }
            }
        }
        sleep(LOOK_EVERY).await;
    }
}
