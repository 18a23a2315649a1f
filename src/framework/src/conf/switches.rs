//! Which extension points a plugin entry takes part in: the `enable…` keys of a tier.
//!
//! Volcano spells some of them `enableX` and some `enabledX`, and existing files rely on both, so the table has each
//! as it is. A switch says «not here»; it never makes a plugin do what it cannot.

/// An extension point, at the grain of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Point {
    /// Which job goes first.
    JobOrder,
    /// Not a point: whether the plugin reads its queues as a tree. Off unless switched on.
    Hierarchy,
    /// Whether a job may start.
    JobReady,
    /// Whether a job keeps what it was promised.
    JobPipelined,
    /// Which task of a job goes first.
    TaskOrder,
    /// Who may be evicted for a job of the same queue.
    Preemptable,
    /// Who may be evicted for another queue.
    Reclaimable,
    /// Whether a queue may evict at all.
    Preemptive,
    /// Which queue goes first.
    QueueOrder,
    /// Whether a node is fit for a task.
    Predicate,
    /// Choice of the node by one plugin alone.
    BestNode,
    /// How good a node is for a task.
    NodeOrder,
    /// Whether a job enters its queue, and the bookkeeping after it did.
    JobEnqueueable,
    /// Who is to be evicted by `shuffle`.
    VictimTasks,
    /// Whether a job has too little to run.
    JobStarving,
    /// Whether a queue is over its share.
    Overused,
    /// Whether a queue may take one more task.
    Allocatable,
    /// How good a topology domain is.
    HyperNodeOrder,
    /// Whether a sub-job may start.
    SubJobReady,
    /// Whether a sub-job keeps what it was promised.
    SubJobPipelined,
    /// Which sub-job goes first.
    SubJobOrder,
    /// Which topology domains to try, and in which order.
    HyperNodeGradient,
    /// Whether a job is complete enough to be looked at. No switch.
    JobValid,
    /// From which queue victims are taken first. No switch.
    VictimQueueOrder,
    /// Who may be evicted for a whole gang. No switch.
    UnifiedEvictable,
    /// Who may be evicted at all, whoever it is for. No switch.
    Evictable,
}

/// One key of a plugin entry.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// The key, to the letter.
    pub key: &'static str,
    /// What it switches; `None` for a key that Volcano accepts and nothing reads.
    pub guards: Option<Point>,
}

/// Every switch, in Volcano's order.
pub const SWITCHES: &[Switch] = &[
    guards("enableJobOrder", Point::JobOrder),
    guards("enableHierarchy", Point::Hierarchy),
    guards("enableJobReady", Point::JobReady),
    guards("enableJobPipelined", Point::JobPipelined),
    guards("enableTaskOrder", Point::TaskOrder),
    guards("enablePreemptable", Point::Preemptable),
    guards("enableReclaimable", Point::Reclaimable),
    guards("enablePreemptive", Point::Preemptive),
    guards("enableQueueOrder", Point::QueueOrder),
    dead("enabledClusterOrder"),
    guards("enablePredicate", Point::Predicate),
    guards("enableBestNode", Point::BestNode),
    guards("enableNodeOrder", Point::NodeOrder),
    dead("enableTargetJob"),
    dead("enableReservedNodes"),
    guards("enableJobEnqueued", Point::JobEnqueueable),
    guards("enabledVictim", Point::VictimTasks),
    guards("enableJobStarving", Point::JobStarving),
    guards("enabledOverused", Point::Overused),
    guards("enabledAllocatable", Point::Allocatable),
    guards("enabledHyperNodeOrder", Point::HyperNodeOrder),
    guards("enabledSubJobReady", Point::SubJobReady),
    guards("enabledSubJobPipelined", Point::SubJobPipelined),
    guards("enabledSubJobOrder", Point::SubJobOrder),
    guards("enabledHyperNodeGradient", Point::HyperNodeGradient),
];

const fn guards(key: &'static str, point: Point) -> Switch {
    Switch { key, guards: Some(point) }
}

const fn dead(key: &'static str) -> Switch {
    Switch { key, guards: None }
}

/// The switch with exactly this key.
#[must_use]
pub fn switch(key: &str) -> Option<&'static Switch> {
    SWITCHES.iter().find(|switch| switch.key == key)
}

/// The switches of one plugin entry. By default everything is on but the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Switches {
    /// A bit for each point; set means on.
    on: u32,
}

impl Default for Switches {
    fn default() -> Self {
        Self { on: !Self::bit(Point::Hierarchy) }
    }
}

impl Switches {
    /// Whether the plugin is asked at `point`. Points without a switch are always on.
    #[must_use]
    pub const fn allows(self, point: Point) -> bool {
        self.on & Self::bit(point) != 0
    }

    /// Whether the plugin reads its queues as a tree (`enableHierarchy`).
    #[must_use]
    pub const fn hierarchy(self) -> bool {
        self.allows(Point::Hierarchy)
    }

    /// The same switches with `point` on or off. A point without a switch stays on.
    #[must_use]
    pub fn with(self, point: Point, on: bool) -> Self {
        if point.switch().is_none() {
            return self;
        }
        let bit = Self::bit(point);
        Self { on: if on { self.on | bit } else { self.on & !bit } }
    }

    /// The keys that differ from the default, with their values, in Volcano's order.
    pub fn changed(self) -> impl Iterator<Item = (&'static str, bool)> {
        SWITCHES.iter().filter_map(move |switch| {
            let point = switch.guards?;
            let on = self.allows(point);
            (on != Self::default().allows(point)).then_some((switch.key, on))
        })
    }

    const fn bit(point: Point) -> u32 {
        1 << (point as u8)
    }
}

impl Point {
    /// The key that switches it, if one does.
    #[must_use]
    pub fn switch(self) -> Option<&'static str> {
        SWITCHES.iter().find(|switch| switch.guards == Some(self)).map(|switch| switch.key)
    }
}
