//! Messages of the host for the next cell of a session.

/// The messages, in their order. The first ones may have been looked at, and are for no cell in flight: they are not
/// looked at again until a cell computes or ends. A host may settle thousands of promises of a cell that was undone.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) struct Inbox<M> {
    messages: Vec<M>,
    /// How many have been looked at; at most as many as there are.
    looked_at: usize,
}

impl<M> Default for Inbox<M> {
    fn default() -> Self {
        Self { messages: Vec::new(), looked_at: 0 }
    }
}

impl<M> Inbox<M> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &M> {
        self.messages.iter()
    }

    /// Adds a message behind the others.
    pub(super) fn push(&mut self, message: M) {
        self.messages.push(message);
    }

    /// Adds messages behind the others.
    pub(super) fn extend(&mut self, messages: impl IntoIterator<Item = M>) {
        self.messages.extend(messages);
    }

    /// Puts messages before the others. All are looked at again.
    pub(super) fn put_first(&mut self, messages: impl IntoIterator<Item = M>) {
        self.look_again();
        self.messages.splice(..0, messages);
    }

    /// Has all messages looked at again.
    pub(super) fn look_again(&mut self) {
        self.looked_at = 0;
    }

    /// Takes all messages.
    pub(super) fn take(&mut self) -> Vec<M> {
        std::mem::take(self).messages
    }

    /// Takes the messages that have not been looked at.
    pub(super) fn take_new(&mut self) -> Vec<M> {
        self.messages.split_off(self.looked_at)
    }

    /// All messages that are here have been looked at.
    pub(super) fn note_looked_at(&mut self) {
        self.looked_at = self.messages.len();
    }
}

impl<M> FromIterator<M> for Inbox<M> {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self { messages: messages.into_iter().collect(), looked_at: 0 }
    }
}
