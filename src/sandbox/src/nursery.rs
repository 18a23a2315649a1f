//! Child processes that do not outlive this one, however it ends.
//!
//! All are of one process group. A small shell outside of it reads from a pipe whose other end is held here; the pipe
//! closes when this process is gone, be it by SIGKILL, and the shell kills the group and removes the folder.

use std::fs::File;
use std::io::{Error, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// `$1` is the group, `$2` the folder to remove, or empty. A line on the pipe means that the folder is to be left. A killed
/// process may write a last time: hence the second try.
const JANITOR: &str = r#"
keep=$(cat)
kill -s KILL -- "-$1" 2>/dev/null
[ -n "$keep" ] || [ -z "$2" ] || rm -rf -- "$2" 2>/dev/null || { sleep 1; rm -rf -- "$2"; }
"#;

/// A process group, and the shell that ends it.
#[derive(Debug)]
pub(crate) struct Nursery {
    /// Gives the group its number, and does nothing else.
    leader: Child,
    janitor: Child,
}

impl Nursery {
    /// A group without processes. With its end `remove` is removed.
    pub(crate) fn open(remove: Option<&Path>) -> Result<Self, Error> {
        let mut leader = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "sh", &leader.id().to_string()])
            .arg(remove.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Of its own group too: what ends a terminal's group must not end this one first.
            .process_group(0)
            .spawn();
        match janitor {
            Ok(janitor) => Ok(Self { leader, janitor }),
            Err(error) => {
                end(&mut leader);
                Err(error)
            }
        }
    }

    /// Leaves the folder, after all, for somebody to look into it.
    pub(crate) fn keep_folder(&mut self) {
        if let Some(pipe) = &mut self.janitor.stdin {
            // Without the janitor nobody removes it either.
            drop(pipe.write_all(b"keep\n"));
        }
    }

    /// Starts a program in the group. What it says is added to `log`.
    pub(crate) fn spawn(&self, part: &'static str, program: &Path, args: &[String], log: &Path) -> Result<Part, Error> {
        let out = File::options().create(true).append(true).open(log)?;
        let group = i32::try_from(self.leader.id()).map_err(Error::other)?;
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .process_group(group)
            .spawn()?;
        tracing::debug!(part, pid = child.id(), log = %log.display(), "started");
        Ok(Part { name: part, child, log: log.to_owned() })
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        end(&mut self.leader);
        drop(self.janitor.stdin.take());
        drop(self.janitor.wait());
    }
}

/// A running program. Dropped, it is killed: SIGTERM would take kube-apiserver more than a minute.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    child: Child,
    pub(crate) log: PathBuf,
}

impl Part {
    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The last lines of its log.
    pub(crate) fn tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // An error here means that it has ended already.
    drop(child.kill());
    drop(child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_the_nursery_end_its_children_and_its_folder() {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let nursery = Nursery::open(Some(&folder)).expect("a nursery");
        let sleep = ["1000".to_owned()];
        let mut part = nursery.spawn("sleep", Path::new("sleep"), &sleep, &folder.join("sleep.log")).expect("a child");
        assert!(part.ended().is_none());
        drop(nursery);
        let status = part.child.wait().expect("a status");
        assert!(!status.success(), "it was killed: {status}");
        assert!(!folder.exists());
    }
}
