//! A budget, what was measured, and whether it is kept.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// What is measured.
    pub name: String,
    /// What was measured, in `unit`.
    pub value: f64,
    /// What it has to be, at least or at most.
    pub budget: f64,
    /// The unit of both.
    pub unit: String,
    /// Whether it is kept.
    pub ok: bool,
}

/// A budget that must be reached.
pub fn at_least(name: &str, value: f64, budget: f64, unit: &str) -> Budget {
    Budget { name: name.to_owned(), value, budget, unit: unit.to_owned(), ok: value >= budget }
}

/// A budget that must not be passed.
pub fn at_most(name: &str, value: f64, budget: f64, unit: &str) -> Budget {
    Budget { ok: value <= budget, ..at_least(name, value, budget, unit) }
}

/// Prints a table of them, and writes them as JSON where asked. Answers how many are not kept.
pub fn report(budgets: &[Budget], json: Option<&Path>) -> std::io::Result<usize> {
    println!("{:<60} {:>14} {:>14} {:<12} kept", "budget", "measured", "budget", "unit");
    for Budget { name, value, budget, unit, ok } in budgets {
        println!("{name:<60} {value:>14.2} {budget:>14.2} {unit:<12} {}", if *ok { "yes" } else { "NO" });
    }
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_string_pretty(budgets)?)?;
    }
    Ok(budgets.iter().filter(|budget| !budget.ok).count())
}
