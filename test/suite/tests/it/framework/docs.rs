//! What the documentation has to say of the framework.

const PROFILES: &str = include_str!("../../../../../docs/profiles.md");
const OUT_OF_TREE: &str = include_str!("../../../../../docs/out-of-tree.md");

//
#[test]
fn the_lineage_is_stated() {
    for version in ["Kubernetes 1.15", "since 1.19", "1.36"] {
        assert!(PROFILES.contains(version), "docs/profiles.md says nothing of {version}");
    }
}

//
#[test]
fn every_point_stands_in_the_table_of_hooks() {
    let table: Vec<&str> = OUT_OF_TREE.lines().filter(|line| line.starts_with('|')).collect();
    for point in krafla_framework::ExtensionPoint::ALL {
        let name = point.to_string();
        assert!(table.iter().any(|line| line.contains(&name)), "docs/out-of-tree.md has no row for {name}");
    }
}
