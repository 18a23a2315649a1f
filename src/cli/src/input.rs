//! Files and standard input as text, with limits, and with messages that say what to do.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Reads a file of at most `most` bytes; `-` is standard input.
pub(crate) fn text(path: &Path, most: u64) -> anyhow::Result<String> {
    let name = path.display();
    let mut bytes = Vec::new();
    // One byte more than may be: then it is too long, however long it is.
    let read = if path == Path::new("-") {
        std::io::stdin().take(most + 1).read_to_end(&mut bytes)
    } else {
        if path.is_dir() {
            bail!("{name}: is a folder; name a file in it");
        }
        File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("{name}: cannot be read"))?;
    if bytes.len() as u64 > most {
        bail!("{name}: larger than the {} MiB that are read; is this the right file?", most >> 20);
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        anyhow::anyhow!("{name}:{}: is not text in UTF-8; if it is compressed, unpack it first", line + 1)
    })
}

/// The files at `path`: itself, or those with one of these extensions in the folder and in those in it, in name order.
pub(crate) fn files(path: &Path, extensions: &[&str]) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    collect(path, extensions, &mut found)?;
    if found.is_empty() {
        bail!("{}: no file in it ends in .{}", path.display(), extensions.join(" or ."));
    }
    Ok(found)
}

fn collect(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .with_context(|| format!("{}: cannot be read", folder.display()))?;
    entries.sort();
    for entry in entries {
        // A link may lead back up; following files is enough.
        if entry.is_dir() {
            if !entry.is_symlink() {
                collect(&entry, extensions, found)?;
            }
        } else if entry.extension().and_then(|ext| ext.to_str()).is_some_and(|ext| extensions.contains(&ext)) {
            found.push(entry);
        }
    }
    Ok(())
}
