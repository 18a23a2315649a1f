//! Leader election by a Lease: one process schedules, the others are warm and wait.
//!
//! As client-go does it: a holder renews well within the lease's duration; another takes the lease when it has seen no
//! renewal for that duration, by its own clock, so clocks need not agree. A holder that cannot renew within the
//! deadline stops scheduling before anyone else may begin. It does not end, as Volcano's does: it goes on following the
//! cluster, and leads again when it can.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::Client;
use kube::api::PostParams;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use crate::perform::text_of;

/// How the election runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are: unique among the candidates.
    pub identity: String,
    /// How long others wait for a renewal before they take over.
    pub lease: Duration,
    /// How long a holder tries to renew before it stops.
    pub renew_deadline: Duration,
    /// The pause between two tries.
    pub retry: Duration,
}

/// What is wrong with the times of an election.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ElectionError {
    /// Others would take over while the holder still tries.
    #[error("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline")]
    LeaseTooShort,
    /// There would be no second try.
    #[error("--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period")]
    DeadlineTooShort,
    /// It would never pause.
    #[error("--leader-elect-retry-period must not be 0")]
    NoPause,
}

impl Election {
    /// Checks the times, by the rules of client-go.
    pub fn check(&self) -> Result<(), ElectionError> {
        if self.retry.is_zero() {
            return Err(ElectionError::NoPause);
        }
        if self.lease <= self.renew_deadline {
            return Err(ElectionError::LeaseTooShort);
        }
        if self.renew_deadline <= self.retry.mul_f64(1.2) {
            return Err(ElectionError::DeadlineTooShort);
        }
        Ok(())
    }
}

/// What was last seen of the lease, and when by our own clock.
struct Observed {
    record: (Option<String>, Option<MicroTime>, Option<i32>),
    at: Instant,
}

/// Runs for leader until told to stop; `leads` says how it stands. Gives the lease back at the end.
pub async fn run(client: Client, election: Election, leads: watch::Sender<bool>, mut stop: watch::Receiver<bool>) {
    let api: Api<Lease> = Api::namespaced(client, &election.namespace);
    let mut observed: Option<Observed> = None;
    let mut renewed: Option<Instant> = None;
    while !*stop.borrow() {
        let began = Instant::now();
        // A try may not outlive what is left of the deadline: nobody leads on a renewal that is not known to be done.
        let left = renewed.map_or(election.renew_deadline, |at: Instant| (at + election.renew_deadline) - began);
        match timeout(left, attempt(&api, &election, &mut observed)).await {
            Ok(Ok(true)) => {
                renewed = Some(began);
                if !leads.send_replace(true) {
                    info!(identity = election.identity, "leads now");
                }
            }
            Ok(Ok(false)) => {
                renewed = None;
                if leads.send_replace(false) {
                    warn!("another scheduler has taken the lease; following");
                }
            }
            Ok(Err(error)) => warn!("the lease {}/{}: {}", election.namespace, election.name, text_of(&error)),
            Err(_) => warn!("the lease {}/{}: no answer", election.namespace, election.name),
        }
        if let Some(at) = renewed
            && at.elapsed() >= election.renew_deadline
        {
            renewed = None;
            if leads.send_replace(false) {
                warn!("the lease could not be renewed within {:?}; following", election.renew_deadline);
            }
        }
        let until_deadline = renewed.map(|at| (at + election.renew_deadline).saturating_duration_since(Instant::now()));
        let pause = election.retry.min(until_deadline.unwrap_or(election.retry));
        tokio::select! {
            () = sleep(pause) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
    if renewed.is_some() {
        let _ = timeout(Duration::from_secs(5), release(&api, &election)).await;
    }
    leads.send_replace(false);
}

/// Takes or renews the lease. Answers whether it is ours.
async fn attempt(api: &Api<Lease>, election: &Election, observed: &mut Option<Observed>) -> Result<bool, kube::Error> {
    let now = MicroTime(Timestamp::now());
    let Some(mut lease) = api.get_opt(&election.name).await? else {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(election.name.clone()),
                namespace: Some(election.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(ours(election, &now, None)),
        };
        return conflict_is_no(api.create(&PostParams::default(), &lease).await);
    };
    let spec = lease.spec.take().unwrap_or_default();
    let record = (spec.holder_identity.clone(), spec.renew_time.clone(), spec.lease_transitions);
    if observed.as_ref().is_none_or(|seen| seen.record != record) {
        *observed = Some(Observed { record, at: Instant::now() });
    }
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if !holder.is_empty() && holder != election.identity {
        let promised = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs);
        let lasts = promised.unwrap_or(election.lease);
        if observed.as_ref().is_some_and(|seen| seen.at.elapsed() < lasts) {
            return Ok(false);
        }
    }
    lease.spec = Some(ours(election, &now, Some(&spec)));
    // The resource version makes sure that only one of two candidates gets it.
    let replaced = api.replace(&election.name, &PostParams::default(), &lease).await;
    if holder == election.identity {
        // Whoever wrote to it in between: it is ours until the deadline, and renewed at the next try.
        return replaced.map(|_| true);
    }
    conflict_is_no(replaced)
}

async fn release(api: &Api<Lease>, election: &Election) -> Result<(), kube::Error> {
    let Some(mut lease) = api.get_opt(&election.name).await? else { return Ok(()) };
    let spec = lease.spec.get_or_insert_default();
    if spec.holder_identity.as_deref() == Some(&election.identity) {
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        api.replace(&election.name, &PostParams::default(), &lease).await?;
    }
    Ok(())
}

fn ours(election: &Election, now: &MicroTime, before: Option<&LeaseSpec>) -> LeaseSpec {
    let same = before.filter(|spec| spec.holder_identity.as_deref() == Some(&election.identity));
    let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or(0);
    let seconds = i32::try_from(election.lease.as_secs().max(1)).unwrap_or(i32::MAX);
    LeaseSpec {
        holder_identity: Some(election.identity.clone()),
        lease_duration_seconds: Some(seconds),
        acquire_time: same.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
        renew_time: Some(now.clone()),
        lease_transitions: Some(if same.is_some() || before.is_none() { transitions } else { transitions + 1 }),
        ..LeaseSpec::default()
    }
}

fn conflict_is_no<T>(result: Result<T, kube::Error>) -> Result<bool, kube::Error> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(lease: u64, deadline: u64, retry: u64) -> Election {
        let seconds = Duration::from_secs;
        Election {
            namespace: "a".to_owned(),
            name: "b".to_owned(),
            identity: "me".to_owned(),
            lease: seconds(lease),
            renew_deadline: seconds(deadline),
            retry: seconds(retry),
        }
    }

    #[test]
    fn times_that_let_two_lead_are_refused() {
        assert_eq!(election(15, 10, 2).check(), Ok(()));
        assert_eq!(election(10, 10, 2).check(), Err(ElectionError::LeaseTooShort));
        assert_eq!(election(15, 2, 2).check(), Err(ElectionError::DeadlineTooShort));
        assert_eq!(election(15, 10, 0).check(), Err(ElectionError::NoPause));
    }
}
