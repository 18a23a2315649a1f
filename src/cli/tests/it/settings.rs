use crate::programs::{Folder, Ran};

/// Two jobs of one processor.
const LOG: &str =
    "; MaxProcs: 8\n1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n2 5 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n";

fn simulate(settings: &str, variables: &[(&str, &str)], flags: &[&str]) -> Ran {
    let folder = Folder::new().with("log.swf", LOG).with("s.yaml", settings);
    let mut arguments = vec!["simulate", "--settings", "s.yaml", "--json", "-"];
    arguments.extend(flags);
    folder.run_with(&arguments, variables, "")
}

fn title(ran: &Ran) -> String {
    ran.json()["title"].as_str().expect("a title").to_owned()
}

#[test]
fn a_file_the_environment_and_flags_are_layers() {
    let file = "trace: swf:log.swf\nnodes: 2\n";
    let environment = [("KRAFLA_SIMULATE_NODES", "3")];
    assert!(title(&simulate(file, &[], &[]).exits(0)).ends_with("on 2 nodes"));
    assert!(title(&simulate(file, &environment, &[]).exits(0)).ends_with("on 3 nodes"));
    assert!(title(&simulate(file, &environment, &["--nodes", "4"]).exits(0)).ends_with("on 4 nodes"));
}

#[test]
fn keys_may_be_written_as_flags_are_and_lists_as_lists() {
    let file = "trace: swf:log.swf\nprocs-per-node: 4\nwarmup: 0.5\nderive: [tenants=2, priorities]\n";
    let ran = simulate(file, &[], &[]).exits(0);
    assert_eq!(ran.json()["summary"]["warmupJobs"], 1);
}

#[test]
fn an_unknown_key_is_an_error_that_lists_the_known_ones() {
    for (file, environment) in [("node: 5\n", vec![]), ("", vec![("KRAFLA_SIMULATE_NODE", "5")])] {
        simulate(file, &environment, &[]).exits(2).says(&["`node`", "`nodes`", "`procs_per_node`"]);
    }
}

#[test]
fn a_value_of_the_wrong_kind_names_its_key_and_where_it_stands() {
    simulate("nodes: many\n", &[], &[]).exits(2).says(&["s.yaml", "many", "`nodes`"]);
    simulate("", &[("KRAFLA_SIMULATE_NODES", "many")], &[]).exits(2).says(&["KRAFLA_SIMULATE", "many", "`nodes`"]);
    simulate("nodes: [\n", &[], &[]).exits(2).says(&["s.yaml", "line 1"]);
}

#[test]
fn a_settings_file_that_cannot_be_read_is_named() {
    Folder::new().run(&["simulate", "--settings", "nope"]).exits(2).says(&["nope: cannot be read"]);
}
