//! A line on the terminal that says how far a long run has come. Nothing is shown when nobody looks at a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use krafla_simulator::play::Progress;

/// The line.
pub(crate) struct Line {
    bar: ProgressBar,
}

impl Line {
    /// A line for a run.
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
        let style =
            ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// The run has come so far.
    pub(crate) fn show(&self, progress: Progress) {
        let Progress { submitted, jobs, finished, now, cycles } = progress;
        // Words are made only as often as they can be drawn.
        if cycles % 64 == 0 || submitted == jobs {
            self.bar.set_message(format!(
                "{now} of virtual time: {submitted} of {jobs} jobs submitted, {finished} ended, {cycles} cycles"
            ));
        }
    }

    /// Shows these words.
    pub(crate) fn say(&self, words: String) {
        self.bar.set_message(words);
    }

    /// The run is over.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }
}
