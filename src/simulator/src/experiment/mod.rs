//! Experiments of the literature, played by its own rules, so that their numbers can be put beside the published ones.

pub mod fgd;
