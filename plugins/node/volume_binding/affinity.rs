//! Whether a volume can be used on a node, by the objects as the API has them: a driver may have made a volume for another
//! place than it was asked to.

use krafla_model::labels::Test;
use serde_json::Value;

/// Whether a PersistentVolume can be used on a Node. What cannot be read does not match.
pub(super) fn suits(volume: &Value, node: &Value) -> bool {
    let Some(required) = volume.pointer("/spec/nodeAffinity/required") else { return true };
    let terms = required.get("nodeSelectorTerms").and_then(Value::as_array);
    terms.into_iter().flatten().any(|term| {
        let conditions = term.get("matchExpressions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let by_field = term.get("matchFields").and_then(Value::as_array).is_some_and(|fields| !fields.is_empty());
        !conditions.is_empty() && !by_field && conditions.iter().all(|one| holds(one, node).unwrap_or(false))
    })
}

fn holds(condition: &Value, node: &Value) -> Option<bool> {
    let key = condition.get("key")?.as_str()?;
    let values = condition.get("values").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts = || values.iter().filter_map(Value::as_str).map(Into::into).collect();
    let bound = || values.first().and_then(Value::as_str).and_then(|value| value.parse().ok());
    let test = match condition.get("operator")?.as_str()? {
        "In" => Test::In(texts()),
        "NotIn" => Test::NotIn(texts()),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::DoesNotExist,
        "Gt" => Test::Gt(bound()?),
        "Lt" => Test::Lt(bound()?),
        _ => return None,
    };
    let label = node.get("metadata").and_then(|meta| meta.get("labels")?.get(key)?.as_str());
    Some(test.passes(label))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_is_used_where_one_of_its_terms_matches() {
        let node = json!({"metadata": {"labels": {"zone": "a", "n": "5"}}});
        let volume = |terms: Value| json!({"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
        let one = |operator: &str, values: &[&str]| json!([{"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}]);
        for (terms, suited) in [
            (one("In", &["a", "b"]), true),
            (one("In", &["b"]), false),
            (one("NotIn", &["a"]), false),
            (one("Exists", &[]), true),
            (one("DoesNotExist", &[]), false),
            (json!([{"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["4"]}]}]), true),
            (json!([{"matchExpressions": [{"key": "n", "operator": "Lt", "values": ["4"]}]}]), false),
            (json!([{"matchExpressions": []}]), false),
            (json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]), false),
            (json!([]), false),
        ] {
            assert_eq!(suits(&volume(terms.clone()), &node), suited, "{terms}");
        }
        assert!(suits(&json!({"spec": {}}), &node));
    }
}
