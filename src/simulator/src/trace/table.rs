//! A CSV file by the names of its columns.
//!
//! Lines are split here rather than by a CSV reader over the whole file, so that a stray quote spoils one line and not
//! the rest of the file. The `csv` crate reads the few lines that have quotes.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::path::Path;

use super::error::LoadError;
use super::fields;
use super::lines::{Line, Lines};
use super::problems::Problems;

/// A column of one table; meaningless in another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column(usize);

/// An open table whose header has been read.
#[derive(Debug)]
pub(crate) struct Table {
    lines: Lines,
    header: Vec<String>,
}

/// One line of a table.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    /// The line in the file, from 1.
    pub(crate) line: u64,
    header: &'a [String],
    fields: Vec<Cow<'a, str>>,
}

impl Table {
    /// Opens a file whose first line names the columns.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let mut lines = Lines::open(path)?;
        let not_a_trace = |what: String| LoadError::NotATrace { path: path.to_path_buf(), what };
        let names = match lines.next_line()? {
            Some((_, Line::Text(text))) => split(text).map_err(not_a_trace)?,
            Some((_, Line::Bad(message))) => return Err(not_a_trace(format!("the header is {message}"))),
            None => return Err(not_a_trace("empty".into())),
        };
        let header = names.iter().map(|name| name.trim().to_owned()).collect();
        Ok(Self { lines, header })
    }

    /// The names of the columns.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// The column with the first of these names that there is.
    pub(crate) fn optional(&self, names: &[&str]) -> Option<Column> {
        let find = |name: &&str| self.header.iter().position(|column| column.eq_ignore_ascii_case(name));
        names.iter().find_map(find).map(Column)
    }

    /// As `optional`; that there is none is an error that lists the columns found.
    pub(crate) fn required(&self, names: &[&'static str]) -> Result<Column, LoadError> {
        self.optional(names).ok_or_else(|| LoadError::NoColumn {
            path: self.lines.path().to_path_buf(),
            column: names.first().copied().unwrap_or_default(),
            aliases: match names {
                [] | [_] => String::new(),
                [_, others @ ..] => format!(" (or {})", others.join(", ")),
            },
            found: fields::cut_to(&self.header.join(", "), 400),
        })
    }

    /// Hands each line to `take`. A line that cannot be split, or that `take` refuses, becomes a problem.
    pub(crate) fn each(
        mut self,
        problems: &mut Problems,
        mut take: impl FnMut(&Row<'_>) -> Result<(), String>,
    ) -> Result<(), LoadError> {
        let path = self.lines.path().to_path_buf();
        while let Some((line, text)) = self.lines.next_line()? {
            let outcome = match text {
                Line::Text(text) if text.trim().is_empty() => Ok(()),
                Line::Text(text) => Row::read(line, &self.header, text).and_then(|row| take(&row)),
                Line::Bad(message) => Err(message),
            };
            if let Err(message) = outcome {
                problems.at(&path, line, message);
            }
        }
        Ok(())
    }
}

impl<'a> Row<'a> {
    fn read(line: u64, header: &'a [String], text: &'a str) -> Result<Self, String> {
        let fields = split(text)?;
        if fields.len() != header.len() {
            return Err(format!("{} fields where the header has {}", fields.len(), header.len()));
        }
        Ok(Self { line, header, fields })
    }

    /// The field without surrounding space; empty if the trace marks it as having no value.
    pub(crate) fn text(&self, column: Column) -> &str {
        let text = self.fields[column.0].trim();
        if fields::is_missing(text) { "" } else { text }
    }

    /// As `text`, for a column that may be absent; `None` also for no value.
    pub(crate) fn text_in(&self, column: Option<Column>) -> Option<&str> {
        column.map(|column| self.text(column)).filter(|text| !text.is_empty())
    }

    /// A whole number.
    pub(crate) fn integer(&self, column: Column, range: RangeInclusive<i64>) -> Result<i64, String> {
        fields::integer(self.text(column), range).map_err(|message| self.name(column, &message))
    }

    /// Thousandths of a decimal number.
    pub(crate) fn milli(&self, column: Column) -> Result<i64, String> {
        fields::milli(self.text(column)).map_err(|message| self.name(column, &message))
    }

    /// Seconds, as milliseconds.
    pub(crate) fn seconds(&self, column: Column) -> Result<i64, String> {
        fields::seconds(self.text(column)).map_err(|message| self.name(column, &message))
    }

    /// A point in time, in milliseconds; see [`fields::moment`].
    pub(crate) fn moment(&self, column: Column) -> Result<i64, String> {
        fields::moment(self.text(column)).map_err(|message| self.name(column, &message))
    }

    /// As `moment`, for a column that may be absent or without a value.
    pub(crate) fn moment_in(&self, column: Option<Column>) -> Result<Option<i64>, String> {
        match column {
            Some(column) if !self.text(column).is_empty() => self.moment(column).map(Some),
            _ => Ok(None),
        }
    }

    fn name(&self, column: Column, message: &str) -> String {
        format!("{}: {message}", self.header[column.0])
    }
}

/// Splits one line into its fields.
fn split(text: &str) -> Result<Vec<Cow<'_, str>>, String> {
    if !text.contains('"') {
        return Ok(text.split(',').map(Cow::Borrowed).collect());
    }
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let mut record = csv::StringRecord::new();
    reader.read_record(&mut record).map_err(|error| error.to_string())?;
    Ok(record.iter().map(|field| Cow::Owned(field.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testkit;

    #[test]
    fn a_stray_quote_spoils_one_line() {
        let text = "\u{feff}name , size\na,1\n\"b,2\n\"c,d\",3\nshort\n\ne,x\nf,4\n";
        let folder = testkit::folder(&[("t.csv", text.as_bytes())]);
        let path = folder.path().join("t.csv");
        let table = Table::open(&path).expect("opens");
        let (name, size) = (table.required(&["Name"]).expect("name"), table.required(&["n", "size"]).expect("size"));
        let mut problems = Problems::default();
        let mut rows = Vec::new();
        table
            .each(&mut problems, |row| {
                rows.push((row.line, row.text(name).to_owned(), row.integer(size, 0..=9)?));
                Ok(())
            })
            .expect("reads");
        assert_eq!(rows, [(2, "a".into(), 1), (4, "c,d".into(), 3), (8, "f".into(), 4)]);
        let found: Vec<_> = problems.into_vec().iter().map(|problem| (problem.line, problem.message.clone())).collect();
        assert_eq!(
            found,
            [
                (Some(3), "1 fields where the header has 2".to_owned()),
                (Some(5), "1 fields where the header has 2".to_owned()),
                (Some(7), "size: `x` is not a whole number".to_owned()),
            ]
        );
    }

    #[test]
    fn a_missing_column_is_named_with_those_found() {
        let folder = testkit::folder(&[("t.csv", b"a,b\n1,2\n")]);
        let table = Table::open(&folder.path().join("t.csv")).expect("opens");
        assert!(table.optional(&["c"]).is_none());
        let error = table.required(&["c", "d", "e"]).expect_err("no such column").to_string();
        assert!(error.ends_with("t.csv: no column `c` (or d, e); the columns are: a, b"), "{error}");
    }
}
