//! Krafla against a real API server: the binary as it is shipped, objects as people and operators make them, and a
//! kubelet stand-in that runs what is bound.
//!
//! The control plane comes from `KUBEBUILDER_ASSETS`, or is built by `hack/control-plane/build`. Where neither is
//! possible these tests say so and pass, unless `KRAFLA_E2E=required`.

mod deploy;
mod descheduler;
mod devices;
mod evictions;
mod extenders;
mod faults;
mod groups;
mod harness;
mod objects;
mod profiles;
mod prometheus;
mod proxy;
mod volumes;
mod wire;
mod workloads;
