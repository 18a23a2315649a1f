use crate::programs::Folder;

#[test]
fn a_recorded_run_decides_the_same_again() {
    let folder = Folder::new();
    folder.run(&["simulate", "--record", "day.jsonl", "--json", "out.json"]).exits(0);
    folder.run(&["replay", "day.jsonl"]).exits(0).prints(&["day.jsonl: ", "all the same"]);
}

#[test]
fn another_decision_exits_1_in_its_line() {
    let folder = Folder::new();
    folder.run(&["simulate", "--record", "day.jsonl", "--json", "out.json"]).exits(0);
    let recorded = folder.read("day.jsonl");
    // The first bind went elsewhere, as it would if the scheduler had been another.
    let at = recorded.find("\"Bind\"").expect("something is bound");
    let (before, after) = recorded.split_at(at);
    let line = before.lines().count();
    let folder = folder.with("day.jsonl", &format!("{before}{}", after.replacen("cpu-", "gpu-", 1)));
    let ran = folder.run(&["replay", "day.jsonl"]).exits(1);
    ran.prints(&[&format!("day.jsonl:{line}: "), "recorded: ", "replayed: "]);
}

#[test]
fn a_broken_file_exits_2_in_its_line() {
    let folder = Folder::new();
    folder.run(&["simulate", "--record", "day.jsonl", "--json", "out.json"]).exits(0);
    let mut lines: Vec<String> = folder.read("day.jsonl").lines().map(str::to_owned).collect();
    lines[4] = "{broken".to_owned();
    let folder = folder.with("day.jsonl", &lines.join("\n")).with("other.txt", "hello\n");
    folder.run(&["replay", "day.jsonl"]).exits(2).says(&["error: day.jsonl:5: "]);
    folder.run(&["replay", "other.txt"]).exits(2).says(&["other.txt:1: ", "krafla simulate --record"]);
    folder.run(&["replay", "nope"]).exits(2).says(&["nope: cannot be read"]);
    folder.run(&["replay", "."]).exits(2).says(&["is a folder"]);
}
