//! `krafla simulate` on the example: what comes out.

use crate::programs::{Folder, repository};

#[test]
fn without_arguments_three_teams_are_shown_and_a_page_is_written() {
    let folder = Folder::new();
    let ran = folder.run(&["simulate"]).exits(0).says(&["report: krafla-report.html"]);
    let waits = ran.stdout.split("Still waiting").nth(1).expect("something waits").to_owned();
    ran.prints(&["training", "spark", "services", "web-frontend", "gang", "share", "due"]);
    assert!(waits.contains("llm-giant") && waits.contains("nvidia.com/gpu") && waits.contains("96"), "{waits}");
    let page = folder.read("krafla-report.html");
    assert!(page.contains("llm-giant") && page.contains("web-frontend") && !page.contains("podgroup-"));
}

#[test]
fn the_page_loads_nothing() {
    let folder = Folder::new();
    folder.run(&["simulate", "--report", "deep.html"]).exits(0);
    let page = folder.read("deep.html").replace("http://www.w3.org/", "");
    for bad in ["http://", "https://", "src=\"//", "@import", "url(\"http"] {
        assert!(!page.contains(bad), "{bad}");
    }
}

#[test]
fn json_is_all_that_goes_to_standard_output() {
    let folder = Folder::new();
    let ran = folder.run(&["simulate", "--json", "-"]).exits(0);
    let json = ran.json();
    let summary = json["summary"].as_object().expect("a summary");
    for key in [
        "jobs",
        "finished",
        "pending",
        "virtualSeconds",
        "cycles",
        "decisions",
        "evictions",
        "meanWaitSeconds",
        "p99WaitSeconds",
        "meanBoundedSlowdown",
        "meanJctSeconds",
        "makespanSeconds",
    ] {
        assert!(summary[key].is_number(), "{key}: {summary:?}");
    }
    assert!(json.get("timing").is_none());
    assert!(!folder.path("krafla-report.html").exists(), "nobody asked for a page");
}

#[test]
fn two_runs_give_the_same_bytes() {
    let run = || {
        let folder = Folder::new();
        folder.run(&["simulate", "--json", "o.json", "--report", "o.html", "--record", "o.jsonl"]).exits(0);
        ["o.json", "o.html", "o.jsonl"].map(|name| folder.read(name))
    };
    assert!(run() == run());
}

#[test]
fn timing_is_a_section_of_its_own() {
    let folder = Folder::new();
    let plain = folder.run(&["simulate", "--json", "-"]).exits(0).json();
    let mut timed = folder.run(&["simulate", "--json", "-", "--timing"]).exits(0).json();
    let timing = timed.as_object_mut().expect("an object").remove("timing").expect("a section");
    assert!(timing["wallSeconds"].is_number(), "{timing}");
    assert_eq!(timed, plain);
}

#[test]
fn the_example_is_what_lies_in_the_repository() {
    let folder = Folder::new();
    let built_in = folder.run(&["simulate", "--json", "-"]).exits(0).json();
    let trace = format!("manifests:{}", repository("conf/example"));
    let config = repository("conf/example/scheduler.conf");
    let read = folder.run(&["simulate", "--trace", &trace, "--config", &config, "--strict", "--json", "-"]).exits(0);
    assert_eq!(read.json()["problems"], serde_json::json!([]));
    // The one deletes ended jobs and the other leaves them, which changes nothing that is decided.
    for key in ["jobs", "finished", "pending", "decisions", "meanWaitSeconds", "makespanSeconds"] {
        assert_eq!(read.json()["summary"][key], built_in["summary"][key], "{key}");
    }
}

#[test]
fn the_example_takes_another_number_of_nodes_and_jobs() {
    let run = |flags: &[&str]| Folder::new().run(&[&["simulate", "--json", "-"], flags].concat()).exits(0).json();
    assert_eq!(run(&["--limit", "3"])["summary"]["jobs"], 3);
    let wait = |json: serde_json::Value| json["summary"]["meanWaitSeconds"].as_f64().expect("a number");
    assert!(wait(run(&["--nodes", "48"])) < wait(run(&[])), "four times the nodes, and nobody waits less");
    assert!(wait(run(&["--compress", "4"])) > wait(run(&[])), "four times as fast, and nobody waits more");
}

#[test]
fn flags_without_a_meaning_are_refused_before_anything_runs() {
    for (arguments, parts) in [
        (vec!["--warmup", "200%"], vec!["--warmup 200%", "less than 100%"]),
        (vec!["--warmup", "-1%"], vec!["--warmup -1%"]),
        (vec!["--warmup", "x"], vec!["--warmup x", "1% or 0.01"]),
        (vec!["--nodes", "0"], vec!["--nodes", "no nodes"]),
        (vec!["--limit", "0"], vec!["--limit", "no jobs"]),
        (vec!["--compress", "0"], vec!["--compress", "above 0"]),
        (vec!["--until", "x"], vec!["--until", "`x`", "1h30m"]),
        (vec!["--until", "-5m"], vec!["--until", "negative"]),
        (vec!["--period", "0"], vec!["--period", "1ms"]),
        (vec!["--derive", "gangs"], vec!["--derive", "for traces"]),
        (vec!["--config", "."], vec!["--config", "is a folder"]),
        (vec!["--config", "nope.conf"], vec!["nope.conf: cannot be read"]),
        (vec!["--record", "no/such/folder"], vec!["--record no/such/folder"]),
        (vec!["extra"], vec!["extra"]),
    ] {
        let folder = Folder::new();
        let ran = folder.run(&[&["simulate"], arguments.as_slice()].concat()).exits(2).says(&parts);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
}

#[test]
fn a_refused_configuration_is_shown_in_its_place() {
    let folder = Folder::new().with("s.conf", "actions: \"allocat\"\ntiers:\n- plugins:\n  - name: gang\n");
    let ran = folder.run(&["simulate", "--config", "s.conf"]).exits(2);
    ran.says(&["s.conf is refused", "s.conf:1:", "`allocate`"]);
}
