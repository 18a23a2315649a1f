use serde::de::DeserializeOwned;

use crate::programs::{Folder, repository};

const NAMES: [&str; 6] = [
    "nodeinfo.volcano.sh_numatopologies.yaml",
    "scheduling.volcano.sh_podgroups.yaml",
    "scheduling.volcano.sh_queues.yaml",
    "scheduling.x-k8s.io_elasticquotas.yaml",
    "scheduling.x-k8s.io_podgroups.yaml",
    "topology.volcano.sh_hypernodes.yaml",
];

/// Reads documents as values of the type of others.
fn read_like<T: DeserializeOwned>(_: &[T], yaml: &str) -> Vec<T> {
    serde_saphyr::from_multiple(yaml).expect("documents")
}

#[test]
fn the_definitions_of_this_repository_are_those_of_this_build() {
    Folder::new().run(&["crds", "--check", &repository("conf/crds")]).exits(0);
}

#[test]
fn what_is_printed_is_every_definition() {
    let printed = Folder::new().run(&["crds"]).exits(0).stdout;
    let made = krafla_api::definitions();
    assert_eq!(read_like(&made, &printed), made);
    assert_eq!(printed, Folder::new().run(&["crds"]).exits(0).stdout);
}

#[test]
fn files_are_named_by_group_and_kind_and_hold_what_is_printed() {
    let folder = Folder::new();
    let ran = folder.run(&["crds", "--out", "a/b"]).exits(0);
    assert_eq!(ran.stdout, "");
    let mut names: Vec<String> = std::fs::read_dir(folder.path("a/b"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, NAMES);
    let printed = folder.run(&["crds"]).exits(0).stdout;
    for name in NAMES {
        assert!(printed.contains(&folder.read(&format!("a/b/{name}"))), "{name}");
    }
    folder.run(&["crds", "--check", "a/b"]).exits(0);
}

#[test]
fn the_check_names_what_is_changed_missing_or_left_over() {
    let folder = Folder::new();
    folder.run(&["crds", "--out", "d"]).exits(0);
    let queues = folder.read("d/scheduling.volcano.sh_queues.yaml");
    let line = queues.lines().position(|line| line.contains("name: PARENT")).expect("there") + 1;
    let folder = folder
        .with("d/scheduling.volcano.sh_queues.yaml", &queues.replace("name: PARENT", "name: ABOVE"))
        .with("d/old.yaml", "");
    std::fs::remove_file(folder.path("d/topology.volcano.sh_hypernodes.yaml")).expect("removed");
    folder.run(&["crds", "--check", "d"]).exits(1).says(&[
        &format!("d/scheduling.volcano.sh_queues.yaml:{line}: is not what"),
        "d/topology.volcano.sh_hypernodes.yaml: is missing",
        "d/old.yaml: is none of the definitions",
        "`krafla crds --out d`",
    ]);
    folder
        .run(&["crds", "--check", "nowhere"])
        .exits(1)
        .says(&["nowhere/scheduling.volcano.sh_queues.yaml: is missing"]);
    folder.run(&["crds", "--check", "d", "--out", "d"]).exits(2).says(&["--out"]);
}
