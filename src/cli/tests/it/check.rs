use std::path::{Path, PathBuf};

use crate::programs::{Folder, Ran, repository};

const GOOD: &str = "\
actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
";

fn check(text: &str) -> Ran {
    Folder::new().with("s.conf", text).run(&["check", "s.conf"])
}

/// All files below a folder that end in `.conf`.
fn configurations(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(configurations(&path));
        } else if path.extension().is_some_and(|ext| ext == "conf") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_configuration_of_this_repository_is_accepted_without_a_warning() {
    let all = configurations(Path::new(&repository("conf")));
    assert!(all.len() >= 6, "{all:?}");
    for path in all {
        let path = path.display().to_string();
        let ran = Folder::new().run(&["check", &path]).exits(0);
        assert_eq!(ran.stderr, format!("{path}: accepted, 0 warnings\n"));
    }
}

#[test]
fn what_is_printed_is_accepted_again_and_comes_to_the_same() {
    for path in configurations(Path::new(&repository("conf"))) {
        let first = Folder::new().run(&["check", &path.display().to_string()]).exits(0);
        let second = check(&first.stdout).exits(0);
        assert_eq!(second.stdout, first.stdout, "{}", path.display());
    }
}

#[test]
fn quiet_prints_no_configuration() {
    let ran = Folder::new().with("s.conf", GOOD).run(&["check", "--quiet", "s.conf"]).exits(0);
    assert_eq!(ran.stdout, "");
}

#[test]
fn standard_input_is_a_dash() {
    let ran = Folder::new().run_with(&["check", "-"], &[], GOOD).exits(0);
    assert!(ran.stdout.contains("name: predicates"), "{}", ran.stdout);
    Folder::new().run_with(&["check", "-"], &[], "actions: \"x\"\n").exits(1).says(&["-:1:"]);
}

#[test]
fn a_config_map_is_unwrapped_and_lines_are_those_of_the_file() {
    let body = GOOD.replace("name: gang", "name: gnag").replace('\n', "\n    ");
    let wrapped = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: volcano-scheduler-configmap\ndata:\n  volcano-scheduler.conf: |\n    {}\n",
        body.trim_end()
    );
    let line = wrapped.lines().position(|line| line.contains("gnag")).expect("there") + 1;
    check(&wrapped).exits(1).says(&[&format!("s.conf:{line}:"), "`gnag`", "`gang`"]);
    check(&wrapped.replace("gnag", "gang")).exits(0).prints(&["name: gang"]);
}

#[test]
fn each_kind_of_mistake_is_refused_in_its_place() {
    let with = |from: &str, to: &str| GOOD.replace(from, to);
    let cases: [(&str, String, &[&str]); 10] = [
        (
            "arguments one level too far left",
            with("  - name: nodeorder\n", "  - name: nodeorder\n  arguments:\n    leastrequested.weight: 1\n"),
            &["s.conf:10:3", "arguments"],
        ),
        (
            "enabledX for enableX",
            with("  - name: gang\n", "  - name: gang\n    enabledJobOrder: false\n"),
            &["s.conf:6:5", "enabledJobOrder", "`enableJobOrder`"],
        ),
        (
            "a number in quotes",
            with("  - name: nodeorder\n", "  - name: nodeorder\n    arguments: {leastrequested.weight: \"2\"}\n"),
            &["s.conf:10:", "leastrequested.weight", "in quotes", "remove the quotes: `2`"],
        ),
        ("a plugin of a fork", with("name: proportion", "name: proportionx"), &["s.conf:8:11", "`proportion`"]),
        (
            "actions as a YAML list",
            with("\"enqueue, allocate, backfill\"", "[enqueue, allocate]"),
            &["s.conf:1:", "actions", "\"enqueue, allocate\""],
        ),
        ("nothing that places", with("enqueue, allocate, backfill", "enqueue"), &["s.conf:1:", "allocate"]),
        ("a plugin twice", with("name: gang", "name: priority"), &["s.conf:5:", "priority"]),
        (
            "an unknown argument",
            with("  - name: nodeorder\n", "  - name: nodeorder\n    arguments:\n      leastrequestd.weight: 1\n"),
            &["s.conf:11:7", "leastrequestd.weight", "`leastrequested.weight`"],
        ),
        ("an unknown action", with("allocate", "alocate"), &["s.conf:1:", "`alocate`", "`allocate`"]),
        ("no YAML", with("tiers:", "tiers: ["), &["s.conf:", "not YAML"]),
    ];
    for (name, text, parts) in cases {
        let ran = check(&text);
        assert_eq!(ran.code, 1, "{name}: {}", ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{name}: `{part}` is not in: {}", ran.stderr);
        }
        assert_eq!(ran.stdout, "", "{name}");
        assert!(ran.stderr.contains("s.conf: refused"), "{name}: {}", ran.stderr);
    }
}

#[test]
fn warnings_alone_do_not_refuse() {
    let ran = check("").exits(0).says(&["warning", "s.conf: accepted, 1 warning\n"]);
    assert!(ran.stdout.contains("allocate"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_read_exits_2_and_the_other_files_are_checked_all_the_same() {
    Folder::new().run(&["check", "nope.conf"]).exits(2).says(&["nope.conf: cannot be read"]);
    Folder::new().run(&["check", "."]).exits(2).says(&["is a folder"]);
    let folder = Folder::new().with("good.conf", GOOD);
    folder.run(&["check", "nope.conf", "good.conf"]).exits(2).says(&["nope.conf", "good.conf: accepted"]);
}

//
#[test]
fn profiles_are_printed_with_nothing_left_to_defaults() {
    let example = include_str!("../../../../conf/kube-scheduler/two-profiles.yaml");
    let folder = Folder::new().with("kube.yaml", example);
    let ran = folder.run(&["check", "kube.yaml"]).exits(0);
    assert!(ran.stderr.contains("kube.yaml:11:15"), "{}", ran.stderr);
    assert!(ran.stdout.contains("- name: NodeResourcesLeastAllocated\n        weight: 40\n"), "{}", ran.stdout);
    let again = Folder::new().with("kube.yaml", &ran.stdout);
    assert_eq!(again.run(&["check", "kube.yaml"]).exits(0).stdout, ran.stdout, "printed again it is the same");
    folder.run(&["check", "--strict-upstream-config", "kube.yaml"]).exits(1).says(&["is not a name of kube-scheduler"]);
}

const POLICY: &str = "\
apiVersion: \"descheduler/v1alpha2\"
kind: \"DeschedulerPolicy\"
profiles:
- name: profile-rebalance
  pluginConfig:
  - name: \"LowNodeUtilization\"
    args:
      thresholds:
        \"cpu\": 20
        \"memory\": 20
      targetThresholds:
        \"cpu\": 70
        \"memory\": 70
";

/// the policy loads, and says that nothing of it runs; or it runs, if that is wanted.
#[test]
fn a_descheduler_policy_says_what_it_does() {
    let folder = Folder::new().with("p.yaml", POLICY);
    let ran = folder.run(&["check", "p.yaml"]).exits(0);
    assert_eq!(ran.stdout, "# in this order\ndeschedule: []\nbalance: []\n");
    assert!(ran.stderr.contains("does not run") && ran.stderr.contains("accepted, 1 warning"), "{}", ran.stderr);
    let ran = folder.run(&["check", "--auto-enable", "p.yaml"]).exits(0);
    let balance = "balance:\n- {profile: profile-rebalance, plugin: LowNodeUtilization}\n";
    assert!(ran.stdout.ends_with(balance), "{}", ran.stdout);
    let wrong = Folder::new().with("p.yaml", &POLICY.replace("\"cpu\": 70", "\"cpu\": 10"));
    let ran = wrong.run(&["check", "p.yaml"]).exits(1);
    assert!(ran.stderr.contains("p.yaml:11:7") && ran.stderr.contains("below `thresholds`"), "{}", ran.stderr);
}
