//! `krafla check`: what is wrong with a configuration, and what it comes to.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use krafla_framework::Catalogue;
use krafla_framework::conf::compile::compile;
use krafla_framework::conf::problem::Severity;

use crate::registry::registry;
use crate::{console, input};

/// More than any configuration has; the compiler's own limit, which is lower, gives the better message.
const MOST_BYTES: u64 = 64 << 20;

/// Check configuration files and print what they come to.
///
/// Takes Volcano's `scheduler.conf` and a KubeSchedulerConfiguration as they are, bare or in the ConfigMap that wraps
/// them. Each problem is shown in its
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
        let compiled = compile(&text, &name, &catalogue);
        let (mut errors, mut warnings) = (0, 0);
        for problem in &compiled.problems {
            match problem.severity {
                Severity::Error => errors += 1,
                Severity::Warning => warnings += 1,
            }
            console::say(&format!("{}\n", problem.render(&text)));
        }
        match &compiled.policy {
            Some(policy) if errors == 0 => {
                console::say(&format!("{name}: accepted, {}", counted(warnings, "warning")));
                if !arguments.quiet {
                    console::print(&policy.to_yaml(&catalogue))?;
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

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
