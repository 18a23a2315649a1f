//! Parts that schemas are made of, and how rules in CEL are put into them.

use std::borrow::Cow;

use schemars::transform::Transform;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A name as DNS has it: of an object, or of the queue that a PodGroup names.
pub(crate) const DNS_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// A quantity, as the Kubernetes project's generator writes it into schemas.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The longest quantity and the most resources of one list that rules look at. The API server reckons what a rule may
/// cost from the largest input, and refuses a schema whose rules could cost too much. Nodes offer a dozen resources.
const MOST_CHARACTERS: u32 = 64;
const MOST_RESOURCES: u32 = 128;

/// Of a field: a number of 32 bits, as Volcano's types have it.
pub(crate) fn int32(schema: &mut Schema) {
    schema.insert("format".to_owned(), json!("int32"));
}

/// Of a field: a count of things.
pub(crate) fn count(schema: &mut Schema) {
    int32(schema);
    schema.insert("minimum".to_owned(), json!(0));
}

/// Of a list: it is replaced as a whole by server-side apply.
pub(crate) fn atomic(schema: &mut Schema) {
    schema.insert("x-kubernetes-list-type".to_owned(), json!("atomic"));
}

/// Amounts by resource.
pub(crate) fn amounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": quantity()})
}

/// Amounts by resource that rules look at, none of them negative.
pub(crate) fn limits(_: &mut SchemaGenerator) -> Schema {
    let mut quantity = quantity();
    quantity["maxLength"] = json!(MOST_CHARACTERS);
    let mut schema =
        json_schema!({"type": "object", "additionalProperties": quantity, "maxProperties": MOST_RESOURCES});
    Rule::new(
        format!("self.all(r, !{}.isLessThan(quantity('0')))", as_quantity("self[r]")),
        "amounts must not be negative; leave a resource out to set none",
    )
    .transform(&mut schema);
    schema
}

fn quantity() -> Value {
    json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY,
        "x-kubernetes-int-or-string": true,
    })
}

/// Counts by name.
pub(crate) fn counts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}})
}

/// A point in time.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// Kubernetes' selector by labels.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {
                "description": "Labels that must be there with these values.",
                "type": "object",
                "additionalProperties": {"type": "string"},
            },
            "matchExpressions": {
                "description": "Requirements, all of which must hold.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"description": "The label.", "type": "string"},
                        "operator": {"description": "In, NotIn, Exists or DoesNotExist.", "type": "string"},
                        "values": {
                            "description": "The values, for In and NotIn.",
                            "type": "array",
                            "items": {"type": "string"},
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
                "x-kubernetes-list-type": "atomic",
            },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

/// A rule in CEL that the API server holds a value to, and what it says of one that breaks it.
///
/// A value that an update does not touch may go on breaking a rule (Kubernetes' ratcheting). So a rule belongs as deep
/// as what it looks at allows: one at the root would refuse every status update of an object that is older than it.
#[derive(Clone)]
pub(crate) struct Rule {
    rule: String,
    message: Cow<'static, str>,
    message_expression: Option<String>,
    field_path: Option<Cow<'static, str>>,
    optional_old_self: bool,
}

impl Rule {
    /// A rule that must be true, and what is said if it is not: what to do.
    pub(crate) fn new(rule: impl Into<String>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            rule: rule.into(),
            message: message.into(),
            message_expression: None,
            field_path: None,
            optional_old_self: false,
        }
    }

    /// Points at a field of the value.
    pub(crate) fn at(self, field_path: impl Into<Cow<'static, str>>) -> Self {
        Self { field_path: Some(field_path.into()), ..self }
    }

    /// Is asked at creation too, with `oldSelf` an optional.
    pub(crate) fn also_of_new(self) -> Self {
        Self { optional_old_self: true, ..self }
    }

    /// That each amount of `less` is at most that of `more`, where both are set.
    pub(crate) fn at_most(less: &str, more: &str) -> Self {
        let over = format!(
            "r in self.{more} &&\n  {}.isGreaterThan({})",
            as_quantity(&format!("self.{less}[r]")),
            as_quantity(&format!("self.{more}[r]"))
        );
        Self {
            message_expression: Some(format!(
                "'{less} of ' + self.{less}.filter(r, {over})[0] +\n' must not be above {more}; lower it, or raise {more}'"
            )),
            ..Self::new(
                format!("!({} && {}) ||\nself.{less}.all(r, !({over}))", has("self", less), has("self", more)),
                format!("{less} must not be above {more}; lower it, or raise {more}"),
            )
        }
        .at(format!(".{less}"))
    }
}

/// CEL that says whether each step of a path is there.
pub(crate) fn has(object: &str, path: &str) -> String {
    let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    let steps: Vec<String> = ends.map(|end| format!("has({object}.{})", &path[..end])).collect();
    steps.join(" && ")
}

/// CEL that reads an int-or-string as a quantity.
fn as_quantity(value: &str) -> String {
    format!("quantity(string({value}))")
}

impl Transform for Rule {
    fn transform(&mut self, schema: &mut Schema) {
        let mut rule = json!({"rule": self.rule, "message": self.message});
        if let Some(expression) = &self.message_expression {
            rule["messageExpression"] = json!(expression);
        }
        if let Some(path) = &self.field_path {
            rule["fieldPath"] = json!(path);
        }
        if self.optional_old_self {
            rule["optionalOldSelf"] = json!(true);
        }
        let rules = schema.ensure_object().entry("x-kubernetes-validations").or_insert_with(|| json!([]));
        if let Some(rules) = rules.as_array_mut() {
            rules.push(rule);
        }
    }
}
