use crate::programs::Folder;

/// A gang of three on one node of 4 cores, of which two pods find a place.
const WAITS: &str = "\
scenario: a-gang-waits
cluster: {nodes: [{name: n, cpu: 4}]}
timeline:
- {at: 0s, submit: {job: a, replicas: 3, minMember: 3, request: {cpu: 2}, runtime: 60s}}
expect:
- {at: 1s, job: a, bound: 0}
";

#[test]
fn what_holds_exits_0_and_a_folder_is_searched() {
    let folder = Folder::new().with("s/a.yaml", WAITS).with("s/deep/b.yml", &WAITS.replace("a-gang", "another-gang"));
    let ran = folder.with("s/README.md", "no scenario").run(&["scenario", "s"]).exits(0);
    ran.prints(&["ok      a-gang-waits", "ok      another-gang-waits", "2 passed, 0 missed, 0 could not be read"]);
}

#[test]
fn what_is_missed_exits_1_and_says_what_was_wanted() {
    let folder = Folder::new().with("a.yaml", &WAITS.replace("bound: 0", "bound: 3"));
    folder.run(&["scenario", "a.yaml"]).exits(1).prints(&["MISSED  a-gang-waits (a.yaml)", "3", "0 passed, 1 missed"]);
}

#[test]
fn what_cannot_be_read_exits_2_with_its_place() {
    let folder = Folder::new().with("a.yaml", &WAITS.replace("timeline:", "timelime:")).with("b.yaml", WAITS);
    let ran = folder.run(&["scenario", "a.yaml", "b.yaml", "nope.yaml"]).exits(2);
    ran.prints(&["UNREAD  a.yaml:3", "ok      a-gang-waits", "UNREAD  nope.yaml", "1 passed, 0 missed, 2 could"]);
}

#[test]
fn an_empty_folder_is_no_success() {
    let folder = Folder::new().with("s/README.md", "");
    folder.run(&["scenario", "s"]).exits(2).says(&["no file in it ends in .yaml or .yml"]);
}

#[test]
fn a_cluster_that_cannot_be_reached_exits_2() {
    let folder = Folder::new().with("a.yaml", WAITS);
    folder.run(&["scenario", "--external", "--kubeconfig", "nope", "a.yaml"]).exits(2).says(&["kubeconfig nope"]);
}

#[test]
fn flags_for_a_cluster_need_one_of_the_two() {
    let folder = Folder::new().with("a.yaml", WAITS);
    folder.run(&["scenario", "--cluster", "--external", "a.yaml"]).exits(2).says(&["cannot be used with"]);
    folder.run(&["scenario", "--use-nodes", "a.yaml"]).exits(2).says(&["--external"]);
    folder.run(&["scenario", "--cluster", "--patience", "soon", "a.yaml"]).exits(2).says(&["--patience soon"]);
}

#[test]
fn what_cannot_be_read_needs_no_cluster() {
    let folder = Folder::new().with("a.yaml", &WAITS.replace("timeline:", "timelime:"));
    folder.run(&["scenario", "--cluster", "a.yaml"]).exits(2).prints(&["UNREAD  a.yaml:3"]);
}
