//! What the engine is told.

use krafla_framework::DeschedulerSettings;
use krafla_model::{Event, Name};
use serde::{Deserialize, Serialize};

/// One thing that the engine is told.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all of them are events; a box would cost one more allocation each"
)]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Input {
    /// The cluster has changed.
    Event(Event),
    /// What became of an effect.
    Outcome(Outcome),
    /// The configuration file has this content now. Telling the same content twice is no change.
    Configuration {
        /// Its name, for messages.
        file: String,
        /// Its content.
        text: String,
    },
    /// The descheduler runs so from now on; nobody does, if `None`. Telling the same twice is no change.
    Descheduler(Option<Box<DeschedulerSettings>>),
    /// The descheduler is to have a round now, whenever the next would be.
    Deschedule,
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The pod was bound.
    Bound {
        /// The pod's UID.
        pod: Name,
    },
    /// The bind was refused; the pod has no node.
    BindRefused {
        /// The pod's UID.
        pod: Name,
        /// What the API said.
        message: String,
    },
    /// The eviction was accepted; the pod terminates.
    Evicted {
        /// The pod's UID.
        pod: Name,
    },
    /// The eviction was refused; the pod keeps its node.
    EvictRefused {
        /// The pod's UID.
        pod: Name,
        /// What the API said.
        message: String,
    },
}
