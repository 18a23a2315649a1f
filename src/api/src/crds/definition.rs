//! The CustomResourceDefinitions, made of the types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::{CoschedulingGroup, ElasticQuota, HyperNode, Numatopology, PodGroup, Queue};

/// The definitions of the custom resources that Krafla uses, for an API server: Volcano's PodGroup, Queue, HyperNode and
/// Numatopology, and scheduler-plugins' PodGroup and ElasticQuota, in the order of their names.
///
/// They take every object that Volcano's own definitions take, but for what Volcano's webhooks refuse and a rule in the
/// schema can tell; docs/crds.md has the list.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    const AGE: &str = ".metadata.creationTimestamp";
    vec![
        definition::<ElasticQuota>(
            &["eq", "eqs"],
            Status::Subresource,
            vec![
                column("Used", "string", ".status.used"),
                column("Max", "string", ".spec.max"),
                column("Age", "date", AGE),
            ],
        ),
        definition::<HyperNode>(
            &["hn"],
            Status::Subresource,
            vec![
                column("Tier", "string", ".spec.tier"),
                column("TierName", "string", ".spec.tierName"),
                column("NodeCount", "integer", ".status.nodeCount"),
                column("Age", "date", AGE),
            ],
        ),
        definition::<Numatopology>(&["numatopo"], Status::Inline, Vec::new()),
        // Clients create PodGroups with their phase in one request, so its status is written as the spec is.
        definition::<PodGroup>(
            &["pg", "podgroup-v1beta1"],
            Status::Inline,
            vec![
                column("STATUS", "string", ".status.phase"),
                column("minMember", "integer", ".spec.minMember"),
                column("RUNNINGS", "integer", ".status.running"),
                column("AGE", "date", AGE),
                CustomResourceColumnDefinition { priority: Some(1), ..column("QUEUE", "string", ".spec.queue") },
            ],
        ),
        definition::<CoschedulingGroup>(
            &["pg", "pgs"],
            Status::Subresource,
            vec![
                column("Phase", "string", ".status.phase"),
                column("MinMember", "integer", ".spec.minMember"),
                column("Running", "integer", ".status.running"),
                column("Succeeded", "integer", ".status.succeeded"),
                column("Failed", "integer", ".status.failed"),
                column("Age", "date", AGE),
            ],
        ),
        definition::<Queue>(
            &["q", "queue-v1beta1"],
            Status::Subresource,
            vec![column("PARENT", "string", ".spec.parent")],
        ),
    ]
}

/// How the status of a kind is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    /// By requests of its own, which leave the spec alone.
    Subresource,
    /// With the rest of the object, if it has one at all.
    Inline,
}

/// The scope of a kind, as a definition names it.
trait Scope {
    const NAME: &'static str;
}

impl Scope for ClusterResourceScope {
    const NAME: &'static str = "Cluster";
}

impl Scope for NamespaceResourceScope {
    const NAME: &'static str = "Namespaced";
}

fn definition<T: Resource<Scope: Scope> + JsonSchema>(
    short_names: &[&str],
    status: Status,
    columns: Vec<CustomResourceColumnDefinition>,
) -> CustomResourceDefinition {
    let subresources = CustomResourceSubresources {
        status: Some(CustomResourceSubresourceStatus(json!({}))),
        ..CustomResourceSubresources::default()
    };
    let version = CustomResourceDefinitionVersion {
        name: T::VERSION.to_owned(),
        served: true,
        storage: true,
        additional_printer_columns: Some(columns).filter(|columns| !columns.is_empty()),
        subresources: Some(subresources).filter(|_| status == Status::Subresource),
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema_props::<T>()) }),
        ..CustomResourceDefinitionVersion::default()
    };
    CustomResourceDefinition {
        metadata: ObjectMeta {
            name: Some(format!("{}.{}", T::URL_PATH_SEGMENT, T::GROUP)),
            // Helm leaves them, and with them all objects of their kinds, when a chart is removed.
            annotations: Some([("helm.sh/resource-policy".to_owned(), "keep".to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: CustomResourceDefinitionSpec {
            group: T::GROUP.to_owned(),
            names: CustomResourceDefinitionNames {
                kind: T::KIND.to_owned(),
                list_kind: Some(format!("{}List", T::KIND)),
                plural: T::URL_PATH_SEGMENT.to_owned(),
                singular: Some(T::KIND.to_lowercase()),
                short_names: Some(short_names.iter().map(|&name| name.to_owned()).collect()),
                ..CustomResourceDefinitionNames::default()
            },
            scope: <T::Scope as Scope>::NAME.to_owned(),
            versions: vec![version],
            ..CustomResourceDefinitionSpec::default()
        },
        status: None,
    }
}

fn column(name: &str, kind: &str, path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: kind.to_owned(),
        json_path: path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    }
}

fn schema_props<T: JsonSchema>() -> JSONSchemaProps {
    serde_json::from_value(schema::<T>()).expect("a structural schema is one of the API's schemas")
}

/// The schema of an object as Kubernetes has schemas: written out in place, with one type each, and no nulls.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(structural);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, kind) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
            properties.insert(name.to_owned(), json!({"type": kind}));
        }
    }
    schema.to_value()
}

/// Leaves of an optional type the type: to leave a field out is to have none.
fn structural(schema: &mut Schema) {
    transform_subschemas(&mut structural, schema);
    let Some(map) = schema.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = map.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            let kind = kind.clone();
            map.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.retain(|choice| choice != &json!({"type": "null"}));
        if let [Value::Object(choice)] = choices.as_slice() {
            let choice = choice.clone();
            map.remove("anyOf");
            // What is said at the field stands before what is said at its type.
            for (key, value) in choice {
                map.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
