//! The 64-bit tag of a TimerLog record: all that firing needs, so that firing reads no message.
//!
//! ```text
//! bit   63   60 59            32 31       16 15        0
//!       +------+----------------+-----------+-----------+
//!       | kind | topic id       | queue     | tag hash  |
//!       +------+----------------+-----------+-----------+
//! ```

/// What is due. Persisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TimedKind {
    /// A message that becomes readable.
    Message = 1,
    /// A message that comes again: in its retry queue, where the tag hash is the attempts made.
    Retry = 2,
    /// A producer that is to be asked what became of its transaction.
    Check = 3,
    /// A message that waits in the queue of a delay level. It has no entry in the wheel: the tag stands in
    /// the records that settle it, and says that there is nothing to take out of a slot.
    Level = 4,
}

/// Topic ids have 28 bits here, so there are no more than that.
pub const MAX_TOPIC_ID: u32 = (1 << 28) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerTag(pub u64);

impl TimerTag {
    /// Of the checks of a transaction of the topic.
    pub fn check(topic_id: u32) -> Self {
        Self::new(TimedKind::Check, topic_id, 0, 0)
    }

    pub fn message(topic_id: u32, queue: u16, tag_hash: u16) -> Self {
        Self::new(TimedKind::Message, topic_id, queue, tag_hash)
    }

    /// A retry topic has one queue.
    pub fn retry(retry_topic: u32, attempts: u16) -> Self {
        Self::new(TimedKind::Retry, retry_topic, 0, attempts)
    }

    /// Of a message that waits in a delay level, to be delivered to `queue` of the topic.
    pub fn level(topic_id: u32, queue: u16, tag_hash: u16) -> Self {
        Self::new(TimedKind::Level, topic_id, queue, tag_hash)
    }

    fn new(kind: TimedKind, topic_id: u32, queue: u16, tag_hash: u16) -> Self {
        debug_assert!(topic_id <= MAX_TOPIC_ID);
        let low = u64::from(queue) << 16 | u64::from(tag_hash);
        Self((kind as u64) << 60 | u64::from(topic_id) << 32 | low)
    }

    /// Whether what has the tag has, or had, an entry in the wheel.
    pub fn is_in_the_wheel(self) -> bool {
        self.kind() != Some(TimedKind::Level)
    }

    /// The tag of the entry by which the same message waits in the wheel.
    #[must_use]
    pub fn in_the_wheel(self) -> Self {
        match self.kind() {
            Some(TimedKind::Level) => Self::message(self.topic_id(), self.queue(), self.tag_hash()),
            Some(TimedKind::Message | TimedKind::Retry | TimedKind::Check) | None => self,
        }
    }

    /// `None` for a kind that this version does not know.
    pub fn kind(self) -> Option<TimedKind> {
        match self.0 >> 60 {
            1 => Some(TimedKind::Message),
            2 => Some(TimedKind::Retry),
            3 => Some(TimedKind::Check),
            4 => Some(TimedKind::Level),
            _ => None,
        }
    }

    pub fn topic_id(self) -> u32 {
        u32::try_from(self.0 >> 32).expect("32 bits are left") & MAX_TOPIC_ID
    }

    pub fn queue(self) -> u16 {
        u16::try_from(self.0 >> 16 & 0xffff).expect("masked to 16 bits")
    }

    pub fn tag_hash(self) -> u16 {
        u16::try_from(self.0 & 0xffff).expect("masked to 16 bits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_holds_its_parts_at_their_bits() {
        let tag = TimerTag::message(MAX_TOPIC_ID, 0xfffe, 0x1234);
        assert_eq!(tag.0, 0x1fff_ffff_fffe_1234);
        assert_eq!(tag.kind(), Some(TimedKind::Message));
        assert_eq!((tag.topic_id(), tag.queue(), tag.tag_hash()), (MAX_TOPIC_ID, 0xfffe, 0x1234));
        assert!(tag.is_in_the_wheel());
        assert_eq!(tag.in_the_wheel(), tag);
        let level = TimerTag::level(MAX_TOPIC_ID, 0xfffe, 0x1234);
        assert_eq!(level.0, 0x4fff_ffff_fffe_1234);
        assert_eq!(level.kind(), Some(TimedKind::Level));
        assert!(!level.is_in_the_wheel());
        assert_eq!(level.in_the_wheel(), tag);
        let tag = TimerTag::retry(3, 5);
        assert_eq!(tag.0, 0x2000_0003_0000_0005);
        assert_eq!(tag.kind(), Some(TimedKind::Retry));
        let check = TimerTag::check(7);
        assert_eq!((check.0, check.kind()), (0x3000_0007_0000_0000, Some(TimedKind::Check)));
        assert_eq!(TimerTag(0xf000_0000_0000_0000).kind(), None);
    }
}
