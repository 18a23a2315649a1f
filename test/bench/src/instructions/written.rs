//! The counts that were written down: a file in the repository, one line a case.

use std::collections::BTreeMap;
use std::fmt::Write;

const TOOLCHAIN: &str = "# taken with: ";

/// What is in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Written {
    /// What the counts were taken with. They depend on all of it.
    pub(super) toolchain: String,
    /// Instructions by case.
    pub(super) counts: BTreeMap<String, u64>,
}

impl Written {
    /// Reads the file's text; `Err` names the line that cannot be read.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut written = Self::default();
        for (i, line) in text.lines().enumerate() {
            if let Some(toolchain) = line.strip_prefix(TOOLCHAIN) {
                toolchain.clone_into(&mut written.toolchain);
            } else if !line.starts_with('#') && !line.is_empty() {
                let (name, count) = line.split_once('\t').unwrap_or((line, ""));
                let count = count.parse().map_err(|_| format!("line {}: no count in '{line}'", i + 1))?;
                if written.counts.insert(name.to_owned(), count).is_some() {
                    return Err(format!("line {}: '{name}' stands there twice", i + 1));
                }
            }
        }
        Ok(written)
    }

    /// The file's text.
    pub(super) fn text(&self) -> String {
        let mut text =
            "# Instructions of each case of `hack/bench instructions`; `--bless` writes them anew.\n".to_owned();
        let _ = writeln!(text, "{TOOLCHAIN}{}", self.toolchain);
        for (name, count) in &self.counts {
            let _ = writeln!(text, "{name}\t{count}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let counts = BTreeMap::from([("b".to_owned(), 7), ("a".to_owned(), u64::MAX)]);
        let written = Written { toolchain: "rustc 1, glibc 2".to_owned(), counts };
        let text = written.text();
        assert_eq!(Written::read(&text), Ok(written));
        assert!(text.ends_with("\na\t18446744073709551615\nb\t7\n"), "sorted, one line a case: {text}");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        assert_eq!(Written::read("a\t1\nb\n"), Err("line 2: no count in 'b'".to_owned()));
        assert_eq!(Written::read("a\t1\n\na\t2\n"), Err("line 3: 'a' stands there twice".to_owned()));
    }
}
