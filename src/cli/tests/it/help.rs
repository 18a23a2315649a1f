use crate::programs::Folder;

#[test]
fn every_command_shows_examples() {
    for command in ["", "simulate", "scenario", "check", "replay", "crds"] {
        let arguments: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        Folder::new().run(&arguments).exits(0).prints(&["Example", "krafla "]);
    }
}

#[test]
fn a_misspelt_command_or_flag_is_told_the_nearest() {
    Folder::new().run(&["simluate"]).exits(2).says(&["simluate", "'simulate'"]);
    Folder::new().run(&["simulate", "--confg", "x"]).exits(2).says(&["--confg", "--config"]);
}

#[test]
fn without_a_command_the_help_is_shown() {
    Folder::new().run(&[]).exits(2).says(&["Usage: krafla", "krafla simulate"]);
}

#[test]
fn a_wrong_log_filter_is_explained() {
    Folder::new().run(&["--log", "a=b=c", "simulate"]).exits(2).says(&["--log a=b=c", "debug"]);
}
