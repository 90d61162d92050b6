//! The bounds of the server, by the names under which refusals are counted.

use metrics::Counter;

/// A bound that a client has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Connections,
    HeaderBytes,
    HeaderTime,
    BodyBytes,
    BodyTime,
    RequestMemory,
    AnswerMemory,
    AnswerTime,
    WaitingReceives,
    Leases,
    QueuedAppends,
    DiskReserve,
}

impl Bound {
    pub(super) const ALL: [Self; 12] = [
        Self::Connections,
        Self::HeaderBytes,
        Self::HeaderTime,
        Self::BodyBytes,
        Self::BodyTime,
        Self::RequestMemory,
        Self::AnswerMemory,
        Self::AnswerTime,
        Self::WaitingReceives,
        Self::Leases,
        Self::QueuedAppends,
        Self::DiskReserve,
    ];

    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::HeaderBytes => "header_bytes",
            Self::HeaderTime => "header_time",
            Self::BodyBytes => "body_bytes",
            Self::BodyTime => "body_time",
            Self::RequestMemory => "request_memory",
            Self::AnswerMemory => "answer_memory",
            Self::AnswerTime => "answer_time",
            Self::WaitingReceives => "waiting_receives",
            Self::Leases => "leases",
            Self::QueuedAppends => "queued_appends",
            Self::DiskReserve => "disk_reserve",
        }
    }
}

/// One counter for each bound.
pub(super) struct Refused([Counter; Bound::ALL.len()]);

impl Refused {
    pub(super) fn new(register: impl Fn(&'static str) -> Counter) -> Self {
        Self(Bound::ALL.map(|bound| register(bound.label())))
    }

    pub(super) fn count(&self, bound: Bound) {
        self.0[bound as usize].increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_stands_at_its_own_index() {
        for (index, bound) in Bound::ALL.into_iter().enumerate() {
            assert_eq!(bound as usize, index, "{bound:?}");
        }
    }
}
