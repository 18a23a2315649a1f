//! A text file line by line, within limits.
//!
//! Traces come from strangers: a file may be a pointer, an archive, or one endless line. What is refused is refused
//! here, before any importer sees it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::error::LoadError;

/// What is read of a file at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of the file.
    pub(crate) file_bytes: u64,
    /// Lines of the file, the header counted.
    pub(crate) lines: u64,
    /// Bytes of a line, without its end.
    pub(crate) line_bytes: u64,
}

impl Limits {
    /// The largest public job list has 3.4 million lines and 0.3 GB; three times that is room enough, and still fits into
    /// the memory of a laptop.
    pub(crate) const STANDARD: Self = Self { file_bytes: 1 << 30, lines: 10_000_000, line_bytes: 1 << 20 };
}

/// One line, or why it is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// The text without its end.
    Text(&'a str),
    /// The line cannot be used; the message says why.
    Bad(String),
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    limits: Limits,
    number: u64,
    n_bytes: u64,
    buffer: Vec<u8>,
}

impl Lines {
    /// Opens a file with the standard limits. Refuses what cannot be text.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        Self::open_within(path, Limits::STANDARD)
    }

    /// Opens a file with limits of one's own.
    pub(crate) fn open_within(path: &Path, limits: Limits) -> Result<Self, LoadError> {
        let io = |source| LoadError::Io { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() > limits.file_bytes {
            return Err(LoadError::TooLarge { path: path.to_path_buf(), limit: limits.file_bytes });
        }
        let mut reader = BufReader::new(file);
        let start = reader.fill_buf().map_err(io)?;
        if let Some(what) = not_text(start) {
            return Err(LoadError::NotATrace { path: path.to_path_buf(), what: what.into() });
        }
        if start.starts_with(b"\xef\xbb\xbf") {
            reader.consume(3);
        }
        Ok(Self { path: path.to_path_buf(), reader, limits, number: 0, n_bytes: 0, buffer: Vec::new() })
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The next line with its number, from 1; `None` at the end.
    pub(crate) fn next_line(&mut self) -> Result<Option<(u64, Line<'_>)>, LoadError> {
        let io = |source| LoadError::Io { path: self.path.clone(), source };
        self.buffer.clear();
        let room = self.limits.line_bytes + 2; // carriage return and line feed
        let read = (&mut self.reader).take(room).read_until(b'\n', &mut self.buffer).map_err(io)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.n_bytes += u64::try_from(read).unwrap_or(u64::MAX);
        if self.number > self.limits.lines {
            return Err(LoadError::TooManyLines { path: self.path.clone(), limit: self.limits.lines });
        }
        let ended = self.buffer.last() == Some(&b'\n');
        while matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
            self.buffer.pop();
        }
        let too_long = u64::try_from(self.buffer.len()).unwrap_or(u64::MAX) > self.limits.line_bytes;
        if too_long && !ended {
            self.n_bytes += skip_line(&mut self.reader).map_err(io)?;
        }
        if self.n_bytes > self.limits.file_bytes {
            return Err(LoadError::TooLarge { path: self.path.clone(), limit: self.limits.file_bytes });
        }
        let line = match std::str::from_utf8(&self.buffer) {
            _ if too_long => Line::Bad(format!("longer than {} bytes", self.limits.line_bytes)),
            Ok(text) => Line::Text(text),
            Err(_) => Line::Bad("not UTF-8 text".into()),
        };
        Ok(Some((self.number, line)))
    }

    /// The rest of the file as one text.
    pub(crate) fn into_text(mut self) -> Result<String, LoadError> {
        let mut text = String::new();
        let room = self.limits.file_bytes + 1;
        (&mut self.reader)
            .take(room)
            .read_to_string(&mut text)
            .map_err(|source| LoadError::Io { path: self.path.clone(), source })?;
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > self.limits.file_bytes {
            return Err(LoadError::TooLarge { path: self.path, limit: self.limits.file_bytes });
        }
        Ok(text)
    }
}

/// Drops what is left of a line; returns the number of bytes.
fn skip_line(reader: &mut BufReader<File>) -> std::io::Result<u64> {
    let mut n_bytes = 0;
    loop {
        let chunk = reader.fill_buf()?;
        let end = chunk.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(chunk.len(), |at| at + 1);
        let done = end.is_some() || chunk.is_empty();
        reader.consume(used);
        n_bytes += u64::try_from(used).unwrap_or(u64::MAX);
        if done {
            return Ok(n_bytes);
        }
    }
}

/// What the first bytes say the file is, if not text.
fn not_text(start: &[u8]) -> Option<&'static str> {
    const ARCHIVES: [&[u8]; 5] = [b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"];
    if start.is_empty() {
        return Some("empty");
    }
    if start.starts_with(b"version https://git-lfs") {
        return Some("a Git LFS pointer, not the data; fetch the file itself (git lfs pull)");
    }
    if start.starts_with(b"PAR1") {
        return Some("a Parquet file; convert it to CSV");
    }
    ARCHIVES.iter().any(|magic| start.starts_with(magic)).then_some("compressed; unpack it first")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    const SMALL: Limits = Limits { file_bytes: 100, lines: 4, line_bytes: 10 };

    fn read(text: &[u8]) -> Result<Vec<String>, LoadError> {
        let folder = testkit::folder(&[("f", text)]);
        let mut lines = Lines::open_within(&folder.path().join("f"), SMALL)?;
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next_line()? {
            found.push(format!("{number} {line:?}"));
        }
        Ok(found)
    }

    #[test]
    fn a_long_line_and_a_binary_line_are_bad_and_the_rest_is_read() {
        let lines = read(b"\xef\xbb\xbfone\r\n12345678901\n\xff\xfe\nlast").expect("reads");
        assert_eq!(
            lines,
            ["1 Text(\"one\")", "2 Bad(\"longer than 10 bytes\")", "3 Bad(\"not UTF-8 text\")", "4 Text(\"last\")"]
        );
        let lines = read(b"123456789012345678901234567890\n1234567890\r\n").expect("reads");
        assert_eq!(lines[1], "2 Text(\"1234567890\")");
    }

    #[test]
    fn a_file_over_its_limits_is_refused() {
        assert!(matches!(read(&[b'\n'; 5]), Err(LoadError::TooManyLines { limit: 4, .. })));
        assert!(matches!(read(&[b'x'; 101]), Err(LoadError::TooLarge { limit: 100, .. })));
    }

    #[test]
    fn a_file_that_is_no_text_is_refused_with_what_to_do() {
        let error = read(b"version https://git-lfs.github.com/spec/v1\n").expect_err("a pointer");
        assert!(error.to_string().ends_with("a Git LFS pointer, not the data; fetch the file itself (git lfs pull)"));
        assert!(read(b"\x1f\x8b\x08").expect_err("gzip").to_string().ends_with("compressed; unpack it first"));
        assert!(read(b"").expect_err("nothing").to_string().ends_with("f: empty"));
        let missing = Lines::open(Path::new("no such file")).expect_err("missing");
        assert_eq!(missing.to_string(), "no such file: cannot be read");
    }
}
