//! The queues that every cluster has: `root`, and the one for jobs that name none.

use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, PostParams};
use serde_json::json;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::client::Clients;
use crate::perform::{Answer, FIELD_MANAGER};
use crate::watch::Kind;

const TRIES: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);
const CALL: Duration = Duration::from_secs(10);

/// Makes them where they are missing, as Volcano's scheduler does. Tries for a minute.
pub(crate) async fn make_sure(clients: &Clients, default_queue: &str) -> Result<(), String> {
    for (name, reclaimable) in [("root", false), (default_queue, true)] {
        if !name.is_empty() {
            make_one(clients, name, reclaimable).await?;
        }
    }
    Ok(())
}

async fn make_one(clients: &Clients, name: &str, reclaimable: bool) -> Result<(), String> {
    let resource = Kind::Queue.resource();
    let api: Api<DynamicObject> = Api::all_with(clients.calls.clone(), &resource);
    let object =
        DynamicObject::new(name, &resource).data(json!({ "spec": { "weight": 1, "reclaimable": reclaimable } }));
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let mut last = String::new();
    for n in 0..TRIES {
        clients.throttle.turn().await;
        let answer = match timeout(CALL, async { api.get_opt(name).await }).await {
            Ok(Ok(Some(_))) => return Ok(()),
            Ok(Ok(None)) => Answer::within(CALL, api.create(&params, &object)).await,
            Ok(Err(error)) => Answer::of::<()>(&Err(error)),
            Err(_) => Answer::Unknown { message: "no answer".to_owned() },
        };
        last = match answer {
            Answer::Done => {
                info!("made queue {name}");
                return Ok(());
            }
            Answer::Refused { code: 409, .. } => return Ok(()),
            Answer::Refused { code: 404, .. } => {
                "the cluster does not know queues.scheduling.volcano.sh: run `krafla crds | kubectl apply -f -`"
                    .to_owned()
            }
            Answer::Refused { code, message } => format!("{message} ({code})"),
            Answer::Unknown { message } => message,
        };
        if n == 0 {
            warn!("queue {name} cannot be made, tried again for {TRIES} s: {last}");
        }
        sleep(PAUSE).await;
    }
    Err(format!("queue {name} cannot be made: {last}"))
}
