//! Problems as they are met: counted all, listed up to a limit.

use std::path::Path;

use super::workload::Problem;

/// Problems that are listed; a file of the wrong kind would otherwise fill the memory with complaints.
const MAX_LISTED: usize = 1000;

/// A list of problems under construction.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    listed: Vec<Problem>,
    n_unlisted: u64,
}

impl Problems {
    /// Adds a problem of one line.
    pub(crate) fn at(&mut self, file: &Path, line: u64, message: impl Into<String>) {
        if self.listed.len() == MAX_LISTED {
            self.n_unlisted += 1;
        } else {
            let file = file.display().to_string();
            self.listed.push(Problem { file, line: Some(line), message: message.into() });
        }
    }

    /// The list; its last entry says how many were left off.
    pub(crate) fn into_vec(mut self) -> Vec<Problem> {
        if let Some(last) = self.listed.last()
            && self.n_unlisted > 0
        {
            let message = format!("{} more problems are not listed", self.n_unlisted);
            self.listed.push(Problem { file: last.file.clone(), line: None, message });
        }
        self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_ends_and_says_so() {
        let mut problems = Problems::default();
        for line in 1..=1003 {
            problems.at(Path::new("f"), line, "bad");
        }
        let list = problems.into_vec();
        assert_eq!(list.len(), 1001);
        assert_eq!(list[1000].to_string(), "f: 3 more problems are not listed");
    }
}
