//! What is written for the claims of a pod before it is bound: the finalizer, the allocation, and that the pod may use it.
//!
//! Each write names the version of the claim that it is based on, so that of two schedulers one is refused. The answer to a
//! conflict is to read the claim again.

use krafla_framework::{BindingPlugin, Later, ObjectApi, ObjectRef, PodRef};
use krafla_model::dra::{AllocatedDevice, Allocation, DeviceChoice, MAX_CONSUMERS, device_choices};
use krafla_model::labels::{NodeSelectorTerm, Test};
use serde_json::{Map, Value, json};

use super::DynamicResources;

/// Keeps a claim from being deleted while it has devices.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
const API_VERSION: &str = "resource.k8s.io/v1";

/// How often a claim is read again after somebody else has changed it.
const TRIES: usize = 5;

/// The side of [`DynamicResources`] that talks to the API.
pub(crate) struct ClaimWriter;

impl BindingPlugin for ClaimWriter {
    fn name(&self) -> &'static str {
        DynamicResources::NAME
    }

    fn pre_bind<'a>(&'a self, api: &'a dyn ObjectApi, pod: &'a PodRef, _: &'a str) -> Later<'a, Result<(), String>> {
        Box::pin(async move {
            let chosen = api.claims(DynamicResources::NAME).map(|claims| &claims.choices[..]).unwrap_or_default();
            for choice in device_choices(chosen) {
                again(|| write(api, pod, choice)).await?;
            }
            Ok(())
        })
    }

    /// The pod may not use its claims after all; a claim that nobody may use has no devices.
    fn undo_pre_bind<'a>(&'a self, api: &'a dyn ObjectApi, pod: &'a PodRef, _: &'a str) -> Later<'a, ()> {
        Box::pin(async move {
            let chosen = api.claims(DynamicResources::NAME).map(|claims| &claims.choices[..]).unwrap_or_default();
            for choice in device_choices(chosen) {
                // One that cannot be taken back is the claim controller's once the pod is gone.
                let _ = again(|| take_back(api, pod, choice)).await;
            }
        })
    }
}

/// Tries until nobody comes between.
async fn again<'a>(mut write: impl FnMut() -> Later<'a, Result<(), String>>) -> Result<(), String> {
    let mut tried = 1;
    loop {
        match write().await {
            Err(why) if tried < TRIES && is_conflict(&why) => tried += 1,
            done => return done,
        }
    }
}

/// The words of an API server whose object has moved on.
fn is_conflict(why: &str) -> bool {
    why.contains("Conflict") || why.contains("the object has been modified")
}

fn object(choice: &DeviceChoice) -> ObjectRef<'_> {
    ObjectRef {
        api_version: API_VERSION,
        kind: "ResourceClaim",
        plural: "resourceclaims",
        namespace: Some(&choice.namespace),
        name: &choice.name,
    }
}

async fn read(api: &dyn ObjectApi, choice: &DeviceChoice) -> Result<Value, String> {
    let name = choice.name.as_str();
    let text = api.get(object(choice)).await?.ok_or_else(|| format!("resourceclaim {name:?} not found"))?;
    let claim: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if claim.pointer("/metadata/uid").and_then(Value::as_str) != Some(&*choice.uid) {
        return Err(format!("resourceclaim {name:?} is gone, and another has its name"));
    }
    Ok(claim)
}

fn write<'a>(api: &'a dyn ObjectApi, pod: &'a PodRef, choice: &'a DeviceChoice) -> Later<'a, Result<(), String>> {
    Box::pin(async move {
        let mut claim = read(api, choice).await?;
        let name = choice.name.as_str();
        if claim.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
            return Err(format!("resourceclaim {name:?} is being deleted"));
        }
        let mut status = Map::new();
        match claim.pointer("/status/allocation").filter(|allocation| !allocation.is_null()) {
            Some(there) if is_the_same(there, &choice.allocation) => {}
            Some(_) => return Err(format!("resourceclaim {name:?} has been given other devices meanwhile")),
            None => {
                let mut finalizers = list(&claim, "/metadata/finalizers");
                if !finalizers.iter().any(|one| one == FINALIZER) {
                    finalizers.push(FINALIZER.into());
                    let patch = json!({ "metadata": { "resourceVersion": version(&claim), "finalizers": finalizers } });
                    api.patch(object(choice), &patch.to_string()).await?;
                    claim = read(api, choice).await?;
                    if claim.pointer("/status/allocation").is_some_and(|allocation| !allocation.is_null()) {
                        return Err("Conflict: the claim was given devices meanwhile".to_owned());
                    }
                }
                status.insert("allocation".to_owned(), allocation(api, &claim, &choice.allocation).await?);
            }
        }
        let mut reserved = list(&claim, "/status/reservedFor");
        if !reserved.iter().any(|one| one["uid"] == *pod.uid) {
            if reserved.len() >= MAX_CONSUMERS {
                return Err(format!("resourceclaim {name:?} is used by {MAX_CONSUMERS} pods, the most there may be"));
            }
            reserved.push(json!({ "resource": "pods", "name": &*pod.name, "uid": &*pod.uid }));
            status.insert("reservedFor".to_owned(), reserved.into());
        }
        if status.is_empty() {
            return Ok(());
        }
        let patch = json!({ "metadata": { "resourceVersion": version(&claim) }, "status": status });
        api.patch_status(object(choice), &patch.to_string()).await
    })
}

fn take_back<'a>(api: &'a dyn ObjectApi, pod: &'a PodRef, choice: &'a DeviceChoice) -> Later<'a, Result<(), String>> {
    Box::pin(async move {
        let claim = read(api, choice).await?;
        let mut reserved = list(&claim, "/status/reservedFor");
        let before = reserved.len();
        reserved.retain(|one| one["uid"] != *pod.uid);
        if reserved.len() == before {
            return Ok(());
        }
        let status = match reserved.is_empty() {
            true => json!({ "reservedFor": null, "allocation": null }),
            false => json!({ "reservedFor": reserved }),
        };
        let patch = json!({ "metadata": { "resourceVersion": version(&claim) }, "status": status });
        api.patch_status(object(choice), &patch.to_string()).await
    })
}

fn version(claim: &Value) -> &Value {
    claim.pointer("/metadata/resourceVersion").unwrap_or(&Value::Null)
}

fn list(value: &Value, path: &str) -> Vec<Value> {
    value.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Whether an allocation that is there has the devices that were chosen.
fn is_the_same(there: &Value, chosen: &Allocation) -> bool {
    let there = list(there, "/devices/results");
    let same = |(one, device): (&Value, &AllocatedDevice)| {
        one["driver"] == *device.driver && one["pool"] == *device.pool && one["device"] == *device.device
    };
    there.len() == chosen.devices.len() && there.iter().zip(&chosen.devices).all(same)
}

/// The allocation as the API has it: the devices, the nodes, and what class and claim have for the drivers.
async fn allocation(api: &dyn ObjectApi, claim: &Value, chosen: &Allocation) -> Result<Value, String> {
    let results: Vec<Value> = chosen.devices.iter().map(|device| result(claim, device)).collect();
    let mut config: Vec<Value> = Vec::new();
    for (request, class) in &chosen.configured {
        let class_object = ObjectRef {
            api_version: API_VERSION,
            kind: "DeviceClass",
            plural: "deviceclasses",
            namespace: None,
            name: class,
        };
        let text = api.get(class_object).await?.ok_or_else(|| format!("deviceclass {:?} not found", class.as_str()))?;
        let class: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        for one in list(&class, "/spec/config") {
            config.push(json!({ "source": "FromClass", "requests": [&**request], "opaque": one["opaque"] }));
        }
    }
    for one in list(claim, "/spec/devices/config") {
        let mut entry = json!({ "source": "FromClaim", "opaque": one["opaque"] });
        if let Some(requests) = one.get("requests") {
            entry["requests"] = requests.clone();
        }
        config.push(entry);
    }
    let mut devices = json!({ "results": results });
    if !config.is_empty() {
        devices["config"] = config.into();
    }
    let mut allocation = json!({ "devices": devices });
    if let Some(terms) = &chosen.nodes {
        let terms: Vec<Value> = terms.iter().map(term).collect();
        allocation["nodeSelector"] = json!({ "nodeSelectorTerms": terms });
    }
    Ok(allocation)
}

fn result(claim: &Value, device: &AllocatedDevice) -> Value {
    let mut result = json!({
        "request": &*device.request, "driver": &*device.driver, "pool": &*device.pool, "device": &*device.device,
    });
    if device.admin_access {
        result["adminAccess"] = true.into();
    }
    if let Some(share) = &device.share {
        result["shareID"] = json!(&**share);
        let consumed: Map<String, Value> =
            device.consumed.iter().map(|(name, amount)| (name.to_string(), amount.to_string().into())).collect();
        result["consumedCapacity"] = consumed.into();
    }
    if let Some(tolerations) = tolerations(claim, &device.request) {
        result["tolerations"] = tolerations;
    }
    result
}

/// The tolerations of a request, or of the alternative that was taken, as the claim has them.
fn tolerations(claim: &Value, request: &str) -> Option<Value> {
    let (name, alternative) = request.split_once('/').map_or((request, None), |(name, one)| (name, Some(one)));
    let requests = list(claim, "/spec/devices/requests");
    let request = requests.iter().find(|one| one["name"] == name)?;
    let found = match alternative {
        None => request.pointer("/exactly/tolerations")?.clone(),
        Some(alternative) => {
            let all = list(request, "/firstAvailable");
            all.iter().find(|one| one["name"] == alternative)?.get("tolerations")?.clone()
        }
    };
    Some(found).filter(|found| found.as_array().is_some_and(|all| !all.is_empty()))
}

fn term(term: &NodeSelectorTerm) -> Value {
    let requirement = |key: &str, test: &Test| {
        let texts = |all: &[krafla_model::Name]| all.iter().map(|one| (**one).into()).collect::<Vec<Value>>();
        let (operator, values) = match test {
            Test::In(all) => ("In", texts(all)),
            Test::NotIn(all) => ("NotIn", texts(all)),
            Test::Exists => ("Exists", Vec::new()),
            Test::DoesNotExist => ("DoesNotExist", Vec::new()),
            Test::Gt(bound) => ("Gt", vec![bound.to_string().into()]),
            Test::Lt(bound) => ("Lt", vec![bound.to_string().into()]),
        };
        let mut requirement = json!({ "key": key, "operator": operator });
        if !values.is_empty() {
            requirement["values"] = values.into();
        }
        requirement
    };
    let mut written = Map::new();
    if !term.labels.is_empty() {
        let all: Vec<Value> = term.labels.iter().map(|one| requirement(&one.key, &one.test)).collect();
        written.insert("matchExpressions".to_owned(), all.into());
    }
    if !term.name.is_empty() {
        let all: Vec<Value> = term.name.iter().map(|test| requirement("metadata.name", test)).collect();
        written.insert("matchFields".to_owned(), all.into());
    }
    written.into()
}
