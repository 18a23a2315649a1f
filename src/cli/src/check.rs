//! `krafla check`: what is wrong with a configuration, and what it comes to.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use krafla_framework::conf::compile::compile;
use krafla_framework::conf::problem::Severity;

use crate::registry::registry;

/// Check configuration files and print what they come to.
///
/// Takes Volcano's `scheduler.conf` as it is, bare or in the ConfigMap that wraps it. Each problem is shown in its
/// place. Exits 0 if there are only warnings, 1 if a file is refused, 2 if one cannot be read.
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
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalogue = registry().catalogue();
    let mut refused = false;
    for file in &arguments.files {
        let name = file.display().to_string();
        let text = if name == "-" {
            std::io::read_to_string(std::io::stdin()).context("standard input")?
        } else {
            std::fs::read_to_string(file).with_context(|| name.clone())?
        };
        let compiled = compile(&text, &name, &catalogue);
        let (mut errors, mut warnings) = (0, 0);
        for problem in &compiled.problems {
            match problem.severity {
                Severity::Error => errors += 1,
                Severity::Warning => warnings += 1,
            }
            eprintln!("{}\n", problem.render(&text));
        }
        match &compiled.policy {
            Some(policy) if errors == 0 => {
                eprintln!("{name}: accepted, {warnings} warnings");
                if !arguments.quiet {
                    print!("{}", policy.to_yaml(&catalogue));
                }
            }
            _ => {
                eprintln!("{name}: refused, {errors} errors, {warnings} warnings");
                refused = true;
            }
        }
    }
    Ok(if refused { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
