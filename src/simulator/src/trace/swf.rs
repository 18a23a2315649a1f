//! Standard Workload Format 2.2: the logs of the Parallel Workloads Archive.
//!
//! A line is a rigid job of 18 fields, of which seven are read: number, submission, wait, run time, processors, requested
//! time (the user's estimate) and user. The file's own clock is kept. A gang needs all of its processors.
//!
//! Up to 4,096 processors a pod is one processor, which places gangs as freely as the real machines did. Above, a pod is a
//! node's worth of processors, because a hundred thousand pods a job say nothing that five thousand do not.

use std::path::Path;

use super::cluster::Occupancy;
use super::draft::{DEFAULT_QUEUE, Draft, Start};
use super::error::LoadError;
use super::gang;
use super::lines::{Line, Lines};
use super::names::Names;
use super::options::Options;
use super::workload::{GpuSharing, JobShape, NodeShape, RoleShape};
use super::{PODS_PER_NODE, fields};

/// Machines up to here have a pod for each processor.
const MAX_SINGLE_PODS: i64 = 4096;

/// Processors of a node where a larger machine's header does not say; what Curie's thin nodes had.
const PROCS_PER_NODE: i64 = 16;

/// Fields of a line.
const N_FIELDS: usize = 18;

/// The largest number of processors that is believed.
const MAX_PROCS: i64 = 1 << 40;

/// Memory of a node. No job asks for any, so it only has to be there.
const MEMORY_BYTES: i64 = 64 << 30;

/// Reads a log.
pub(crate) fn read(path: &Path, options: &Options) -> Result<Draft, LoadError> {
    let mut lines = Lines::open(path)?;
    let mut draft = Draft { start: Start::OfFile, ..Draft::default() };
    let mut header = Header::default();
    let mut tally = Tally::default();
    let mut names = Names::default();
    let mut records = Vec::new();
    while let Some((line, text)) = lines.next_line()? {
        let outcome = match text {
            Line::Text(text) => match text.trim_start().strip_prefix(';') {
                Some(comment) => {
                    header.read(comment);
                    Ok(None)
                }
                None if text.trim().is_empty() => Ok(None),
                None => record(text, line, &mut names, &mut tally),
            },
            Line::Bad(message) => Err(message),
        };
        match outcome {
            Ok(record) => records.extend(record),
            Err(message) => draft.problems.at(path, line, message),
        }
    }
    let machine = Machine::of(&header, &records, options, &mut draft);
    for record in records {
        match gang::of_processors(record.procs, machine.per_pod) {
            Ok(roles) => draft.jobs.push(job(record, roles)),
            Err(message) => draft.problems.at(path, record.line, message),
        }
    }
    draft.nodes = machine.nodes();
    notes(&mut draft, &machine, &tally);
    Ok(draft)
}

/// What the header says of the machine.
#[derive(Debug, Default)]
struct Header {
    max_nodes: Option<i64>,
    max_procs: Option<i64>,
}

impl Header {
    fn read(&mut self, comment: &str) {
        let Some((key, value)) = comment.split_once(':') else { return };
        let digits: String = value.trim_start().chars().take_while(char::is_ascii_digit).collect();
        let Ok(value) = fields::integer(&digits, 1..=MAX_PROCS) else { return };
        // The first line wins: later ones are of partitions.
        match key.trim() {
            "MaxNodes" => self.max_nodes = self.max_nodes.or(Some(value)),
            "MaxProcs" => self.max_procs = self.max_procs.or(Some(value)),
            _ => {}
        }
    }
}

/// A line, before it is known what a pod is.
#[derive(Debug)]
struct Record {
    line: u64,
    name: String,
    submit_ms: i64,
    wait_ms: i64,
    runtime_ms: i64,
    procs: i64,
    estimate_ms: Option<i64>,
    user: Option<String>,
}

/// Lines that were read in a way that a reader should know of.
#[derive(Debug, Default)]
struct Tally {
    partial: u64,
    never_ran: u64,
    without_runtime: u64,
    requested_only: u64,
    outlived: u64,
}

/// Reads a line; `None`: it is no job of its own.
fn record(text: &str, line: u64, names: &mut Names, tally: &mut Tally) -> Result<Option<Record>, String> {
    let found: Vec<&str> = text.split_whitespace().collect();
    if found.len() < N_FIELDS {
        return Err(format!("{} fields where {N_FIELDS} are expected", found.len()));
    }
    // Fields are numbered from 1, as in the format's definition.
    let field = |number: usize| found[number - 1];
    let name = |what: &str, message: String| format!("{what}: {message}");
    // -1 is «not known».
    let known = |number: usize, what: &str| match field(number) {
        text if text.starts_with('-') => Ok(None),
        text => fields::seconds(text).map(Some).map_err(|message| name(what, message)),
    };
    let procs = |number: usize, what: &str| {
        fields::integer(field(number), -1..=MAX_PROCS).map_err(|message| name(what, message))
    };
    // The archive's advice on jobs that were swapped out: 2, 3 and 4 are parts of a job whose sum is a line of its own.
    let status = fields::integer(field(11), -1..=99).map_err(|message| name("status", message))?;
    if (2..=4).contains(&status) {
        tally.partial += 1;
        return Ok(None);
    }
    let submit_ms = fields::seconds(field(2)).map_err(|message| name("submission", message))?;
    let runtime_ms = known(4, "run time")?;
    if status == 5 && runtime_ms.unwrap_or(0) == 0 {
        tally.never_ran += 1;
        return Ok(None);
    }
    let (allocated, requested) = (procs(5, "allocated processors")?, procs(8, "requested processors")?);
    if allocated < 1 && requested < 1 {
        return Err("the job has no processors".into());
    }
    let estimate_ms = known(9, "requested time")?;
    let user = fields::integer(field(12), -1..=i64::MAX).map_err(|message| name("user", message))?;
    let record = Record {
        line,
        name: names.once(field(1))?,
        submit_ms,
        wait_ms: known(3, "wait")?.unwrap_or(0),
        runtime_ms: runtime_ms.unwrap_or(0),
        procs: if allocated < 1 { requested } else { allocated },
        estimate_ms,
        user: (user >= 0).then(|| format!("user-{user}")),
    };
    tally.without_runtime += u64::from(runtime_ms.is_none());
    tally.requested_only += u64::from(allocated < 1);
    tally.outlived += u64::from(estimate_ms.is_some_and(|estimate| estimate < record.runtime_ms));
    Ok(Some(record))
}

fn job(record: Record, roles: Vec<RoleShape>) -> JobShape {
    JobShape {
        name: record.name,
        namespace: DEFAULT_QUEUE.into(),
        queue: DEFAULT_QUEUE.into(),
        user: record.user,
        submit_ms: record.submit_ms,
        runtime_ms: Some(record.runtime_ms),
        estimate_ms: record.estimate_ms,
        min_member: gang::n_pods(&roles),
        roles,
        priority: None,
        preemptible: false,
        node_labels_any: None,
    }
}

/// The machine that the log is played on.
#[derive(Debug)]
struct Machine {
    procs: i64,
    per_node: i64,
    per_pod: i64,
}

impl Machine {
    fn of(header: &Header, records: &[Record], options: &Options, draft: &mut Draft) -> Self {
        let procs = header.max_procs.or(header.max_nodes).unwrap_or_else(|| {
            let procs = peak_procs(records);
            draft.note(format!(
                "the header has no MaxProcs: {procs} processors are assumed, the most ever in use at once"
            ));
            procs
        });
        let told = header.max_nodes.filter(|_| header.max_procs.is_some()).map(|nodes| fields::div_ceil(procs, nodes));
        let (per_node, per_pod) = match (options.procs_per_node, procs <= MAX_SINGLE_PODS) {
            (Some(per_node), _) => (i64::from(per_node), i64::from(per_node)),
            (None, true) => (told.unwrap_or(1), 1),
            (None, false) => {
                let per_node = told.unwrap_or(PROCS_PER_NODE);
                (per_node, per_node)
            }
        };
        if options.procs_per_node.is_none() && told.is_none() {
            draft.note(format!("the header has no MaxNodes: nodes of {per_node} processors are assumed"));
        }
        Self { procs, per_node, per_pod }
    }

    /// Full nodes, and one for what is left over, so that the machine has exactly its processors.
    fn nodes(&self) -> Vec<NodeShape> {
        let node = |name: &str, count: i64, procs: i64| NodeShape {
            name: name.into(),
            count: u32::try_from(count).unwrap_or(u32::MAX),
            cpu_milli: procs.saturating_mul(1000),
            memory_bytes: MEMORY_BYTES,
            pods: PODS_PER_NODE.max(procs),
            gpus: 0,
            gpu_sharing: GpuSharing::Whole,
            labels: Vec::new(),
        };
        let (full, rest) = (self.procs / self.per_node, self.procs % self.per_node);
        let nodes = [node("node", full, self.per_node), node("node-last", i64::from(rest > 0), rest)];
        nodes.into_iter().filter(|node| node.count > 0).collect()
    }
}

/// The most processors in use at once, by the log's own waits and run times.
fn peak_procs(records: &[Record]) -> i64 {
    let mut occupancy = Occupancy::default();
    for record in records {
        let start_ms = record.submit_ms + record.wait_ms;
        occupancy.add_raw(start_ms, Some(record.runtime_ms), record.procs, 0);
    }
    occupancy.peak().0.max(1)
}

fn notes(draft: &mut Draft, machine: &Machine, tally: &Tally) {
    draft.note(match machine.per_pod {
        1 => "a job of p processors is a gang of p pods of 1 core, and needs them all".into(),
        per_pod => {
            format!("a job of p processors is a gang of pods of {per_pod} cores and one remainder, and needs them all")
        }
    });
    draft.note("memory is left out: jobs ask for none; nobody is preemptible; all jobs are in one queue");
    draft.note_jobs(tally.without_runtime, "have no run time and get 0, as has a job that ran under half a second");
    draft.note_jobs(tally.outlived, "ran longer than their estimate");
    draft.note_jobs(tally.requested_only, "have no allocated processors and get those that they requested");
    draft.note_jobs(tally.never_ran, "are left out, as they were cancelled before they ran");
    if tally.partial > 0 {
        draft.note(format!(
            "lines that are left out, as they are parts of jobs whose sum has its own: {}",
            tally.partial
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::workload::Workload;
    use crate::trace::{Kind, testkit};

    const HEADER: &str = "; Version: 2.2\n; MaxNodes: 4 (since May)\n; MaxProcs: 4\n;\n\n";

    fn line(
        number: u32,
        submit: &str,
        run: &str,
        procs: &str,
        requested: &str,
        estimate: &str,
        status: &str,
    ) -> String {
        format!("{number} {submit} 5 {run} {procs} -1 -1 {requested} {estimate} -1 {status} 7 1 -1 -1 -1 -1 -1\n")
    }

    fn load(text: &str, options: &Options) -> Workload {
        testkit::load_first(Kind::Swf, &[("log.swf", text)], options).expect("loads")
    }

    #[test]
    fn a_small_machine_runs_gangs_of_single_processors_in_the_files_own_time() {
        let text = HEADER.to_owned()
            + &line(10, "100", "60", "3", "3", "90", "1")
            + &line(9, "100", "0.4", "1", "1", "-1", "0");
        let workload = load(&text, &Options::default());
        assert_eq!((workload.nodes[0].cpu_milli, workload.n_nodes()), (1_000, 4));
        let [first, second] = workload.jobs.as_slice() else { panic!("two jobs") };
        assert_eq!(
            (first.name.as_str(), first.submit_ms, first.runtime_ms, first.estimate_ms),
            ("job-00000009", 100_000, Some(400), None)
        );
        assert_eq!((second.n_pods(), second.min_member, second.estimate_ms), (3, 3, Some(90_000)));
        assert_eq!(second.user.as_deref(), Some("user-7"));
        assert!(workload.problems.is_empty());
    }

    #[test]
    fn bad_lines_are_reported_and_the_rest_loads() {
        let text = HEADER.to_owned()
            + &line(1, "0", "60", "x", "1", "-1", "1")
            + &line(2, "0", "60", "-1", "0", "-1", "1")
            + "3 0 1\n"
            + &line(4, "0", "60", "1", "1", "-1", "1")
            + &line(4, "1", "60", "1", "1", "-1", "1");
        let workload = load(&text, &Options::default());
        assert_eq!(workload.jobs.len(), 1);
        assert_eq!(
            testkit::problems(&workload),
            [
                "6: allocated processors: `x` is not a whole number",
                "7: the job has no processors",
                "8: 3 fields where 18 are expected",
                "10: a second job with the id `4`",
            ]
        );
    }

    #[test]
    fn a_job_of_too_many_pods_is_refused_and_a_log_without_jobs_too() {
        let wide = HEADER.to_owned() + &line(1, "0", "60", "1000001", "1", "-1", "1");
        let workload = load(&(wide.clone() + &line(2, "0", "60", "1", "1", "-1", "1")), &Options::default());
        assert_eq!(testkit::problems(&workload), ["6: 1000001 processors are more than 1000000 pods of 1"]);
        let error = testkit::load_first(Kind::Swf, &[("log.swf", &wide)], &Options::default()).expect_err("no jobs");
        assert!(error.contains("log.swf: no job could be read; the first problem is "), "{error}");
        assert!(error.ends_with("log.swf:6: 1000001 processors are more than 1000000 pods of 1"), "{error}");
    }

    #[test]
    fn cases_of_the_format_are_decided_and_noted() {
        let text = HEADER.to_owned()
            + &line(1, "0", "-1", "1", "1", "-1", "1")
            + &line(2, "0", "60", "-1", "2", "30", "1")
            + &line(3, "0", "0", "1", "1", "-1", "5")
            + &line(4, "0", "9", "1", "1", "-1", "5")
            + &line(5, "0", "9", "1", "1", "-1", "2");
        let workload = load(&text, &Options::default());
        let jobs: Vec<_> = workload.jobs.iter().map(|job| (job.n_pods(), job.runtime_ms)).collect();
        assert_eq!(jobs, [(1, Some(0)), (2, Some(60_000)), (1, Some(9_000))]);
        assert_eq!(
            workload.notes[2..],
            [
                "jobs that have no run time and get 0, as has a job that ran under half a second: 1",
                "jobs that ran longer than their estimate: 1",
                "jobs that have no allocated processors and get those that they requested: 1",
                "jobs that are left out, as they were cancelled before they ran: 1",
                "lines that are left out, as they are parts of jobs whose sum has its own: 1",
            ]
        );
    }

    #[test]
    fn a_large_machine_runs_gangs_of_nodes() {
        let text = "; MaxProcs: 5000\n".to_owned() + &line(1, "0", "60", "40", "40", "-1", "1");
        let workload = load(&text, &Options::default());
        let roles: Vec<_> = workload.jobs[0].roles.iter().map(|role| (role.replicas, role.request.cpu_milli)).collect();
        assert_eq!(roles, [(2, 16_000), (1, 8_000)]);
        assert_eq!(workload.jobs[0].min_member, 3);
        let nodes: Vec<_> = workload.nodes.iter().map(|node| (node.count, node.cpu_milli)).collect();
        assert_eq!(nodes, [(312, 16_000), (1, 8_000)]);
        assert_eq!(workload.notes[0], "the header has no MaxNodes: nodes of 16 processors are assumed");

        let options = Options { procs_per_node: Some(20), ..Options::default() };
        let workload = load(&text, &options);
        assert_eq!((workload.jobs[0].n_pods(), workload.n_nodes()), (2, 250));
    }

    #[test]
    fn without_a_header_the_log_itself_tells_the_size() {
        // The second job waited 5 s as well and starts when the first ends.
        let text = line(1, "0", "60", "3", "3", "-1", "1") + &line(2, "60", "60", "2", "2", "-1", "1");
        let workload = load(&text, &Options::default());
        assert_eq!(workload.n_nodes(), 3);
        assert_eq!(
            workload.notes[0],
            "the header has no MaxProcs: 3 processors are assumed, the most ever in use at once"
        );
    }
}
