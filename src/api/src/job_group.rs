//! The PodGroup that Volcano's job controller makes for a Volcano Job.

use krafla_model::{Amounts, JobPhase, PodGroupSpec, Problem};

use crate::converter::Converter;
use crate::crds::{PodGroupFields, SubGroupFields};
use crate::group::times;
use crate::keys;
use crate::report::Report;
use crate::request::request;
use crate::workload::{JobGang, Part, Workload};

impl Converter {
    /// The PodGroup of a Volcano Job; none for other workloads. `priority_of` knows the values of PriorityClasses: the
    /// minimum is reckoned over the pods of the most urgent tasks.
    pub fn job_group(
        &mut self,
        workload: &Workload,
        priority_of: impl Fn(&str) -> i32,
    ) -> (Option<PodGroupSpec>, Vec<Problem>) {
        let Some(gang) = &workload.gang else { return (None, Vec::new()) };
        let mut report = Report::namespaced("job", &workload.metadata);
        let read = self.make_job_group(workload, gang, priority_of, &mut report);
        (read, report.into_problems())
    }

    fn make_job_group(
        &mut self,
        workload: &Workload,
        gang: &JobGang,
        priority_of: impl Fn(&str) -> i32,
        report: &mut Report<'_>,
    ) -> Option<PodGroupSpec> {
        let mut needs = Vec::new();
        for part in &workload.parts {
            let nothing = Default::default();
            let spec = part.template.spec.as_ref().unwrap_or(&nothing);
            let class = spec.priority_class_name.as_deref().filter(|class| !class.is_empty());
            let priority = priority_of(class.unwrap_or(&gang.priority_class));
            needs.push((priority, part, request(spec, &mut self.names, report)?));
        }
        // Stable: tasks of equal priority stay in the order in which they are written.
        needs.sort_by_key(|(priority, ..)| std::cmp::Reverse(*priority));
        let fields = PodGroupFields {
            min_member: Some(i64::from(gang.min_available)),
            min_task_member: Some(
                workload.parts.iter().map(|part| (part.role.clone(), i64::from(part.min_available))).collect(),
            ),
            queue: Some(gang.queue.clone()),
            priority_class_name: Some(gang.priority_class.clone()),
            min_resources: None,
            network_topology: gang.topology.clone(),
            sub_group_policy: Some(workload.parts.iter().filter_map(sub_group).collect()),
        };
        let mut group = self.read_group(&workload.metadata, &fields, JobPhase::Pending, report)?;
        group.name = workload.job_group_name().into();
        group.uid = format!("{}/{}", group.namespace, group.name).into();
        group.min_resources = Some(minimum(gang.min_available, &needs));
        Some(group)
    }
}

/// What the minimum of a job needs: the minimum of each task, then more pods of the most urgent ones until there are
/// enough. When the job's minimum is below the sum of the tasks', only the most urgent pods count.
fn minimum(min_available: u32, needs: &[(i32, &Part, Amounts)]) -> Amounts {
    let sum = needs.iter().fold(0_u32, |sum, (_, part, _)| sum.saturating_add(part.min_available));
    let of_task = |part: &Part| if min_available < sum { 0 } else { part.min_available };
    let mut left = min_available - if min_available < sum { 0 } else { sum };
    let mut total = Amounts::default();
    for (_, part, request) in needs {
        let base = of_task(part);
        let more = left.min(part.replicas.saturating_sub(base));
        left -= more;
        total.add(&times(request, base.saturating_add(more)));
    }
    total
}

fn sub_group(part: &Part) -> Option<SubGroupFields> {
    let policy = part.partition.as_ref()?;
    let role = [(keys::TASK_SPEC.to_owned(), part.role.clone())];
    Some(SubGroupFields {
        name: Some(part.role.clone()),
        network_topology: policy.network_topology.clone(),
        sub_group_size: policy.partition_size,
        min_sub_groups: policy.min_partitions,
        label_selector: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
            match_labels: Some(role.into()),
            match_expressions: None,
        }),
        match_label_keys: Some(vec![keys::PARTITION_ID.to_owned()]),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::crds::VolcanoJob;

    fn group(spec: Value) -> PodGroupSpec {
        let job: VolcanoJob =
            serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": spec})).expect("a volcano job");
        let (workload, problems) = Workload::of_volcano_job(job);
        assert_eq!(problems, [""; 0]);
        let priority_of = |class: &str| if class == "high" { 10 } else { 0 };
        let (group, mut problems) = Converter::new().job_group(&workload, priority_of);
        problems.retain(|problem| problem.message != crate::group::TOPOLOGY_UNUSED);
        assert_eq!(problems, []);
        group.expect("a podgroup")
    }

    fn task(name: &str, class: &str, replicas: i64, min: Value, cpu: i64) -> Value {
        json!({"name": name, "replicas": replicas, "minAvailable": min, "template": {"spec": {
            "priorityClassName": class, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        }}})
    }

    #[test]
    fn the_minimum_is_that_of_the_tasks_and_then_of_the_most_urgent() {
        for (min_available, cpu, pods) in [
            (json!(null), 12, 3), // 2 workers and 1 ps, which are their minimums
            (json!(4), 22, 4),    // one more: a ps, since it is more urgent
            (json!(5), 23, 5),    // then a worker
            (json!(2), 20, 2),    // below the sum of the minimums: the most urgent pods only
            (json!(0), 0, 0),
        ] {
            let tasks = json!([task("worker", "", 4, json!(2), 1), task("ps", "high", 2, json!(1), 10)]);
            let group = group(json!({"minAvailable": min_available, "tasks": tasks}));
            let min = group.min_resources.expect("resources");
            assert_eq!((min.get("cpu"), min.get("pods")), (Some(cpu * 1_000), Some(pods)), "{min_available}");
            assert_eq!(i64::from(group.min_member), pods);
            assert_eq!(group.min_task_member, [("ps".into(), 1), ("worker".into(), 2)]);
        }
    }

    #[test]
    fn partitions_become_sub_groups() {
        let mut worker = task("worker", "", 8, json!(null), 1);
        worker["partitionPolicy"] = json!({"totalPartitions": 4, "partitionSize": 2, "minPartitions": 3,
            "networkTopology": {"highestTierAllowed": 1}});
        let group = group(json!({"queue": "q", "tasks": [worker]}));
        assert_eq!((group.queue.as_str(), group.min_member), ("q", 6));
        let sub = &group.sub_groups[0];
        assert_eq!((sub.size, sub.min_sub_groups, sub.match_label_keys[0].as_str()), (2, 3, keys::PARTITION_ID));
        assert_eq!(sub.topology.as_ref().and_then(|topology| topology.highest_tier), Some(1));
    }
}
