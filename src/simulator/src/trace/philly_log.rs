//! Microsoft Philly, the original `cluster_job_log`: a JSON array of jobs with their attempts.
//!
//! A job's GPUs are those of its first attempt, as in the trace's own analysis. Its run time is the sum of its attempts;
//! the time between them was waiting and is the scheduler's to give. A last attempt without an end was running when
//! the log was taken: such a job never ends.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::cluster::Occupancy;
use super::draft::Draft;
use super::error::LoadError;
use super::gang::{self, GPUS_PER_NODE, Total};
use super::lines::Lines;
use super::names::Names;
use super::philly::queue_of;
use super::workload::JobShape;
use super::{fields, json};

#[derive(Debug, Deserialize)]
struct Logged {
    jobid: String,
    vc: String,
    user: Option<String>,
    submitted_time: String,
    #[serde(default)]
    attempts: Vec<Attempt>,
}

#[derive(Debug, Deserialize)]
struct Attempt {
    start_time: Option<String>,
    end_time: Option<String>,
    #[serde(default)]
    detail: Vec<Server>,
}

#[derive(Debug, Deserialize)]
struct Server {
    gpus: Vec<IgnoredAny>,
}

/// Reads the log into a draft. Its text is in memory while this runs.
pub(crate) fn read(
    path: &Path,
    draft: &mut Draft,
    queues: &mut Names,
    occupancy: &mut Occupancy,
) -> Result<(), LoadError> {
    let text = Lines::open(path)?.into_text()?;
    let mut names = Names::default();
    let (mut n_idle, mut n_endless) = (0, 0);
    json::each_object(&text, |line, object| {
        let logged = object
            .map_err(|message| (line, message))
            .and_then(|object| serde_json::from_str::<Logged>(object).map_err(|error| json::place(line, &error)));
        let outcome = logged.and_then(|logged| job(&logged, &mut names, queues).map_err(|message| (line, message)));
        match outcome {
            Ok(Some((job, start_ms))) => {
                n_endless += u64::from(job.runtime_ms.is_none());
                occupancy.add(&job, start_ms);
                draft.jobs.push(job);
            }
            Ok(None) => n_idle += 1,
            Err((line, message)) => draft.problems.at(path, line, message),
        }
    });
    draft.note_jobs(n_idle, "are left out, as the log has no attempt with GPUs and a start for them");
    draft.note_jobs(n_endless, "were running when the log was taken, and never end");
    draft.note("run times are the sums of the attempts; passed, killed and failed jobs are all in");
    Ok(())
}

/// A job and when it first started; `None`: it never did.
fn job(logged: &Logged, names: &mut Names, queues: &mut Names) -> Result<Option<(JobShape, i64)>, String> {
    let submit_ms = fields::moment(&logged.submitted_time).map_err(|message| format!("submitted_time: {message}"))?;
    let n_gpus: usize =
        logged.attempts.first().map_or(0, |first| first.detail.iter().map(|server| server.gpus.len()).sum());
    let mut first_ms = None;
    let mut runtime_ms = Some(0_i64);
    for (at, attempt) in logged.attempts.iter().enumerate() {
        let Some(start_ms) = time(&attempt.start_time)? else { continue };
        first_ms = first_ms.or(Some(start_ms));
        runtime_ms = match (runtime_ms, time(&attempt.end_time)?) {
            (Some(sum), Some(end_ms)) if end_ms >= start_ms => Some(sum.saturating_add(end_ms - start_ms)),
            (_, Some(_)) => return Err("an attempt ends before it starts".into()),
            // An end that is missing counts only for the last attempt: earlier ones did end, as others followed.
            (sum, None) if at + 1 < logged.attempts.len() => sum,
            (_, None) => None,
        };
    }
    let Some(start_ms) = first_ms.filter(|_| n_gpus > 0) else { return Ok(None) };
    let total = Total { gpus: i64::try_from(n_gpus).unwrap_or(i64::MAX), ..Total::default() };
    let roles = gang::of_gpus(total, GPUS_PER_NODE)?;
    let queue = queue_of(&logged.vc, queues)?;
    let job = JobShape {
        name: names.once(&logged.jobid)?,
        namespace: queue.clone(),
        queue,
        user: logged.user.clone(),
        submit_ms,
        runtime_ms,
        estimate_ms: None,
        min_member: gang::n_pods(&roles),
        roles,
        priority: None,
        preemptible: true,
        node_labels_any: None,
    };
    Ok(Some((job, start_ms)))
}

fn time(text: &Option<String>) -> Result<Option<i64>, String> {
    match text.as_deref() {
        Some(text) if !fields::is_missing(text) => fields::moment(text).map(Some),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use crate::trace::options::Options;
    use crate::trace::{Kind, testkit};

    const LOG: &str = r#"[
{"status": "Pass", "vc": "v1", "jobid": "application_1_2", "user": "u",
 "submitted_time": "2017-10-07 01:00:00",
 "attempts": [
  {"start_time": "2017-10-07 01:00:10", "end_time": "2017-10-07 01:01:10",
   "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
  {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:05", "detail": []}]},
{"status": "Killed", "vc": "v1", "jobid": "a3", "user": "u", "submitted_time": "2017-10-07 01:00:00", "attempts": []},
{"status": "Pass", "vc": "v1", "jobid": "a4", "user": "u",
 "submitted_time": 7, "attempts": []},
{"status": "Pass", "vc": "v2", "jobid": "a5", "user": null, "submitted_time": "2017-10-07 01:00:01",
 "attempts": [{"start_time": "2017-10-07 01:00:10", "end_time": null, "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]},
{"status": "Pass", "vc": "v2", "jobid": "a5", "user": null, "submitted_time": "2017-10-07 01:00:01",
 "attempts": [{"start_time": "2017-10-07 01:00:10", "end_time": "None", "detail": [{"ip": "m1", "gpus": ["gpu0"]}]}]}
]"#;

    #[test]
    fn the_log_gives_jobs_with_the_sum_of_their_attempts() {
        let machines = "machineId, number of GPUs, single GPU mem\nm1,8, 24GB\nm2,2, 12GB\nm3,8, 24GB\n";
        let files = [("cluster_job_log", LOG), ("cluster_machine_list", machines)];
        let workload = testkit::load_first(Kind::Philly, &files, &Options::default()).expect("loads");
        let jobs: Vec<_> =
            workload.jobs.iter().map(|job| (job.name.as_str(), job.runtime_ms, job.roles[0].request.gpus)).collect();
        assert_eq!(jobs, [("application-1-2", Some(65_000), 3), ("a5", None, 1)]);
        let nodes: Vec<_> = workload.nodes.iter().map(|node| (node.name.as_str(), node.count, node.gpus)).collect();
        assert_eq!(nodes, [("gpu8", 2, 8), ("gpu2", 1, 2)]);
        assert_eq!(
            testkit::problems(&workload),
            [
                "10: not a job of this log: invalid type: integer `7`, expected a string",
                "13: a second job with the id `a5`",
            ]
        );
        assert_eq!(
            workload.notes[0],
            "jobs that are left out, as the log has no attempt with GPUs and a start for them: 1"
        );
    }
}
