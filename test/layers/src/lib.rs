//! Nothing here: the rules about which crate may reach which are tests, in `tests/layers.rs`.
