//! The Scheduling Framework as a plugin sees it: which hook is called when, and what follows from its answer.

mod cycles;
mod docs;
mod node_choice;
mod permit;
mod queueing;
mod shape;
mod traced;
