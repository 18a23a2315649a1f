//! The example workload of `conf/example`, built in, so that the binary alone can show it.

/// The files, in order.
pub(crate) const FILES: [(&str, &str); 5] = [
    ("conf/example/cluster.yaml", include_str!("../../../conf/example/cluster.yaml")),
    ("conf/example/queues.yaml", include_str!("../../../conf/example/queues.yaml")),
    ("conf/example/training.yaml", include_str!("../../../conf/example/training.yaml")),
    ("conf/example/spark.yaml", include_str!("../../../conf/example/spark.yaml")),
    ("conf/example/services.yaml", include_str!("../../../conf/example/services.yaml")),
];

/// The configuration that it is scheduled with.
pub(crate) const CONFIGURATION: (&str, &str) =
    ("conf/example/scheduler.conf", include_str!("../../../conf/example/scheduler.conf"));
