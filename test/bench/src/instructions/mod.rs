//! Instruction counts as a gate: `hack/bench instructions`. Seconds depend on the machine and on who else uses it;
//! instructions of the same program on the same input hardly do, so a few percent more are somebody's change.
//!
//! It cannot see what does not take instructions: caches that miss, memory that is held.

mod cases;
mod valgrind;
mod verdict;
mod written;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use cases::CASES;
use verdict::{ALLOWED, Verdict};
use written::Written;

use crate::clock;

/// By this name it is asked for.
pub(crate) const NAME: &str = "instructions";

/// How the gate runs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// `instructions`: write the counts down anew.
    #[arg(long)]
    bless: bool,
    /// `instructions`: without valgrind, say so and pass.
    #[arg(long)]
    skip_without_valgrind: bool,
    /// `instructions`: counts that were taken with another toolchain are shown, and do not fail.
    #[arg(long)]
    same_toolchain_only: bool,
}

/// Runs the case that `word` names, if it names one: what valgrind counts.
pub(crate) fn run_case(word: &str) -> bool {
    let case = word.strip_prefix(valgrind::WORD).and_then(|name| CASES.iter().find(|case| case.name == name));
    if let Some(case) = case {
        clock::stand_still();
        (case.run)();
    }
    case.is_some()
}

/// Counts, prints a table, and compares. The exit code is 1 if a case takes more than it may.
pub(crate) fn gate(options: &Options) -> ExitCode {
    let valgrind = match valgrind::version() {
        Ok(version) => version,
        Err(error) => {
            eprintln!(
                "NOT COUNTED: {error}. Install the package `valgrind` (apt-get install valgrind, dnf install valgrind)"
            );
            eprintln!("             --skip-without-valgrind passes without it");
            return ExitCode::from(u8::from(!options.skip_without_valgrind));
        }
    };
    match compare(options, &valgrind) {
        Ok(passed) => ExitCode::from(u8::from(!passed)),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options, valgrind: &str) -> Result<bool, String> {
    if cfg!(debug_assertions) {
        return Err("this is a debug build; counts are those of a release build: hack/bench instructions".to_owned());
    }
    let now = Written { toolchain: valgrind::toolchain(valgrind), counts: count_all()? };
    let path = file();
    let shown = path.display();
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => Written::read(&text).map_err(|error| format!("{shown}: {error}"))?,
        Err(_) if options.bless => Written::default(),
        Err(error) => return Err(format!("{shown}: {error}; --bless writes it")),
    };
    let (table, verdicts) = table(&now.counts, &before.counts);
    print!("{table}");
    let is_other = now.toolchain != before.toolchain;
    if is_other && !before.toolchain.is_empty() {
        println!("ANOTHER TOOLCHAIN: {}", now.toolchain);
        println!("written down with: {}", before.toolchain);
    }
    if options.bless {
        std::fs::write(&path, now.text()).map_err(|error| format!("{shown}: {error}"))?;
        println!("written to {shown}; the commit says why a case takes more");
        return Ok(true);
    }
    let failed = complaints(&now.counts, &before.counts, &verdicts);
    for complaint in &failed {
        println!("{complaint}");
    }
    if verdicts.contains(&Verdict::Better) {
        println!("what takes over {ALLOWED} % less may be written down, so that it stays so: --bless");
    }
    if !failed.is_empty() {
        println!("look for what is done in vain, or --bless, and say in the commit what is got for it");
    }
    if is_other && options.same_toolchain_only && !failed.is_empty() {
        println!("NOT COMPARED: the toolchain is another one");
        return Ok(true);
    }
    Ok(failed.is_empty())
}

/// Where the counts stand: in the source from which this was built.
fn file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/instructions.tsv"))
}

/// Counts every case, two at a time.
fn count_all() -> Result<BTreeMap<String, u64>, String> {
    let half = |odd: usize| {
        CASES.iter().skip(odd).step_by(2).map(|case| Ok((case.name.to_owned(), valgrind::count(case.name)?)))
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(move || half(1).collect::<Result<Vec<_>, String>>());
        let mut counts = half(0).collect::<Result<BTreeMap<_, _>, String>>()?;
        counts.extend(other.join().map_err(|_| "a counting thread panicked")??);
        Ok(counts)
    })
}

fn table(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> (String, Vec<Verdict>) {
    let mut text = format!("{:<34} {:>14} {:>14} {:>8}\n", "case", "instructions", "written down", "ratio");
    let mut verdicts = Vec::new();
    for (name, &count) in now {
        let written = before.get(name).copied();
        let verdict = Verdict::of(count, written);
        #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
        let ratio = written.map_or("-".to_owned(), |written| format!("{:.4}", count as f64 / written as f64));
        let written = written.map_or("-".to_owned(), |written| written.to_string());
        text += format!("{name:<34} {count:>14} {written:>14} {ratio:>8} {}", verdict.word()).trim_end();
        text.push('\n');
        verdicts.push(verdict);
    }
    (text, verdicts)
}

/// What does not pass, in words.
fn complaints(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>, verdicts: &[Verdict]) -> Vec<String> {
    let mut all: Vec<String> = now
        .iter()
        .zip(verdicts)
        .filter_map(|((name, count), verdict)| match verdict {
            Verdict::Worse => {
                Some(format!("{name}: {count} instructions, over {ALLOWED} % above the {} written down", before[name]))
            }
            Verdict::New => Some(format!("{name}: {count} instructions, and nothing is written down")),
            Verdict::Same | Verdict::Better => None,
        })
        .collect();
    all.extend(
        before.keys().filter(|name| !now.contains_key(*name)).map(|name| format!("{name}: written down, and no case")),
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
    }

    #[test]
    fn what_does_not_pass_is_named_with_both_counts() {
        let now = counts(&[("less", 900), ("more", 1_100), ("new", 7), ("same", 1_000)]);
        let before = counts(&[("gone", 5), ("less", 1_000), ("more", 1_000), ("same", 1_000)]);
        let (table, verdicts) = table(&now, &before);
        assert!(table.contains("1.1000 MORE\n") && table.contains("0.9000 less\n"), "{table}");
        let wanted = [
            "more: 1100 instructions, over 3 % above the 1000 written down",
            "new: 7 instructions, and nothing is written down",
            "gone: written down, and no case",
        ];
        assert_eq!(complaints(&now, &before, &verdicts), wanted);
    }

    #[test]
    fn cases_are_in_order_and_have_names_of_their_own() {
        assert!(CASES.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn what_is_written_down_is_of_the_cases_that_there_are() {
        let written = Written::read(include_str!("../../instructions.tsv")).expect("the file can be read");
        let names: Vec<&str> = written.counts.keys().map(String::as_str).collect();
        assert_eq!(names, CASES.iter().map(|case| case.name).collect::<Vec<_>>());
        assert!(written.toolchain.starts_with("rustc "), "{}", written.toolchain);
    }
}
