//! Amounts in shorthand.

use krafla_model::{Amounts, Name};

/// Reads `2c4Gi3g10p`, also `500m` for CPU and `example.com/x=2` parts after commas.
///
/// # Panics
/// On anything else: a test that is written wrong should not pass.
pub fn amounts(text: &str) -> Amounts {
    let mut amounts = Amounts::default();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        if let Some((name, quantity)) = part.split_once('=') {
            amounts.set(&Name::from(name), quantity).expect("a quantity");
            continue;
        }
        let mut rest = part;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').expect("an amount ends in its unit");
            let (number, tail) = rest.split_at(digits);
            let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let (unit, next) = tail.split_at(unit);
            let (resource, quantity) = match unit {
                "c" => ("cpu", number.to_owned()),
                "m" => ("cpu", format!("{number}m")),
                "g" => (krafla_model::resources::GPU_NAME, number.to_owned()),
                "p" => ("pods", number.to_owned()),
                memory => ("memory", format!("{number}{memory}")),
            };
            amounts.set(&Name::from(resource), &quantity).expect("a quantity");
            rest = next;
        }
    }
    amounts
}
