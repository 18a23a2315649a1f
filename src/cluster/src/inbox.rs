//! What the engine's thread is told, and by whom.

use krafla_engine::{Input, Outcome};
use tokio::sync::mpsc;

/// One thing for the engine's thread.
#[derive(Debug)]
pub(crate) enum Letter {
    /// Something for the engine.
    Input(Box<Input>),
    /// Everything that there is has been told: what follows are changes.
    Complete,
}

/// Letters under way at most. Who writes faster waits: a watch then stops reading from its connection.
const ROOM: usize = 4_096;

/// The two ends of the inbox.
pub(crate) fn inbox() -> (Inbox, mpsc::Receiver<Letter>) {
    let (sender, receiver) = mpsc::channel(ROOM);
    (Inbox(sender), receiver)
}

/// The end for those who write.
#[derive(Clone)]
pub(crate) struct Inbox(mpsc::Sender<Letter>);

impl Inbox {
    /// Tells the engine something. Ends quietly once nobody reads any more.
    pub(crate) async fn input(&self, input: Input) {
        let _ = self.0.send(Letter::Input(Box::new(input))).await;
    }

    /// Says that everything has been told.
    pub(crate) async fn complete(&self) {
        let _ = self.0.send(Letter::Complete).await;
    }
}

/// The end for those who report outcomes.
#[derive(Clone)]
pub(crate) struct Outcomes(pub(crate) Inbox);

impl Outcomes {
    pub(crate) async fn tell(&self, outcome: Outcome) {
        self.0.input(Input::Outcome(outcome)).await;
    }
}
