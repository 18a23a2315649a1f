//! Dynamic resource allocation: DeviceClasses, ResourceSlices and ResourceClaims.
//!
//! Decided here, for what cannot be read: a part of a claim that is asked for makes pods wait for it, with the reason; a
//! device, or a counter, is left out of its slice, so that nobody is given it; an expression is kept as it is, and
//! whoever needs it says what is wrong with it.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1 as resource;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use krafla_model::dra::{
    AllocatedDevice, Allocation, Alternative, Attribute, Capacity, ClaimSource, DeviceAccess, DeviceClassSpec,
    DeviceConstraint, DeviceRequest, DeviceSpec, PodClaim, Quantity, ResourceClaimSpec, ResourceSliceSpec,
};
use krafla_model::name::NamePool;
use krafla_model::taints::{Taint, Toleration};
use krafla_model::{Name, Problem};

use crate::converter::Converter;
use crate::duration::shown;
use crate::report::Report;
use crate::selectors;

impl Converter {
    /// Reads a DeviceClass.
    pub fn device_class(&mut self, class: &resource::DeviceClass) -> (Option<DeviceClassSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("deviceclass", &class.metadata);
        let spec = class.spec.as_ref();
        let read = self.identity(&class.metadata, &mut report).map(|identity| DeviceClassSpec {
            name: identity.name,
            selectors: expressions(spec.and_then(|spec| spec.selectors.as_deref()), &mut self.names),
            has_config: spec.is_some_and(|spec| spec.config.iter().flatten().next().is_some()),
        });
        if spec.is_some_and(|spec| spec.extended_resource_name.is_some()) {
            report.say("has an extendedResourceName, which is not looked at; pods get its devices by claims only");
        }
        (read, report.into_problems())
    }

    /// Reads a ResourceSlice.
    pub fn resource_slice(&mut self, slice: &resource::ResourceSlice) -> (Option<ResourceSliceSpec>, Vec<Problem>) {
        let mut report = Report::cluster_wide("resourceslice", &slice.metadata);
        let read = self.read_slice(slice, &mut report);
        (read, report.into_problems())
    }

    fn read_slice(&mut self, slice: &resource::ResourceSlice, report: &mut Report<'_>) -> Option<ResourceSliceSpec> {
        let identity = self.identity(&slice.metadata, report)?;
        let (spec, names) = (&slice.spec, &mut self.names);
        let all = (spec.node_name.as_deref(), spec.node_selector.as_ref(), spec.all_nodes);
        let access = access(all, names).unwrap_or_else(|why| {
            report.say(format_args!("nodeSelector: {why}; no node has its devices"));
            DeviceAccess::Nowhere
        });
        let mut devices = Vec::new();
        for device in spec.devices.iter().flatten() {
            match read_device(device, spec.per_device_node_selection == Some(true), &access, names) {
                Ok(device) => devices.push(device),
                Err(why) => report.say(format_args!("device {}: {why}; the device is left out", shown(&device.name))),
            }
        }
        let mut counters = Vec::new();
        for set in spec.shared_counters.iter().flatten() {
            for (name, counter) in &set.counters {
                match quantity(&counter.value) {
                    Ok(value) => counters.push((names.intern(&set.name), names.intern(name), value)),
                    Err(why) => report.say(format_args!("counter {}/{}: {why}; it is left out", set.name, name)),
                }
            }
        }
        Some(ResourceSliceSpec {
            name: identity.name,
            driver: names.intern(&spec.driver),
            pool: names.intern(&spec.pool.name),
            generation: spec.pool.generation,
            slices: spec.pool.resource_slice_count,
            devices,
            counters,
        })
    }

    /// Reads a ResourceClaim.
    pub fn resource_claim(&mut self, claim: &resource::ResourceClaim) -> (Option<ResourceClaimSpec>, Vec<Problem>) {
        let mut report = Report::namespaced("resourceclaim", &claim.metadata);
        let read = self.read_device_claim(claim, &mut report);
        (read, report.into_problems())
    }

    /// Reads a ResourceClaimTemplate, as a claim that has its name.
    pub fn claim_template(
        &mut self,
        template: &resource::ResourceClaimTemplate,
    ) -> (Option<ResourceClaimSpec>, Vec<Problem>) {
        let claim = resource::ResourceClaim {
            metadata: template.metadata.clone(),
            spec: template.spec.as_ref().and_then(|spec| spec.spec.clone()),
            status: None,
        };
        let mut report = Report::namespaced("resourceclaimtemplate", &template.metadata);
        let read = self.read_device_claim(&claim, &mut report);
        (read, report.into_problems())
    }

    fn read_device_claim(
        &mut self,
        claim: &resource::ResourceClaim,
        report: &mut Report<'_>,
    ) -> Option<ResourceClaimSpec> {
        let identity = self.identity(&claim.metadata, report)?;
        let names = &mut self.names;
        let mut unreadable = None;
        let mut requests = Vec::new();
        let devices = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
        for request in devices.and_then(|devices| devices.requests.as_ref()).into_iter().flatten() {
            match read_request(request, names) {
                Ok(request) => requests.push(request),
                Err(why) => {
                    let why = format!("request {}: {why}", shown(&request.name));
                    report.say(format_args!("{why}; pods that need the claim wait"));
                    unreadable.get_or_insert(Name::from(why));
                }
            }
        }
        let mut constraints = Vec::new();
        for constraint in devices.and_then(|devices| devices.constraints.as_ref()).into_iter().flatten() {
            let (attribute, distinct) = match (&constraint.match_attribute, &constraint.distinct_attribute) {
                (Some(attribute), None) => (attribute, false),
                (None, Some(attribute)) => (attribute, true),
                _ => {
                    let why = "a constraint has neither matchAttribute nor distinctAttribute, or both";
                    report.say(format_args!("{why}; pods that need the claim wait"));
                    unreadable.get_or_insert(why.into());
                    continue;
                }
            };
            let about = constraint.requests.iter().flatten().map(|name| names.intern(name)).collect();
            constraints.push(DeviceConstraint { requests: about, attribute: names.intern(attribute), distinct });
        }
        let status = claim.status.as_ref();
        let allocation = status.and_then(|status| status.allocation.as_ref());
        let reserved_for = status.and_then(|status| status.reserved_for.as_ref()).into_iter().flatten();
        let owner = crate::pod::controller_of(&claim.metadata).filter(|owner| owner.kind == "Pod");
        Some(ResourceClaimSpec {
            namespace: identity.namespace,
            name: identity.name,
            uid: identity.uid,
            deleting: claim.metadata.deletion_timestamp.is_some(),
            owner: owner.map(|owner| Name::from(&owner.uid)),
            requests,
            constraints,
            unreadable,
            allocation: allocation.map(|allocation| Arc::new(read_allocation(allocation, names, report))),
            reserved_for: reserved_for.map(|consumer| Name::from(&consumer.uid)).collect(),
        })
    }
}

/// The claims that a pod's template has, and what has become of them.
pub(crate) fn claims_of(pod: &core::Pod, names: &mut NamePool) -> (Vec<ClaimSource>, Vec<PodClaim>) {
    let all = || pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let made = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten());
    let sources = all().filter_map(|one| {
        let direct = one.resource_claim_name.as_deref().map(|name| ClaimSource::Claim(names.intern(name)));
        direct.or_else(|| {
            one.resource_claim_template_name.as_deref().map(|name| ClaimSource::Template(names.intern(name)))
        })
    });
    let sources = sources.collect();
    let claims = all().filter_map(|one| {
        let name = names.intern(&one.name);
        if let Some(claim) = &one.resource_claim_name {
            return Some(PodClaim { name, claim: Some(names.intern(claim)), generated: false });
        }
        match made.clone().find(|status| status.name == one.name) {
            // The controller found that none is needed.
            Some(status) => {
                Some(PodClaim { name, claim: Some(status.resource_claim_name.as_deref()?.into()), generated: true })
            }
            None => Some(PodClaim { name, claim: None, generated: true }),
        }
    });
    (sources, claims.collect())
}

fn quantity(written: &Written) -> Result<Quantity, String> {
    Quantity::parse(&written.0).ok_or_else(|| format!("`{}` is no quantity", shown(&written.0)))
}

fn expressions(selectors: Option<&[resource::DeviceSelector]>, names: &mut NamePool) -> Vec<Name> {
    // A selector of a kind that is not known here selects nothing.
    let text = |one: &resource::DeviceSelector| one.cel.as_ref().map_or("false", |cel| &cel.expression).to_owned();
    selectors.unwrap_or_default().iter().map(|one| names.intern(&text(one))).collect()
}

fn access(
    (node, selector, all): (Option<&str>, Option<&core::NodeSelector>, Option<bool>),
    names: &mut NamePool,
) -> Result<DeviceAccess, String> {
    Ok(match (node.filter(|node| !node.is_empty()), selector, all) {
        (Some(node), ..) => DeviceAccess::Node(names.intern(node)),
        (_, Some(selector), _) => {
            let terms = selector.node_selector_terms.iter().map(|term| selectors::node_term(term, names));
            DeviceAccess::Selector(terms.collect::<Result<_, _>>()?)
        }
        (_, _, Some(true)) => DeviceAccess::Everywhere,
        _ => DeviceAccess::Nowhere,
    })
}

fn read_device(
    device: &resource::Device,
    own_access: bool,
    of_slice: &DeviceAccess,
    names: &mut NamePool,
) -> Result<DeviceSpec, String> {
    let access = if own_access {
        access((device.node_name.as_deref(), device.node_selector.as_ref(), device.all_nodes), names)?
    } else {
        of_slice.clone()
    };
    let mut attributes = Vec::new();
    for (name, attribute) in device.attributes.iter().flatten() {
        let value = match attribute {
            resource::DeviceAttribute { bool: Some(value), .. } => Attribute::Bool(*value),
            resource::DeviceAttribute { int: Some(value), .. } => Attribute::Int(*value),
            resource::DeviceAttribute { string: Some(text), .. } => Attribute::Text(names.intern(text)),
            resource::DeviceAttribute { version: Some(text), .. } => Attribute::Version(names.intern(text)),
            // Lists are of an alpha feature: an expression that asks for one finds no such key.
            _ => continue,
        };
        attributes.push((names.intern(name), value));
    }
    let mut capacity = Vec::new();
    for (name, amount) in device.capacity.iter().flatten() {
        let amount = read_capacity(amount).map_err(|why| format!("capacity {}: {why}", shown(name)))?;
        capacity.push((names.intern(name), amount));
    }
    let mut taints = Vec::new();
    for taint in device.taints.iter().flatten().filter(|taint| taint.effect != "None") {
        let taint = core::Taint {
            key: taint.key.clone(),
            value: taint.value.clone(),
            effect: taint.effect.clone(),
            ..core::Taint::default()
        };
        let taint: Taint = selectors::taint(&taint, names)?;
        taints.push(taint);
    }
    let mut consumes = Vec::new();
    for set in device.consumes_counters.iter().flatten() {
        for (name, counter) in &set.counters {
            consumes.push((names.intern(&set.counter_set), names.intern(name), quantity(&counter.value)?));
        }
    }
    let prepares = |conditions: &Option<Vec<String>>| conditions.iter().flatten().next().is_some();
    Ok(DeviceSpec {
        name: names.intern(&device.name),
        access,
        attributes,
        capacity,
        taints,
        consumes,
        shared: device.allow_multiple_allocations == Some(true),
        needs_preparation: prepares(&device.binding_conditions),
    })
}

fn read_capacity(capacity: &resource::DeviceCapacity) -> Result<Capacity, String> {
    let policy = capacity.request_policy.as_ref();
    let some = |written: Option<&Written>| written.map(quantity).transpose();
    let values = policy.and_then(|policy| policy.valid_values.as_ref()).into_iter().flatten().map(quantity);
    let mut values: Vec<Quantity> = values.collect::<Result<_, _>>()?;
    values.sort_unstable();
    let range = policy.and_then(|policy| policy.valid_range.as_ref());
    let range = range
        .map(|range| Ok::<_, String>((quantity(&range.min)?, some(range.max.as_ref())?, some(range.step.as_ref())?)));
    Ok(Capacity {
        value: quantity(&capacity.value)?,
        default: some(policy.and_then(|policy| policy.default.as_ref()))?,
        values,
        range: range.transpose()?,
    })
}

fn read_request(request: &resource::DeviceRequest, names: &mut NamePool) -> Result<DeviceRequest, String> {
    let alternatives = match (&request.exactly, &request.first_available) {
        (Some(one), None) => {
            let parts = Parts {
                name: "",
                class: &one.device_class_name,
                mode: one.allocation_mode.as_deref(),
                count: one.count,
                admin_access: one.admin_access == Some(true),
                selectors: one.selectors.as_deref(),
                tolerations: one.tolerations.as_deref(),
                capacity: one.capacity.as_ref(),
            };
            vec![parts.read(names)?]
        }
        (None, Some(all)) if !all.is_empty() => {
            let parts = all.iter().map(|one| Parts {
                name: &one.name,
                class: &one.device_class_name,
                mode: one.allocation_mode.as_deref(),
                count: one.count,
                admin_access: false,
                selectors: one.selectors.as_deref(),
                tolerations: one.tolerations.as_deref(),
                capacity: one.capacity.as_ref(),
            });
            parts.map(|parts| parts.read(names)).collect::<Result<_, _>>()?
        }
        _ => return Err("it has neither `exactly` nor `firstAvailable` in a form that is known".to_owned()),
    };
    Ok(DeviceRequest { name: names.intern(&request.name), alternatives })
}

/// What `exactly` and an entry of `firstAvailable` have in common.
struct Parts<'a> {
    name: &'a str,
    class: &'a str,
    mode: Option<&'a str>,
    count: Option<i64>,
    admin_access: bool,
    selectors: Option<&'a [resource::DeviceSelector]>,
    tolerations: Option<&'a [resource::DeviceToleration]>,
    capacity: Option<&'a resource::CapacityRequirements>,
}

impl Parts<'_> {
    fn read(&self, names: &mut NamePool) -> Result<Alternative, String> {
        let count = match self.mode {
            Some("All") => None,
            None | Some("" | "ExactCount") => match self.count.unwrap_or(1) {
                0 => Some(1),
                count => Some(u32::try_from(count).map_err(|_| format!("the count is {count}"))?),
            },
            Some(mode) => return Err(format!("the allocationMode is `{}`; modes are ExactCount and All", shown(mode))),
        };
        let mut tolerations = Vec::new();
        for one in self.tolerations.unwrap_or_default() {
            let toleration = core::Toleration {
                key: one.key.clone(),
                operator: one.operator.clone(),
                value: one.value.clone(),
                effect: one.effect.clone().filter(|effect| effect != "None"),
                ..core::Toleration::default()
            };
            let toleration: Toleration = selectors::toleration(&toleration, names)?;
            tolerations.push(toleration);
        }
        let mut capacity = Vec::new();
        for (name, amount) in self.capacity.iter().flat_map(|all| all.requests.iter().flatten()) {
            let amount = quantity(amount).map_err(|why| format!("capacity {}: {why}", shown(name)))?;
            capacity.push((names.intern(name), amount));
        }
        Ok(Alternative {
            name: names.intern(self.name),
            class: names.intern(self.class),
            selectors: expressions(self.selectors, names),
            count,
            admin_access: self.admin_access,
            tolerations,
            capacity,
        })
    }
}

/// An allocation that is there: what cannot be read of it is passed over, its devices are in use all the same.
fn read_allocation(
    allocation: &resource::AllocationResult,
    names: &mut NamePool,
    report: &mut Report<'_>,
) -> Allocation {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    let devices = results.map(|one| AllocatedDevice {
        request: names.intern(&one.request),
        driver: names.intern(&one.driver),
        pool: names.intern(&one.pool),
        device: names.intern(&one.device),
        admin_access: one.admin_access == Some(true),
        consumed: {
            let all = one.consumed_capacity.iter().flatten();
            all.filter_map(|(name, amount)| Some((names.intern(name), quantity(amount).ok()?))).collect()
        },
        share: one.share_id.as_deref().map(Name::from),
    });
    let devices = devices.collect();
    let nodes = allocation.node_selector.as_ref().map(|selector| {
        let terms = selector.node_selector_terms.iter().map(|term| selectors::node_term(term, names));
        let terms: Result<Vec<_>, _> = terms.collect();
        terms.unwrap_or_else(|why| {
            report.say(format_args!("status.allocation.nodeSelector: {why}; no node is taken to reach its devices"));
            Vec::new()
        })
    });
    Allocation { devices, nodes, configured: Vec::new() }
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
