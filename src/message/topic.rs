//! What a topic is, besides its name.

/// What a topic takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicType {
    /// Everything.
    Mixed,
    /// Messages with neither a moment nor a message group.
    Normal,
    /// Messages with a moment.
    Delay,
    /// Messages with a message group, whose order their queue keeps.
    Fifo,
    /// Messages that come by way of a transaction.
    Transaction,
}

impl TopicType {
    pub const ALL: [Self; 5] =
        [Self::Mixed, Self::Normal, Self::Delay, Self::Fifo, Self::Transaction];

    /// Whether a message that comes by way of a transaction belongs here.
    pub const fn takes_transactions(self) -> bool {
        matches!(self, Self::Mixed | Self::Transaction)
    }

    /// Whether a message that is put directly belongs here.
    pub fn takes(self, has_moment: bool, has_message_group: bool) -> bool {
        match self {
            Self::Mixed => true,
            Self::Normal => !has_moment && !has_message_group,
            Self::Delay => has_moment && !has_message_group,
            Self::Fifo => has_message_group,
            Self::Transaction => false,
        }
    }
}

/// What can be said of a topic when it is made, and in part later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    pub of: TopicType,
    pub queues: u16,
    /// How long what was delivered waits for its readers; `None` is the server's own.
    pub retention_ms: Option<u64>,
}

impl TopicSettings {
    /// The settings of a topic that makes itself.
    pub const fn mixed(queues: u16) -> Self {
        Self { of: TopicType::Mixed, queues, retention_ms: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_topic_takes_only_its_own_kind_of_message() {
        for (of, plain, timed, grouped, both) in [
            (TopicType::Mixed, true, true, true, true),
            (TopicType::Normal, true, false, false, false),
            (TopicType::Delay, false, true, false, false),
            (TopicType::Fifo, false, false, true, true),
            (TopicType::Transaction, false, false, false, false),
        ] {
            assert_eq!(of.takes(false, false), plain, "{of:?}");
            assert_eq!(of.takes(true, false), timed, "{of:?}");
            assert_eq!(of.takes(false, true), grouped, "{of:?}");
            assert_eq!(of.takes(true, true), both, "{of:?}");
            let transactions = matches!(of, TopicType::Mixed | TopicType::Transaction);
            assert_eq!(of.takes_transactions(), transactions, "{of:?}");
        }
    }
}
