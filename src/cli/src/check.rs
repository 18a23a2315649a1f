//! `krafla check`: what is wrong with a configuration, and what it comes to.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use krafla_framework::Catalogue;
use krafla_framework::conf::compile::compile;
use krafla_framework::conf::descheduler::{self, DeschedulerPolicy};
use krafla_framework::conf::problem::{Problem, Severity};

use crate::registry::registry;
use crate::{console, input};

/// More than any configuration has; the compiler's own limit, which is lower, gives the better message.
const MOST_BYTES: u64 = 64 << 20;

/// Check configuration files and print what they come to.
///
/// Takes Volcano's `scheduler.conf` and a KubeSchedulerConfiguration as they are, bare or in the ConfigMap that wraps
/// them, and a DeschedulerPolicy. Each problem is shown in its
/// place, on standard error; the effective configuration goes to standard output. Exits 0 if there are at most warnings,
/// 1 if a file is refused, 2 if one cannot be read.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  krafla check scheduler.conf\n  krafla check --quiet configmap.yaml other.conf\n  kubectl get configmap volcano-scheduler-configmap -n volcano-system -o yaml | krafla check -"
)]
pub(crate) struct Arguments {
    /// The files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print problems only, not the effective configuration.
    #[arg(short, long)]
    quiet: bool,
    /// Refuse names in a KubeSchedulerConfiguration that kube-scheduler would refuse, instead of taking them as aliases.
    #[arg(long)]
    strict_upstream_config: bool,
    /// Of a DeschedulerPolicy: enable plugins that it configures and enables nowhere.
    #[arg(long)]
    auto_enable: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalogue = Catalogue { strict_upstream: arguments.strict_upstream_config, ..registry().catalogue() };
    let (mut refused, mut unread) = (false, false);
    for file in &arguments.files {
        let name = file.display().to_string();
        let text = match input::text(file, MOST_BYTES) {
            Ok(text) => text,
            Err(error) => {
                console::say(&format!("error: {error:#}"));
                unread = true;
                continue;
            }
        };
        let (problems, effective) = read(&text, &name, &catalogue, arguments.auto_enable);
        let (mut errors, mut warnings) = (0, 0);
        for problem in &problems {
            match problem.severity {
                Severity::Error => errors += 1,
                Severity::Warning => warnings += 1,
            }
            console::say(&format!("{}\n", problem.render(&text)));
        }
        match &effective {
            Some(effective) if errors == 0 => {
                console::say(&format!("{name}: accepted, {}", counted(warnings, "warning")));
                if !arguments.quiet {
                    console::print(effective)?;
                }
            }
            _ => {
                let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
                console::say(&format!("{name}: refused, {errors}, {warnings}"));
                refused = true;
            }
        }
    }
    Ok(match (unread, refused) {
        (true, _) => ExitCode::from(2),
        (false, true) => ExitCode::from(1),
        (false, false) => ExitCode::SUCCESS,
    })
}

/// What is wrong with a text, and what it comes to.
fn read(text: &str, name: &str, catalogue: &Catalogue, auto_enable: bool) -> (Vec<Problem>, Option<String>) {
    if descheduler::is_one(text) {
        let compiled = descheduler::compile(text, name, &krafla_descheduler::known_strategies(), auto_enable);
        return (compiled.problems, compiled.policy.map(|policy| steps(&policy)));
    }
    let compiled = compile(text, name, catalogue);
    (compiled.problems, compiled.policy.map(|policy| policy.to_yaml(catalogue)))
}

/// What one round of a policy does, in order.
fn steps(policy: &DeschedulerPolicy) -> String {
    let mut text = "# in this order\n".to_owned();
    for point in ["deschedule", "balance"] {
        let mut n = 0;
        text += &format!("{point}:");
        for profile in &policy.profiles {
            for name in if point == "balance" { &profile.balance } else { &profile.deschedule } {
                text += &format!("\n- {{profile: {}, plugin: {name}}}", profile.name);
                n += 1;
            }
        }
        text += if n == 0 { " []\n" } else { "\n" };
    }
    text
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
