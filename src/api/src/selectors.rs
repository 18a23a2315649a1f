//! Selectors, affinity terms, tolerations and taints, compiled to interned form.
//!
//! A condition that cannot be read is an error here, with the reason. What it means is the caller's decision.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use krafla_model::labels::{Labels, NodeSelectorTerm, Requirement, Selector, Test};
use krafla_model::name::NamePool;
use krafla_model::taints::{Effect, Match, Taint, Toleration};

use crate::duration::shown;

/// Compiles one condition on a label or field.
fn test(key: &str, operator: &str, values: &[String], names: &mut NamePool) -> Result<Test, String> {
    let key = shown(key);
    let n = values.len();
    let test = match operator {
        "In" | "NotIn" if n == 0 => return Err(format!("`{key}` {operator} needs at least one value")),
        "Exists" | "DoesNotExist" if n > 0 => return Err(format!("`{key}` {operator} takes no values")),
        "Gt" | "Lt" if n != 1 => return Err(format!("`{key}` {operator} takes one value, here are {n}")),
        "In" => Test::In(values.iter().map(|value| names.intern(value)).collect()),
        "NotIn" => Test::NotIn(values.iter().map(|value| names.intern(value)).collect()),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::DoesNotExist,
        "Gt" | "Lt" => {
            let bound = values[0]
                .parse()
                .map_err(|_| format!("`{key}` {operator} takes an integer, here is `{}`", shown(&values[0])))?;
            if operator == "Gt" { Test::Gt(bound) } else { Test::Lt(bound) }
        }
        _ => {
            return Err(format!(
                "`{key}` has the unknown operator `{}`; operators are In, NotIn, Exists, DoesNotExist, Gt and Lt",
                shown(operator)
            ));
        }
    };
    Ok(test)
}

/// Compiles one term of a node affinity.
pub(crate) fn node_term(term: &core::NodeSelectorTerm, names: &mut NamePool) -> Result<NodeSelectorTerm, String> {
    let mut compiled = NodeSelectorTerm::default();
    for one in term.match_expressions.iter().flatten() {
        let test = test(&one.key, &one.operator, one.values.as_deref().unwrap_or_default(), names)?;
        compiled.labels.push(Requirement { key: names.intern(&one.key), test });
    }
    for one in term.match_fields.iter().flatten() {
        if one.key != "metadata.name" {
            return Err(format!("the field `{}` is unknown; the only one is metadata.name", shown(&one.key)));
        }
        match test(&one.key, &one.operator, one.values.as_deref().unwrap_or_default(), names)? {
            test @ (Test::In(_) | Test::NotIn(_)) => compiled.name.push(test),
            _ => return Err(format!("the field metadata.name takes In or NotIn, not {}", one.operator)),
        }
    }
    Ok(compiled)
}

/// Compiles a label selector.
pub(crate) fn selector(selector: &LabelSelector, names: &mut NamePool) -> Result<Selector, String> {
    let mut compiled = Selector::default();
    for (key, value) in selector.match_labels.iter().flatten() {
        compiled.0.push(Requirement { key: names.intern(key), test: Test::In(vec![names.intern(value)]) });
    }
    for one in selector.match_expressions.iter().flatten() {
        if matches!(one.operator.as_str(), "Gt" | "Lt") {
            return Err(format!(
                "`{}` has the operator {}, which only node affinity has",
                shown(&one.key),
                one.operator
            ));
        }
        let test = test(&one.key, &one.operator, one.values.as_deref().unwrap_or_default(), names)?;
        compiled.0.push(Requirement { key: names.intern(&one.key), test });
    }
    Ok(compiled)
}

/// Labels, interned.
pub(crate) fn labels<'a>(map: impl IntoIterator<Item = (&'a String, &'a String)>, names: &mut NamePool) -> Labels {
    map.into_iter().map(|(key, value)| (names.intern(key), names.intern(value))).collect()
}

/// Compiles a toleration.
pub(crate) fn toleration(toleration: &core::Toleration, names: &mut NamePool) -> Result<Toleration, String> {
    let key = toleration.key.as_deref().filter(|key| !key.is_empty());
    let value = toleration.value.as_deref().unwrap_or_default();
    let test = match toleration.operator.as_deref().unwrap_or_default() {
        "Exists" => Match::Exists,
        "" | "Equal" if key.is_none() => return Err("without a key, the operator has to be Exists".to_owned()),
        "" | "Equal" => Match::Equal(names.intern(value)),
        other => return Err(format!("the operator is `{}`; operators are Equal and Exists", shown(other))),
    };
    let effect = match toleration.effect.as_deref().unwrap_or_default() {
        "" => None,
        text => Some(effect(text)?),
    };
    Ok(Toleration { key: key.map(|key| names.intern(key)), test, effect })
}

/// Compiles a taint.
pub(crate) fn taint(taint: &core::Taint, names: &mut NamePool) -> Result<Taint, String> {
    Ok(Taint {
        key: names.intern(&taint.key),
        value: names.intern(taint.value.as_deref().unwrap_or_default()),
        effect: effect(&taint.effect)?,
    })
}

fn effect(text: &str) -> Result<Effect, String> {
    match text {
        "NoSchedule" => Ok(Effect::NoSchedule),
        "PreferNoSchedule" => Ok(Effect::PreferNoSchedule),
        "NoExecute" => Ok(Effect::NoExecute),
        _ => Err(format!("the effect is `{}`; effects are NoSchedule, PreferNoSchedule and NoExecute", shown(text))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn term(value: Value) -> Result<NodeSelectorTerm, String> {
        node_term(&serde_json::from_value(value).expect("a term"), &mut NamePool::default())
    }

    #[test]
    fn every_operator_is_compiled() {
        let one = |operator: &str, values: &[&str]| {
            let term = term(json!({"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}));
            term.map(|term| term.labels[0].test.clone())
        };
        assert_eq!(one("In", &["a", "b"]), Ok(Test::In(vec!["a".into(), "b".into()])));
        assert_eq!(one("NotIn", &["a"]), Ok(Test::NotIn(vec!["a".into()])));
        assert_eq!(one("Exists", &[]), Ok(Test::Exists));
        assert_eq!(one("DoesNotExist", &[]), Ok(Test::DoesNotExist));
        assert_eq!(one("Gt", &["5"]), Ok(Test::Gt(5)));
        assert_eq!(one("Lt", &["-5"]), Ok(Test::Lt(-5)));
        for (operator, values, part) in [
            ("In", &[][..], "at least one value"),
            ("NotIn", &[], "at least one value"),
            ("Exists", &["a"], "takes no values"),
            ("Gt", &["a"], "takes an integer"),
            ("Lt", &["1", "2"], "takes one value, here are 2"),
            ("in", &["a"], "unknown operator `in`"),
        ] {
            let message = one(operator, values).expect_err(operator);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn the_only_field_is_the_name() {
        let field = |key: &str, operator: &str, values: &[&str]| {
            term(json!({"matchFields": [{"key": key, "operator": operator, "values": values}]}))
        };
        assert_eq!(field("metadata.name", "In", &["n1"]).expect("a term").name, [Test::In(vec!["n1".into()])]);
        assert!(field("metadata.uid", "In", &["x"]).is_err());
        assert!(field("metadata.name", "Exists", &[]).is_err());
    }

    #[test]
    fn tolerations_are_read_as_kubernetes_reads_them() {
        let read =
            |value: Value| toleration(&serde_json::from_value(value).expect("a toleration"), &mut NamePool::default());
        let all = read(json!({"operator": "Exists"})).expect("tolerates all");
        assert!(all.tolerates("a", "b", Effect::NoExecute));
        let equal = read(json!({"key": "a", "value": "b", "effect": "NoSchedule"})).expect("equal by default");
        assert!(equal.tolerates("a", "b", Effect::NoSchedule));
        assert!(!equal.tolerates("a", "c", Effect::NoSchedule));
        assert!(!equal.tolerates("a", "b", Effect::NoExecute));
        for bad in [json!({}), json!({"key": "a", "operator": "Gt", "value": "1"}), json!({"key": "a", "effect": "No"})]
        {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn label_selectors_have_no_comparisons() {
        let read =
            |value: Value| selector(&serde_json::from_value(value).expect("a selector"), &mut NamePool::default());
        let both = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]});
        assert_eq!(read(both).expect("a selector").0.len(), 2);
        assert!(read(json!({"matchExpressions": [{"key": "c", "operator": "Gt", "values": ["1"]}]})).is_err());
    }
}
