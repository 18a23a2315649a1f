//! Experiments: those of the literature, played by its own rules, so that their numbers can be put beside the published
//! ones, and our own, which play a day with a part of the scheduler and without it.

pub mod defragment;
pub mod drift;
pub mod fgd;
