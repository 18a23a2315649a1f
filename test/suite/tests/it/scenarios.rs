//! Every scenario of `test/scenarios` holds, and so does every example of a bad one.

use std::path::{Path, PathBuf};

use krafla_simulator::scenario;
use krafla_test_suite::registry;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|why| panic!("{}: {why}", folder.display()))
        .map(|entry| entry.expect("a folder that can be read").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "yaml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_scenario_holds() {
    let files = files(&folder("scenarios"));
    assert!(files.len() >= 20, "only {} scenarios were found", files.len());
    let mut missed = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file that can be read");
        match scenario::run(&text, &file.display().to_string(), registry) {
            Ok(verdict) if verdict.passed() => assert!(verdict.checks > 0, "{} checks nothing", file.display()),
            Ok(verdict) => missed.push(format!("{}:\n  {}", file.display(), verdict.misses.join("\n  "))),
            Err(why) => missed.push(why.to_string()),
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_broken_expectation_is_a_miss() {
    let story = "scenario: s\ncluster: {nodes: [{name: n, cpu: 4}]}\ntimeline: [{at: 0s, submit: {job: a, request: {cpu: 1}}}]\nexpect: [{at: 0s, job: a, bound: 2}]\n";
    let verdict = scenario::run(story, "s.yaml", registry).expect("it can be read");
    assert_eq!(verdict.misses, ["at 0s, line 4, expect[0] job a: bound: wanted 2, is 1"]);
}

#[test]
fn a_file_that_is_no_scenario_says_where() {
    for (text, part) in [
        ("scenario: s\nclutser: {}\n", "s.yaml:2:1"),
        ("scenario: s\ntimeline: [{at: soon, delete: {job: a}}]\n", "soon"),
        ("scenario: s\ntimeline: [{at: 0s}]\n", "says nothing that happens"),
        ("scenario: s\ncluster: {nodes: [{name: n, cpu: four}]}\n", "four"),
        ("scenario: s\nexpect: [{job: a, bound: 1}]\n", "says not when"),
        ("scenario: s\nconfig: 'actions: \"allocat\"'\n", "allocat"),
        ("scenario: [", "s.yaml:"),
    ] {
        let why = scenario::run(text, "s.yaml", registry).expect_err(text).to_string();
        assert!(why.contains(part) && why.contains("s.yaml"), "{text}: {why}");
    }
}
