//! The law: reading what was written gives the same value.

use std::sync::Arc;

use krafla_model::budget::{Aim, BudgetSpec, Share};
use krafla_model::dra::{ClaimSource, PodClaim as DeviceClaim};
use krafla_model::job::JobPhase;
use krafla_model::labels::{NodeSelectorTerm, Selector};
use krafla_model::pod::HostPort;
use krafla_model::pod_affinity::{Namespaces, PodTerm, PodTerms, SpreadConstraint, Workload};
use krafla_model::priority::PriorityClassSpec;
use krafla_model::queue::{HierarchyLevel, NodeGroupAffinity, QueueState, ROOT_QUEUE};
use krafla_model::resources::GPU_NAME;
use krafla_model::storage::{Disk, PodClaim, PodVolumes};
use krafla_model::subgroup::{NetworkTopology, SubGroupPolicy, TopologyMode};
use krafla_model::taints::{Effect, Match, Taint, Toleration};
use krafla_model::{ElasticQuotaSpec, NodeSpec, PodGroupSpec, PodPhase, PodShape, PodSpec, QueueSpec, QuotaSpec};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::Converter;

fn name() -> impl Strategy<Value = Name> {
    "[a-z][a-z0-9]{0,5}".prop_map(Name::from)
}

fn perhaps() -> impl Strategy<Value = Name> {
    prop_oneof![Just(Name::default()), name()]
}

/// As an API server keeps it.
fn seconds() -> impl Strategy<Value = Time> {
    (0..4_000_000_000_i64).prop_map(|s| Time(s * 1_000))
}

fn labels() -> impl Strategy<Value = Labels> {
    btree_map(name(), perhaps(), 0..3).prop_map(Labels::from_iter)
}

fn some_of(names: &'static [&'static str], least: i64) -> impl Strategy<Value = Amounts> {
    btree_map(select(names), least..=quantity::MAX_AMOUNT, 0..4)
        .prop_map(|all| all.into_iter().fold(Amounts::default(), |sum, (name, amount)| sum.with(name, amount)))
}

const OF_NODES: &[&str] = &["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", GPU_NAME, "example.com/x"];
const OF_PODS: &[&str] = &["cpu", "memory", "ephemeral-storage", "hugepages-2Mi", GPU_NAME, "example.com/x"];
const OF_QUOTAS: &[&str] = &["cpu", "pods", "requests.cpu", "limits.memory", "count/pods", "requests.nvidia.com/gpu"];

fn set_test() -> impl Strategy<Value = Test> {
    prop_oneof![vec(name(), 1..3).prop_map(Test::In), vec(name(), 1..3).prop_map(Test::NotIn)]
}

fn label_test() -> impl Strategy<Value = Test> {
    prop_oneof![set_test(), Just(Test::Exists), Just(Test::DoesNotExist)]
}

fn requirement(test: impl Strategy<Value = Test>) -> impl Strategy<Value = Requirement> {
    (name(), test).prop_map(|(key, test)| Requirement { key, test })
}

fn term(least: usize) -> impl Strategy<Value = NodeSelectorTerm> {
    let any = prop_oneof![label_test(), any::<i64>().prop_map(Test::Gt), any::<i64>().prop_map(Test::Lt)];
    (vec(requirement(any), least..3), vec(set_test(), 0..2))
        .prop_map(|(labels, name)| NodeSelectorTerm { labels, name })
}

fn an_effect() -> impl Strategy<Value = Effect> {
    select(&[Effect::NoSchedule, Effect::PreferNoSchedule, Effect::NoExecute][..])
}

fn a_toleration() -> impl Strategy<Value = Toleration> {
    let test = prop_oneof![Just(Match::Exists), perhaps().prop_map(Match::Equal)];
    let with_key = (name(), test).prop_map(|(key, test)| (Some(key), test));
    let (any_key, effect) = (Just((None, Match::Exists)), option::of(an_effect()));
    (prop_oneof![with_key, any_key], effect).prop_map(|((key, test), effect)| Toleration { key, test, effect })
}

fn a_port() -> impl Strategy<Value = HostPort> {
    let protocol = select(&["TCP", "UDP", "SCTP"][..]).prop_map(Name::from);
    let ip = select(&["", "10.0.0.1"][..]).prop_map(Name::from);
    (ip, protocol, 1..=u16::MAX).prop_map(|(ip, protocol, port)| HostPort { ip, protocol, port })
}

fn a_pod_term() -> impl Strategy<Value = PodTerm> {
    let selector = || vec(requirement(label_test()), 0..3).prop_map(Selector);
    let listed = btree_set(name(), 0..3).prop_map(|names| names.into_iter().collect::<Vec<_>>());
    (name(), option::of(selector()), listed, option::of(selector())).prop_map(|(topology_key, own, names, by_label)| {
        // A term that names no namespace looks at the pod's own.
        let names = if names.is_empty() && by_label.is_none() { vec!["elsewhere".into()] } else { names };
        PodTerm { topology_key, selector: own, namespaces: Namespaces { names, selector: by_label } }
    })
}

fn pod_terms() -> impl Strategy<Value = PodTerms> {
    (vec(a_pod_term(), 0..2), vec((1..=100, a_pod_term()), 0..2))
        .prop_map(|(required, preferred)| PodTerms { required, preferred })
}

fn a_spread() -> impl Strategy<Value = SpreadConstraint> {
    let selector = option::of(vec(requirement(label_test()), 0..3).prop_map(Selector));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (1..9_u32, name(), selector, 1..5_u32, flags).prop_map(
        |(max_skew, topology_key, selector, min_domains, (must_hold, honors_affinity, honors_taints))| {
            SpreadConstraint {
                max_skew,
                topology_key,
                must_hold,
                selector,
                min_domains,
                honors_affinity,
                honors_taints,
            }
        },
    )
}

fn a_workload() -> impl Strategy<Value = Workload> {
    let kind = select(&["ReplicaSet", "ReplicationController", "StatefulSet"][..]).prop_map(Name::from);
    (kind, name()).prop_map(|(kind, name)| Workload { kind, name })
}

fn a_disk() -> impl Strategy<Value = Disk> {
    const PLUGINS: [&str; 5] = ["azure-disk", "azure-file", "cinder", "portworx-volume", "vsphere-volume"];
    let monitors = btree_set(name(), 1..3).prop_map(|monitors| monitors.into_iter().collect::<Vec<_>>());
    let plugin = select(&PLUGINS[..]).prop_map(|plugin| Name::from(format!("kubernetes.io/{plugin}")));
    prop_oneof![
        (name(), any::<bool>()).prop_map(|(name, read_only)| Disk::GcePersistentDisk { name, read_only }),
        name().prop_map(|id| Disk::AwsElasticBlockStore { id }),
        (name(), any::<bool>()).prop_map(|(iqn, read_only)| Disk::Iscsi { iqn, read_only }),
        (monitors, name(), name(), any::<bool>()).prop_map(|(monitors, pool, image, read_only)| Disk::Rbd {
            monitors,
            pool,
            image,
            read_only
        }),
        (plugin, name()).prop_map(|(plugin, handle)| Disk::InTree { plugin, handle }),
    ]
}

/// Claims by name; the pod that ephemeral ones are for is not known yet.
fn some_volumes() -> impl Strategy<Value = PodVolumes> {
    let claims = btree_set(name(), 0..3).prop_flat_map(|names| {
        let n = names.len();
        (Just(names), vec(any::<bool>(), n))
    });
    (claims, vec(a_disk(), 0..3)).prop_map(|((names, ephemeral), disks)| {
        let claims = names.into_iter().zip(ephemeral).map(|(name, ephemeral)| PodClaim { name, ephemeral });
        PodVolumes { claims: claims.collect(), disks }
    })
}

fn a_shape() -> impl Strategy<Value = PodShape> {
    let image = ("[a-z]{1,3}", 0..3).prop_map(|(name, tag)| Name::from(format!("reg:5000/{name}:{tag}")));
    let images = vec(image, 0..3).prop_map(|mut images| {
        images.sort();
        images
    });
    let ports = btree_set(a_port(), 0..3).prop_map(|ports| ports.into_iter().collect::<Vec<_>>());
    let share = prop_oneof![Just(0_u16), 1..=999_u16];
    (
        (name(), labels(), some_of(OF_PODS, 1), perhaps(), labels()),
        (option::of(vec(term(0), 0..3)), vec((1..=100, term(1)), 0..3), vec(a_toleration(), 0..3)),
        (pod_terms(), pod_terms(), vec(a_spread(), 0..2), option::of(a_workload()), name()),
        (ports, images, share, any::<bool>(), any::<bool>(), perhaps(), 0..10_000_000_i64, any::<bool>()),
        (option::of((0..1_000_000_i64, 0..1_i64 << 50)), some_volumes(), subsequence(FEATURES.to_vec(), 0..=2)),
    )
        .prop_map(|(own, places, neighbours, rest, (scored_request, volumes, features))| {
            let features = features.into_iter().map(Name::from).collect();
            let (pod_affinity, pod_anti_affinity, spread, workload, scheduler_name) = neighbours;
            let workload = workload.filter(|_| spread.is_empty());
            // The only owner that is written is one that spreading looks at.
            let controlled = workload.is_some();
            let (namespace, labels, mut request, role, node_selector) = own;
            let (required_affinity, preferred_affinity, tolerations) = places;
            let (
                host_ports,
                images,
                gpu_share_milli,
                protected,
                never_preempts,
                priority_class,
                cooldown_ms,
                revocable,
            ) = rest;
            if gpu_share_milli > 0 {
                request.set_amount(&GPU_NAME.into(), i64::from(gpu_share_milli));
            }
            PodShape {
                namespace,
                scheduler_name,
                annotations: Labels::default(),
                pod_affinity,
                pod_anti_affinity,
                spread,
                workload,
                labels,
                request,
                scored_request,
                role,
                node_selector,
                required_affinity,
                preferred_affinity,
                tolerations,
                host_ports,
                claims: Vec::new(),
                features,
                images,
                gpu_share_milli,
                protected,
                asks_its_queue: never_preempts,
                never_preempts,
                priority_class,
                cooldown_ms,
                revocable,
                controlled,
                volumes,
            }
        })
}

/// Features that fields of a pod need, in the order in which they are looked for.
const FEATURES: [&str; 2] = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"];

/// What a pod says of a claim of devices, and what has become of it.
fn a_claim() -> impl Strategy<Value = (ClaimSource, Option<Name>)> {
    let template = (name(), option::of(name())).prop_map(|(template, claim)| (ClaimSource::Template(template), claim));
    prop_oneof![name().prop_map(|claim| (ClaimSource::Claim(claim.clone()), Some(claim))), template]
}

fn a_pod() -> impl Strategy<Value = PodSpec> {
    let phases = [PodPhase::Pending, PodPhase::Running, PodPhase::Succeeded, PodPhase::Failed, PodPhase::Unknown];
    (
        (name(), name(), option::of(name()), a_shape(), seconds(), any::<i32>()),
        (vec(name(), 0..3), option::of(name()), option::of(name()), select(phases.to_vec()), any::<bool>()),
        (option::of(seconds()), option::of(0..1_000_000_000_i64), option::of(seconds())),
        btree_map(name(), a_claim(), 0..3),
    )
        .prop_map(|(own, place, (started, attained_ms, scheduled_at), claims)| {
            let named = |(name, (source, claim)): (Name, (ClaimSource, Option<Name>))| {
                let generated = matches!(source, ClaimSource::Template(_));
                (source, DeviceClaim { name, claim, generated })
            };
            let claims: Vec<(ClaimSource, DeviceClaim)> = claims.into_iter().map(named).collect();
            let (uid, name, group, mut shape, created, priority) = own;
            for claim in shape.volumes.claims.iter_mut().filter(|claim| claim.ephemeral) {
                claim.name = format!("{name}-{}", claim.name).into();
            }
            shape.claims = claims.iter().map(|(source, _)| source.clone()).collect();
            let (gates, node, nominated, phase, deleting) = place;
            PodSpec {
                uid,
                name,
                group,
                shape: Arc::new(shape),
                created,
                priority,
                gates,
                node,
                nominated,
                phase,
                deleting,
                started,
                attained_ms,
                details: None,
                claims: claims.iter().map(|(_, claim)| claim.clone()).collect(),
                scheduled_at,
            }
        })
}

fn an_aim() -> impl Strategy<Value = Aim> {
    let share = || prop_oneof![(0..=1_000_u32).prop_map(Share::Count), (0..=200_u32).prop_map(Share::Percent)];
    prop_oneof![share().prop_map(Aim::MinAvailable), share().prop_map(Aim::MaxUnavailable)]
}

fn a_budget() -> impl Strategy<Value = BudgetSpec> {
    let selector = vec(requirement(label_test()), 0..3).prop_map(Selector);
    let status = (0..100_u32, btree_set(name(), 0..3)).prop_map(|(allowed, pods)| (Some(allowed), pods));
    let status = prop_oneof![Just((None, Default::default())), status];
    (name(), name(), selector, an_aim(), status).prop_map(|(namespace, name, selector, aim, (allowed, disrupted))| {
        let disrupted = disrupted.into_iter().collect();
        BudgetSpec { namespace, name, selector: Some(selector), aim: Some(aim), allowed, disrupted }
    })
}

fn a_topology() -> impl Strategy<Value = NetworkTopology> {
    let mode = select(&[TopologyMode::Hard, TopologyMode::Soft][..]);
    let tier = prop_oneof![
        Just((None, None)),
        any::<u32>().prop_map(|tier| (Some(tier), None)),
        name().prop_map(|name| (None, Some(name))),
    ];
    (mode, tier).prop_map(|(mode, (highest_tier, highest_tier_name))| NetworkTopology {
        mode,
        highest_tier,
        highest_tier_name,
    })
}

fn a_sub_group() -> impl Strategy<Value = SubGroupPolicy> {
    let selector = vec(requirement(label_test()), 0..3).prop_map(Selector);
    (perhaps(), option::of(a_topology()), any::<u32>(), any::<u32>(), option::of(selector), vec(name(), 0..3)).prop_map(
        |(name, topology, size, min_sub_groups, selector, match_label_keys)| SubGroupPolicy {
            name,
            topology,
            size,
            min_sub_groups,
            selector,
            match_label_keys,
        },
    )
}

fn a_group() -> impl Strategy<Value = PodGroupSpec> {
    let phases =
        [JobPhase::Pending, JobPhase::Inqueue, JobPhase::Running, JobPhase::Unknown, JobPhase::Completed].to_vec();
    let roles = btree_map(name(), any::<u32>(), 0..3).prop_map(|roles| roles.into_iter().collect::<Vec<_>>());
    (
        (name(), name(), name(), name(), seconds(), perhaps(), any::<u32>(), roles),
        (option::of(some_of(OF_QUOTAS, 0)), option::of(a_topology()), vec(a_sub_group(), 0..3), select(phases)),
        (
            option::of(1..1_000_000_000_i64),
            1..=u32::MAX,
            option::of(any::<bool>()),
            option::of(0..1_000_000_000_i64),
            option::of(an_aim()),
        ),
    )
        .prop_map(|(own, wants, rest)| {
            let (uid, namespace, name, queue, created, priority_class, min_member, min_task_member) = own;
            let (min_resources, topology, sub_groups, phase) = wants;
            let (sla_waiting_ms, weight, preemptable, estimate_ms, stays) = rest;
            PodGroupSpec {
                uid,
                namespace,
                name,
                queue,
                created,
                priority_class,
                min_member,
                min_task_member,
                min_resources,
                topology,
                sub_groups,
                phase,
                phase_missing: false,
                sla_waiting_ms,
                weight,
                preemptable,
                estimate_ms,
                schedule_timeout_ms: None,
                stays,
            }
        })
}

fn a_node() -> impl Strategy<Value = NodeSpec> {
    let taint = (name(), perhaps(), an_effect()).prop_map(|(key, value, effect)| Taint { key, value, effect });
    let images = btree_map("[a-z]{1,3}:[0-9]", 0..i64::MAX, 0..3)
        .prop_map(|images| images.into_iter().map(|(name, size)| (Name::from(name), size)).collect::<Vec<_>>());
    (name(), labels(), vec(taint, 0..3), any::<bool>(), some_of(OF_NODES, 0), images, any::<u8>()).prop_map(
        |(name, labels, taints, unschedulable, allocatable, images, gpu_devices)| NodeSpec {
            name,
            labels,
            taints,
            unschedulable,
            allocatable,
            images,
            features: vec!["Some".into()],
            gpu_devices,
        },
    )
}

fn a_queue() -> impl Strategy<Value = QueueSpec> {
    let states = [QueueState::Open, QueueState::Closing, QueueState::Closed, QueueState::Unknown].to_vec();
    let names = || vec(name(), 0..3);
    let groups =
        (names(), names(), names(), names()).prop_map(|(required, preferred, anti_required, anti_preferred)| {
            NodeGroupAffinity { required, preferred, anti_required, anti_preferred }
        });
    let level = (name(), 1.0..1e6_f64).prop_map(|(name, weight)| HierarchyLevel { name, weight: weight.into() });
    let hierarchy = vec(level, 0..4).prop_map(|mut levels| {
        levels.iter_mut().take(1).for_each(|level| level.name = ROOT_QUEUE.into());
        levels
    });
    let limits = btree_map(name(), some_of(OF_NODES, 0), 0..3).prop_map(|all| all.into_iter().collect::<Vec<_>>());
    (
        (name(), seconds(), 1..=65_535_u32, perhaps(), any::<i32>(), any::<bool>(), select(states)),
        (some_of(OF_NODES, 0), some_of(OF_NODES, 0), some_of(OF_NODES, 0), option::of(groups), limits),
        hierarchy,
    )
        .prop_map(|(own, amounts, hierarchy)| {
            let (name, created, weight, parent, priority, reclaimable, state) = own;
            let (capability, deserved, guarantee, node_groups, node_group_limits) = amounts;
            QueueSpec {
                name,
                created,
                weight,
                parent,
                priority,
                reclaimable,
                state,
                capability,
                deserved,
                guarantee,
                node_groups,
                node_group_limits,
                node_group_limits_error: None,
                hierarchy,
            }
        })
}

/// Through the text that goes to an API server, too.
fn sent<T: serde::Serialize + serde::de::DeserializeOwned>(object: T) -> T {
    let text = serde_json::to_string(&object).expect("written");
    serde_json::from_str(&text).expect("read")
}

proptest! {
    #[test]
    fn pods_come_back(spec in a_pod()) {
        let (read, problems) = Converter::new().pod(&sent(pod(&spec)));
        prop_assert_eq!(problems, vec![]);
        // A pod is compared by what it is written as: it has no equality of its own.
        let read = read.map(|read| (serde_json::to_value(&read), read.shape));
        prop_assert_eq!(format!("{read:?}"), format!("{:?}", Some((serde_json::to_value(&spec), &spec.shape))));
    }

    #[test]
    fn pod_groups_come_back(spec in a_group()) {
        prop_assert_eq!(Converter::new().pod_group(&sent(pod_group(&spec))).0, Some(spec));
    }

    #[test]
    fn nodes_come_back(spec in a_node()) {
        prop_assert_eq!(Converter::new().node(&sent(node(&spec))), (Some(spec), vec![]));
    }

    #[test]
    fn queues_come_back(spec in a_queue()) {
        prop_assert_eq!(Converter::new().queue(&sent(queue(&spec))), (Some(spec), vec![]));
    }

    #[test]
    fn priority_classes_come_back(name in name(), value in any::<i32>(), global_default in any::<bool>(), preempts in any::<bool>()) {
        let spec = PriorityClassSpec { name, value, global_default, preempts };
        prop_assert_eq!(Converter::new().priority_class(&sent(priority_class(&spec))), (Some(spec), vec![]));
    }

    #[test]
    fn budgets_come_back(spec in a_budget()) {
        prop_assert_eq!(Converter::new().budget(&sent(budget(&spec))), (Some(spec), vec![]));
    }

    #[test]
    fn elastic_quotas_come_back(namespace in name(), name in name(), min in some_of(OF_QUOTAS, 0), max in some_of(OF_QUOTAS, 0)) {
        let spec = ElasticQuotaSpec { namespace, name, min, max };
        prop_assert_eq!(Converter::new().elastic_quota(&sent(elastic_quota(&spec))), (Some(spec), vec![]));
    }

    #[test]
    fn quotas_come_back(namespace in name(), name in name(), hard in some_of(OF_QUOTAS, 0), used in some_of(OF_QUOTAS, 0)) {
        let spec = QuotaSpec { namespace, name, hard, used };
        prop_assert_eq!(Converter::new().quota(&sent(quota(&spec))), (Some(spec), vec![]));
    }
}

#[test]
fn limits_that_could_not_be_read_cannot_be_read_again() {
    let spec =
        QueueSpec { name: "q".into(), node_group_limits_error: Some("no JSON".to_owned()), ..QueueSpec::default() };
    let (read, _) = Converter::new().queue(&queue(&spec));
    assert!(read.is_some_and(|read| read.node_group_limits_error.is_some()));
}
