//! What people get to see of a run: numbers, tables for the terminal, JSON for tools, and one HTML page.
//!
//! Everything here is a function of a [`Record`](crate::record::Record): no clock, no I/O, no order of hash maps, so the
//! same run gives the same bytes. What depends on the machine comes in as [`json::Timing`] and stays in its own section.
//!
//! ```text
//! record ── summary ─┬─ tables            terminal
//!             waits ─┤
//!                    ├─ json              tools
//!                    └─ html ── report.html
//!                        ├─ timeline ── lanes
//!                        └─ plots ── series
//!                            both on svg, ticks, palette
//! ```

pub mod html;
pub mod json;
pub mod summary;
pub mod tables;
pub mod waits;

mod fairness;
mod lanes;
mod names;
mod palette;
mod plots;
mod queues;
mod series;
mod stats;
mod svg;
#[cfg(test)]
mod testing;
mod ticks;
mod timeline;
