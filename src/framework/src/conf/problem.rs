//! One thing that is wrong with a configuration, where it is, and what to write instead.

use std::fmt;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

/// Longest line that is shown in full; the source of a longer one is left out of the picture.
const LONGEST_SHOWN_LINE: usize = 1_000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The configuration works, but not as its author may think.
    Warning,
    /// The configuration is refused.
    Error,
}

/// What is wrong, and where. Lines and columns count from 1, columns and lengths in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in lower case and one line.
    pub message: String,
    /// The file, as the caller named it.
    pub file: String,
    /// Line in the file.
    pub line: usize,
    /// Column in that line.
    pub column: usize,
    /// How many characters from there are meant; 0 when it is a place between two.
    pub length: usize,
    /// A word or two for the place itself; may be empty.
    pub label: String,
    /// What to write instead; may have several lines.
    pub help: Option<String>,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Problem {
    /// On one line, for logs and events: `file:line:column: error: message; help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, message, file, line, column, .. } = self;
        write!(f, "{file}:{line}:{column}: {severity}: {message}")?;
        if let Some(help) = &self.help {
            // A sketch of several lines keeps its structure as `/`, which is no YAML but can be read.
            let flat: Vec<&str> = help.lines().map(str::trim).collect();
            write!(f, "; {}", flat.join(" / "))?;
        }
        Ok(())
    }
}

impl Problem {
    /// The problem with the line that it is about, as compilers show it. `source` is the text that was compiled.
    #[must_use]
    pub fn render(&self, source: &str) -> String {
        let level = match self.severity {
            Severity::Warning => Level::WARNING,
            Severity::Error => Level::ERROR,
        };
        let line = source.lines().nth(self.line.saturating_sub(1)).unwrap_or("");
        let mut group = level.primary_title(self.message.as_str()).elements(std::iter::empty::<Origin<'_>>());
        group = if line.len() > LONGEST_SHOWN_LINE {
            group.element(Origin::path(self.file.as_str()).line(self.line).char_column(self.column))
        } else {
            let start = byte_of(line, self.column.saturating_sub(1));
            let end = byte_of(line, self.column.saturating_sub(1) + self.length);
            let mut mark = AnnotationKind::Primary.span(start..end);
            if !self.label.is_empty() {
                mark = mark.label(self.label.as_str());
            }
            group.element(Snippet::source(line).path(self.file.as_str()).line_start(self.line).annotation(mark))
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        Renderer::plain().render(&[group])
    }
}

/// The byte at which character `n` of `line` begins; its end when there are fewer.
fn byte_of(line: &str, n: usize) -> usize {
    line.char_indices().nth(n).map_or(line.len(), |(byte, _)| byte)
}
