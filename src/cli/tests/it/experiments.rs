//! `krafla simulate --experiment`: what it prints, and what it refuses.

use crate::programs::Folder;

/// Both days side by side, hour by hour.
#[test]
fn drift_shows_a_day_with_a_plan_and_without() {
    let folder = Folder::new();
    let day = ["simulate", "--experiment", "drift", "--nodes", "20", "--until", "6h", "--seed", "7"];
    let ran = folder.run(&[&day[..], &["--json", "day.json"]].concat()).exits(0);
    ran.prints(&[
        "A day on 20 nodes",
        "moves with plan",
        "without",
        "fullest node",
        "changes",
        "constant",
        "overspent",
    ]);
    let json: serde_json::Value = serde_json::from_str(&folder.read("day.json")).expect("JSON");
    assert_eq!((&json["nodes"], &json["hours"], &json["seed"]), (&20.into(), &6.into(), &7.into()));
    for day in ["planned", "unplanned"] {
        let moves = json[day]["moves"].as_array().expect("moves");
        assert_eq!((moves.len(), json[day]["hottestPermille"].as_array().map(Vec::len)), (6, Some(71)), "{day}");
    }
    let again = folder.run(&[&day[..], &["--json", "-"]].concat()).exits(0);
    assert_eq!(again.stdout, folder.read("day.json"), "the same day, and nothing but JSON");
}

#[test]
fn what_has_no_say_in_an_experiment_is_refused() {
    let folder = Folder::new();
    for (flags, says) in [
        (&["drift", "--data", "x"][..], "--data: it has no say in --experiment drift"),
        (&["drift", "--nodes", "5"], "takes 10 to 10000 nodes"),
        (&["drift", "--until", "90m"], "whole hours from 6h"),
        (&["drift", "--config", "x"], "cannot be used with '--config <FILE>'"),
        (&["fgd", "--data", "x", "--seed", "1"], "--seed: it has no say in --experiment fgd"),
        (&["fgd"], "write --data FOLDER"),
        (&["defragment"], "write --data FOLDER"),
        (&["defragment", "--data", "."], "openb_node_list_gpu_node.csv"),
        (&["defragment", "--data", ".", "--nodes", "9"], "--nodes: it has no say in --experiment defragment"),
        (&["ebb"], "possible values: fgd, drift, defragment"),
    ] {
        folder.run(&[&["simulate", "--experiment"], flags].concat()).exits(2).says(&[says]);
    }
}

#[test]
fn there_is_one_feature_gate_of_the_descheduler() {
    let folder = Folder::new();
    for (gates, says) in [
        ("Foo=true", "there is no gate Foo; there is EvictionsInBackground"),
        ("EvictionsInBackground", "write EvictionsInBackground=true or =false"),
        ("EvictionsInBackground=yes", "write EvictionsInBackground=true or =false"),
    ] {
        folder.run(&["deschedule", "--policy", "x", "--feature-gates", gates]).exits(2).says(&[says]);
    }
}
