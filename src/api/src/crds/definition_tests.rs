use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::{
    CoschedulingFields, GroupConditionFields, HyperNodeFields, NumatopologyFields, PodGroupFields,
    PodGroupStatusFields, QueueFields, QueueStatusFields, groups,
};
use super::*;
use crate::object::Object;

/// The definition of a kind of a group.
fn of(name: &str) -> CustomResourceDefinition {
    let found = definitions().into_iter().find(|definition| definition.metadata.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("no definition {name}"))
}

/// The schemas of all definitions.
fn schemas() -> BTreeMap<String, Value> {
    let mut schemas = BTreeMap::new();
    for definition in definitions() {
        let [version] = definition.spec.versions.as_slice() else { panic!("one version") };
        let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
        let name = definition.metadata.name.expect("a name");
        schemas.insert(name, serde_json::to_value(schema).expect("JSON"));
    }
    schemas
}

/// Calls `look` for each schema in a schema, with its path: properties by name, `[]` for items, `{}` for values.
fn walk(schema: &Value, path: &str, look: &mut impl FnMut(&str, &Value)) {
    look(path, schema);
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        walk(part, &format!("{path}.{name}"), look);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            walk(&schema[key], &format!("{path}{mark}"), look);
        }
    }
}

/// The part of a schema at a path as `walk` has it.
fn part(schema: &Value, path: &str) -> Value {
    let mut found = None;
    walk(schema, "", &mut |at, part| {
        if at == path {
            found = Some(part.clone());
        }
    });
    found.unwrap_or_else(|| panic!("no field {path}"))
}

const POD_GROUP: &str = "podgroups.scheduling.volcano.sh";
const QUEUE: &str = "queues.scheduling.volcano.sh";
const HYPER_NODE: &str = "hypernodes.topology.volcano.sh";
const NUMATOPOLOGY: &str = "numatopologies.nodeinfo.volcano.sh";
const COSCHEDULING: &str = "podgroups.scheduling.x-k8s.io";

#[test]
fn names_scope_subresources_and_columns_are_those_that_clients_know() {
    /// What clients know of a kind.
    struct Face(&'static str, &'static str, &'static str, &'static [&'static str], &'static str, bool, Columns);
    type Columns = &'static [(&'static str, &'static str, &'static str, i32)];
    const AGE: &str = ".metadata.creationTimestamp";
    let cases = [
        Face(
            "elasticquotas.scheduling.x-k8s.io",
            "v1alpha1",
            "ElasticQuota",
            &["eq", "eqs"],
            "Namespaced",
            true,
            &[("Used", "string", ".status.used", 0), ("Max", "string", ".spec.max", 0), ("Age", "date", AGE, 0)],
        ),
        Face(
            HYPER_NODE,
            "v1alpha1",
            "HyperNode",
            &["hn"],
            "Cluster",
            true,
            &[
                ("Tier", "string", ".spec.tier", 0),
                ("TierName", "string", ".spec.tierName", 0),
                ("NodeCount", "integer", ".status.nodeCount", 0),
                ("Age", "date", AGE, 0),
            ],
        ),
        Face(NUMATOPOLOGY, "v1alpha1", "Numatopology", &["numatopo"], "Cluster", false, &[]),
        Face(
            POD_GROUP,
            "v1beta1",
            "PodGroup",
            &["pg", "podgroup-v1beta1"],
            "Namespaced",
            false,
            &[
                ("STATUS", "string", ".status.phase", 0),
                ("minMember", "integer", ".spec.minMember", 0),
                ("RUNNINGS", "integer", ".status.running", 0),
                ("AGE", "date", AGE, 0),
                ("QUEUE", "string", ".spec.queue", 1),
            ],
        ),
        Face(
            COSCHEDULING,
            "v1alpha1",
            "PodGroup",
            &["pg", "pgs"],
            "Namespaced",
            true,
            &[
                ("Phase", "string", ".status.phase", 0),
                ("MinMember", "integer", ".spec.minMember", 0),
                ("Running", "integer", ".status.running", 0),
                ("Succeeded", "integer", ".status.succeeded", 0),
                ("Failed", "integer", ".status.failed", 0),
                ("Age", "date", AGE, 0),
            ],
        ),
        Face(
            QUEUE,
            "v1beta1",
            "Queue",
            &["q", "queue-v1beta1"],
            "Cluster",
            true,
            &[("PARENT", "string", ".spec.parent", 0)],
        ),
    ];
    let names: Vec<_> = definitions().into_iter().filter_map(|definition| definition.metadata.name).collect();
    assert_eq!(names, cases.each_ref().map(|case| case.0));
    for Face(name, version, kind, short, scope, status, columns) in cases {
        let definition = of(name);
        let (plural, group) = name.split_once('.').expect("plural.group");
        assert_eq!((definition.spec.group.as_str(), definition.spec.scope.as_str()), (group, scope), "{name}");
        let names = &definition.spec.names;
        assert_eq!((names.plural.as_str(), names.kind.as_str()), (plural, kind), "{name}");
        assert_eq!(names.singular, Some(kind.to_lowercase()), "{name}");
        assert_eq!(names.list_kind, Some(format!("{kind}List")), "{name}");
        assert_eq!(names.short_names.as_deref().unwrap_or_default(), short, "{name}");
        let [only] = definition.spec.versions.as_slice() else { panic!("{name} has one version") };
        assert_eq!((only.name.as_str(), only.served, only.storage), (version, true, true), "{name}");
        let has_status = only.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some());
        assert_eq!(has_status, status, "{name}");
        let found: Vec<_> = only
            .additional_printer_columns
            .iter()
            .flatten()
            .map(|column| {
                let priority = column.priority.unwrap_or(0);
                (column.name.as_str(), column.type_.as_str(), column.json_path.as_str(), priority)
            })
            .collect();
        assert_eq!(found, columns, "{name}");
        let annotations = definition.metadata.annotations.expect("annotations");
        assert_eq!(annotations["helm.sh/resource-policy"], "keep", "{name}");
    }
}

#[test]
fn fields_have_the_types_defaults_and_ranges_of_volcano() {
    let schemas = schemas();
    let int = |min: i64| json!({"type": "integer", "format": "int32", "minimum": min as f64});
    let with = |mut schema: Value, key: &str, value: Value| {
        schema[key] = value;
        schema
    };
    let dns = json!({"type": "string", "maxLength": 253, "pattern": crate::crds::schema::DNS_NAME});
    let text = json!({"type": "string", "maxLength": 253});
    let choice = |texts: &[&str]| json!({"type": "string", "enum": texts});
    let mode = with(choice(&["hard", "soft"]), "default", json!("hard"));
    let cases = [
        (POD_GROUP, ".spec.minMember", int(0)),
        (POD_GROUP, ".spec.minTaskMember{}", json!({"type": "integer", "format": "int32"})),
        (POD_GROUP, ".spec.queue", with(dns.clone(), "default", json!("default"))),
        (POD_GROUP, ".spec.priorityClassName", text.clone()),
        (POD_GROUP, ".spec.networkTopology.mode", mode.clone()),
        (POD_GROUP, ".spec.networkTopology.highestTierName", text.clone()),
        (POD_GROUP, ".spec.subGroupPolicy[].networkTopology.mode", mode),
        (POD_GROUP, ".spec.subGroupPolicy[].subGroupSize", with(int(1), "default", json!(1))),
        (POD_GROUP, ".spec.subGroupPolicy[].minSubGroups", with(int(0), "default", json!(0))),
        (POD_GROUP, ".status.phase", choice(&["Pending", "Running", "Unknown", "Inqueue", "Completed"])),
        (POD_GROUP, ".status.running", int(0)),
        (POD_GROUP, ".status.conditions[].lastTransitionTime", json!({"type": "string", "format": "date-time"})),
        (POD_GROUP, ".status.conditions[].transitionID", json!({"type": "string"})),
        (QUEUE, ".spec.weight", with(with(int(1), "default", json!(1)), "maximum", json!(65_535.0))),
        (QUEUE, ".spec.parent", dns.clone()),
        (QUEUE, ".spec.priority", int(0)),
        (QUEUE, ".spec.reclaimable", json!({"type": "boolean"})),
        (QUEUE, ".spec.type", text.clone()),
        (QUEUE, ".spec.dequeueStrategy", with(choice(&["fifo", "traverse"]), "default", json!("traverse"))),
        (QUEUE, ".spec.extendClusters[].weight", json!({"type": "integer", "format": "int32"})),
        (QUEUE, ".status.state", choice(&["Open", "Closed", "Closing", "Unknown"])),
        (QUEUE, ".status.inqueue", int(0)),
        (QUEUE, ".status.reservation.nodes[]", json!({"type": "string"})),
        (HYPER_NODE, ".spec.tier", json!({"type": "integer", "format": "int64", "minimum": 0.0})),
        (HYPER_NODE, ".spec.tierName", text),
        (HYPER_NODE, ".spec.members[].type", choice(&["Node", "HyperNode"])),
        (HYPER_NODE, ".spec.members[].selector.exactMatch.name", with(dns, "minLength", json!(1))),
        (HYPER_NODE, ".status.conditions[].status", choice(&["True", "False", "Unknown"])),
        (NUMATOPOLOGY, ".spec.podAllocations[].containerAllocations[].allocations{}", json!({"type": "string"})),
        (COSCHEDULING, ".spec.minMember", int(1)),
        (COSCHEDULING, ".spec.scheduleTimeoutSeconds", json!({"type": "integer", "format": "int32"})),
    ];
    for (name, path, wanted) in cases {
        let mut found = part(&schemas[name], path);
        found.as_object_mut().expect("a schema").remove("description");
        assert_eq!(found, wanted, "{name} {path}");
    }
}

#[test]
fn amounts_are_ints_or_strings_of_kubernetes_form() {
    let schemas = schemas();
    let lists = [
        (POD_GROUP, ".spec.minResources"),
        (QUEUE, ".spec.capability"),
        (QUEUE, ".spec.deserved"),
        (QUEUE, ".spec.guarantee.resource"),
        (QUEUE, ".spec.extendClusters[].capacity"),
        (QUEUE, ".status.allocated"),
        (QUEUE, ".status.reservation.resource"),
        (COSCHEDULING, ".spec.minResources"),
    ];
    for (name, path) in lists {
        let amount = part(&schemas[name], &format!("{path}{{}}"));
        assert_eq!(amount["x-kubernetes-int-or-string"], true, "{name} {path}");
        assert_eq!(amount["anyOf"], json!([{"type": "integer"}, {"type": "string"}]), "{name} {path}");
        assert!(amount["pattern"].as_str().is_some_and(|pattern| pattern.contains("[KMGTPE]i")), "{name} {path}");
    }
}

#[test]
fn only_the_fields_that_volcano_requires_are_required() {
    let mut required = Vec::new();
    for (name, schema) in schemas() {
        walk(&schema, "", &mut |path, part| {
            for field in part["required"].as_array().into_iter().flatten() {
                required.push(format!("{name} {path}.{}", field.as_str().expect("a name")));
            }
        });
    }
    let selectors = |at: String| ["key", "operator"].map(|field| format!("{at}.matchExpressions[].{field}"));
    let mut wanted: Vec<String> = [
        ".spec.tier",
        ".spec.members[].type",
        ".spec.members[].selector.exactMatch.name",
        ".spec.members[].selector.regexMatch.pattern",
        ".status.conditions[].type",
        ".status.conditions[].status",
        ".status.conditions[].lastTransitionTime",
        ".status.conditions[].reason",
        ".status.conditions[].message",
    ]
    .map(|path| format!("{HYPER_NODE} {path}"))
    .into();
    wanted.extend(selectors(format!("{HYPER_NODE} .spec.members[].selector.labelMatch")));
    wanted.extend(selectors(format!("{POD_GROUP} .spec.subGroupPolicy[].labelSelector")));
    required.sort();
    wanted.sort();
    assert_eq!(required, wanted);
}

#[test]
fn schemas_are_structural_and_say_what_each_field_is() {
    for (name, schema) in schemas() {
        walk(&schema, "", &mut |path, part| {
            let int_or_string = part["x-kubernetes-int-or-string"] == true;
            assert!(part["type"].is_string() || int_or_string, "{name} {path} has one type: {part}");
            assert!(part.get("nullable").is_none() && part.get("$ref").is_none(), "{name} {path}: {part}");
            let default = part.get("default");
            assert!(default.is_none_or(|default| !default.is_null() && !default.is_object()), "{name} {path}: {part}");
            let (parent, last) = path.rsplit_once('.').unwrap_or_default();
            let is_root = parent.is_empty() && ["", "apiVersion", "kind", "metadata"].contains(&last);
            let is_field = !path.ends_with(['}', ']']);
            assert!(is_root || !is_field || part["description"].is_string(), "{name} {path} has a description");
        });
    }
}

/// The API's type of schemas leaves out what it does not know.
#[test]
fn nothing_of_a_schema_is_lost() {
    fn floats(value: &mut Value) {
        match value {
            Value::Number(number) => *value = json!(number.as_f64()),
            Value::Object(map) => map.values_mut().for_each(floats),
            Value::Array(list) => list.iter_mut().for_each(floats),
            _ => {}
        }
    }
    for mut made in [
        schema::<PodGroup>(),
        schema::<Queue>(),
        schema::<HyperNode>(),
        schema::<Numatopology>(),
        schema::<CoschedulingGroup>(),
        schema::<ElasticQuota>(),
    ] {
        let props: JSONSchemaProps = serde_json::from_value(made.clone()).expect("a schema");
        let mut kept = serde_json::to_value(props).expect("JSON");
        floats(&mut made);
        floats(&mut kept);
        assert_eq!(made, kept);
    }
}

#[test]
fn rules_stand_where_an_untouched_part_may_go_on_breaking_them() {
    let mut rules = Vec::new();
    for (name, schema) in schemas() {
        walk(&schema, "", &mut |path, part| {
            for rule in part["x-kubernetes-validations"].as_array().into_iter().flatten() {
                let text = |key: &str| rule[key].as_str().unwrap_or_default().to_owned();
                rules.push((name.clone(), path.to_owned(), text("fieldPath"), text("message")));
            }
        });
    }
    let negative = "amounts must not be negative; leave a resource out to set none";
    let over = |less: &str, more: &str| format!("{less} must not be above {more}; lower it, or raise {more}");
    let root = |field: &str| {
        format!("the root queue is the whole cluster, so its {field} cannot be changed; set it at a queue below root")
    };
    let tiers = "set highestTierAllowed or highestTierName, not both";
    let own_parent = "a queue cannot be its own parent; name another queue, or leave parent out";
    let wanted: Vec<(&str, &str, &str, String)> = vec![
        (
            HYPER_NODE,
            ".spec.members[]",
            ".selector.labelMatch",
            "labelMatch selects nodes; set type to Node, or select HyperNodes by exactMatch or regexMatch".into(),
        ),
        (HYPER_NODE, ".spec.members[].selector", "", "set exactly one of exactMatch, regexMatch and labelMatch".into()),
        (
            HYPER_NODE,
            ".spec.members[].selector.regexMatch.pattern",
            "",
            "must be a regular expression in the syntax of RE2".into(),
        ),
        (POD_GROUP, ".spec.networkTopology", "", tiers.into()),
        (POD_GROUP, ".spec.subGroupPolicy[].networkTopology", "", tiers.into()),
        (QUEUE, "", ".spec.parent", own_parent.into()),
        (QUEUE, "", ".spec.capability", root("capability")),
        (QUEUE, "", ".spec.deserved", root("deserved")),
        (QUEUE, "", ".spec.guarantee", root("guarantee")),
        (QUEUE, ".spec", ".deserved", over("deserved", "capability")),
        (QUEUE, ".spec", ".guarantee.resource", over("guarantee.resource", "deserved")),
        (QUEUE, ".spec", ".guarantee.resource", over("guarantee.resource", "capability")),
        (QUEUE, ".spec.capability", "", negative.into()),
        (QUEUE, ".spec.deserved", "", negative.into()),
        (QUEUE, ".spec.guarantee.resource", "", negative.into()),
    ];
    let wanted: Vec<(String, String, String, String)> =
        wanted.into_iter().map(|(name, path, at, message)| (name.into(), path.into(), at.into(), message)).collect();
    assert_eq!(rules, wanted);
}

#[test]
fn rules_read_as_a_person_would_write_them() {
    let rules = part(&schemas()[QUEUE], ".spec")["x-kubernetes-validations"].clone();
    assert_eq!(
        rules[1]["rule"],
        "!(has(self.guarantee) && has(self.guarantee.resource) && has(self.deserved)) ||\n\
         self.guarantee.resource.all(r, !(r in self.deserved &&\n  \
         quantity(string(self.guarantee.resource[r])).isGreaterThan(quantity(string(self.deserved[r])))))"
    );
}

/// Writes an object, and reads it again.
fn written<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(object: &T) -> Value {
    let value = serde_json::to_value(object).expect("JSON");
    assert_eq!(&serde_json::from_value::<T>(value.clone()).expect("the same"), object);
    value
}

#[test]
fn objects_are_written_with_their_version_and_kind_and_read_as_the_same() {
    let group = PodGroup {
        spec: Some(PodGroupFields { min_member: Some(2), ..Default::default() }),
        status: Some(PodGroupStatusFields {
            phase: Some("Running".into()),
            conditions: Some(vec![GroupConditionFields {
                r#type: Some("Scheduled".into()),
                transition_id: Some("7".into()),
                last_transition_time: Some("2026-01-01T00:00:00Z".into()),
                ..Default::default()
            }]),
            ..Default::default()
        }),
        ..Default::default()
    };
    assert_eq!(
        written(&group),
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {},
            "spec": {"minMember": 2},
            "status": {"phase": "Running", "conditions": [
                {"type": "Scheduled", "transitionID": "7", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ]},
        })
    );
    let queue = Queue {
        spec: Some(QueueFields { r#type: Some("x".into()), ..Default::default() }),
        status: Some(QueueStatusFields { state: Some("Open".into()), inqueue: Some(1), ..Default::default() }),
        ..Default::default()
    };
    assert_eq!(written(&queue)["status"], json!({"state": "Open", "inqueue": 1}));
    let node = HyperNode { spec: Some(HyperNodeFields { tier: Some(1), ..Default::default() }), ..Default::default() };
    assert_eq!(written(&node)["apiVersion"], "topology.volcano.sh/v1alpha1");
    let numa = Numatopology { spec: Some(NumatopologyFields::default()), ..Default::default() };
    assert_eq!(written(&numa)["kind"], "Numatopology");
    let gang = CoschedulingGroup { spec: Some(CoschedulingFields::default()), ..Default::default() };
    for (value, wanted) in [
        (written(&group), Object::PodGroup(Box::new(group.clone()))),
        (written(&queue), Object::Queue(Box::new(queue.clone()))),
        (written(&gang), Object::CoschedulingGroup(Box::new(gang.clone()))),
    ] {
        assert_eq!(Object::read(&value), Ok((wanted, Vec::new())));
    }
}

#[test]
fn the_groups_that_are_read_are_those_that_are_defined() {
    assert_eq!(groups::VOLCANO.strip_suffix('/'), Some(PodGroup::GROUP));
    assert_eq!(groups::VOLCANO.strip_suffix('/'), Some(Queue::GROUP));
    assert_eq!(groups::COSCHEDULING.strip_suffix('/'), Some(CoschedulingGroup::GROUP));
}

#[test]
fn reading_takes_nulls_unknown_fields_and_numbers_that_the_schema_refuses() {
    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("read")
    }
    let queue: Queue = read(json!({
        "apiVersion": "scheduling.volcano.sh/v1beta2", "kind": "Queue",
        "spec": {"weight": -5_000_000_000_i64, "capability": null, "newField": {}, "guarantee": {"resource": null}},
        "status": {"state": null, "allocated": null, "pending": -1, "reservation": null},
    }));
    assert_eq!(queue.spec.and_then(|spec| spec.weight), Some(-5_000_000_000));
    let group: PodGroup = read(json!({
        "spec": {"subGroupPolicy": [{"labelSelector": null, "matchLabelKeys": null, "subGroupSize": -1}]},
        "status": {"phase": "Odd", "conditions": [{"type": null, "lastTransitionTime": "yesterday"}], "running": null},
    }));
    assert_eq!(group.status.and_then(|status| status.phase).as_deref(), Some("Odd"));
    let node: HyperNode = read(json!({"spec": {"members": [{"selector": {"labelMatch": {}}}, {}], "tier": null}}));
    assert_eq!(node.spec.and_then(|spec| spec.members).map(|members| members.len()), Some(2));
    let numa: Numatopology = read(json!({"spec": {"cpuDetail": {"0": {}}, "numares": {"cpu": {"capacity": -1}}}}));
    assert!(numa.spec.is_some());
    assert_eq!(read::<Queue>(json!({"spec": null, "status": null})), Queue::default());
}
