//! Actions: the steps of a session, in the order that the configuration names.

use crate::session::Session;

/// One step of a session.
pub trait Action: Send {
    /// Its name in the configuration.
    fn name(&self) -> &'static str;

    /// Does it. What is committed becomes effects; what is not is undone.
    fn execute(&mut self, session: &mut Session<'_>);

    /// What it remembers from one run to the next, as text for whoever takes its place.
    fn memory(&self) -> String {
        String::new()
    }

    /// Takes over what an action remembers whose place it takes. What it cannot read is left out.
    fn recall(&mut self, _memory: &str) {}
}
