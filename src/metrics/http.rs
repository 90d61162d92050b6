//! One counter for each route and status code, found by index: a request pays for one addition.

use std::fmt;
use std::sync::OnceLock;

use metrics::{Counter, Label};

/// What a request asked for, as a label: never the path itself, which has no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    PutMessage,
    GetMessage,
    CancelMessage,
    PutBatch,
    SearchMessages,
    RescheduleMessage,
    DeliverMessage,
    PutTimer,
    GetTimer,
    CancelTimer,
    ListTopics,
    GetTopic,
    SetTopic,
    DeleteTopic,
    Receive,
    Ack,
    Nack,
    Extend,
    ListDeadLetters,
    RedriveDeadLetters,
    PutGroup,
    GetGroup,
    ListGroups,
    ResetOffsets,
    Live,
    Ready,
    Version,
    Metrics,
    Limits,
    ListScheduled,
    Timeline,
    CancelScheduled,
    PrepareTransaction,
    CommitTransaction,
    RollbackTransaction,
    GetTransaction,
    ListTransactions,
    ResumeTransaction,
    TakeChecks,
    /// No route of ours, or not with this method.
    None,
}

impl Route {
    const ALL: [Self; 40] = [
        Self::PutMessage,
        Self::GetMessage,
        Self::CancelMessage,
        Self::PutBatch,
        Self::SearchMessages,
        Self::RescheduleMessage,
        Self::DeliverMessage,
        Self::PutTimer,
        Self::GetTimer,
        Self::CancelTimer,
        Self::ListTopics,
        Self::GetTopic,
        Self::SetTopic,
        Self::DeleteTopic,
        Self::Receive,
        Self::Ack,
        Self::Nack,
        Self::Extend,
        Self::ListDeadLetters,
        Self::RedriveDeadLetters,
        Self::PutGroup,
        Self::GetGroup,
        Self::ListGroups,
        Self::ResetOffsets,
        Self::Live,
        Self::Ready,
        Self::Version,
        Self::Metrics,
        Self::Limits,
        Self::ListScheduled,
        Self::Timeline,
        Self::CancelScheduled,
        Self::PrepareTransaction,
        Self::CommitTransaction,
        Self::RollbackTransaction,
        Self::GetTransaction,
        Self::ListTransactions,
        Self::ResumeTransaction,
        Self::TakeChecks,
        Self::None,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::PutMessage => "put_message",
            Self::GetMessage => "get_message",
            Self::CancelMessage => "cancel_message",
            Self::PutBatch => "put_batch",
            Self::SearchMessages => "search_messages",
            Self::RescheduleMessage => "reschedule_message",
            Self::DeliverMessage => "deliver_message",
            Self::PutTimer => "put_timer",
            Self::GetTimer => "get_timer",
            Self::CancelTimer => "cancel_timer",
            Self::ListTopics => "list_topics",
            Self::GetTopic => "get_topic",
            Self::SetTopic => "set_topic",
            Self::DeleteTopic => "delete_topic",
            Self::Receive => "receive",
            Self::Ack => "ack",
            Self::Nack => "nack",
            Self::Extend => "extend",
            Self::ListDeadLetters => "list_dead_letters",
            Self::RedriveDeadLetters => "redrive_dead_letters",
            Self::PutGroup => "put_group",
            Self::GetGroup => "get_group",
            Self::ListGroups => "list_groups",
            Self::ResetOffsets => "reset_offsets",
            Self::Live => "livez",
            Self::Ready => "readyz",
            Self::Version => "version",
            Self::Metrics => "metrics",
            Self::Limits => "limits",
            Self::ListScheduled => "list_scheduled",
            Self::Timeline => "timeline",
            Self::CancelScheduled => "cancel_scheduled",
            Self::PrepareTransaction => "prepare_transaction",
            Self::CommitTransaction => "commit_transaction",
            Self::RollbackTransaction => "rollback_transaction",
            Self::GetTransaction => "get_transaction",
            Self::ListTransactions => "list_transactions",
            Self::ResumeTransaction => "resume_transaction",
            Self::TakeChecks => "take_checks",
            Self::None => "none",
        }
    }
}

/// The codes that are counted each for themselves; the last one stands for all others.
const CODES: [(u16, &str); 18] = [
    (200, "200"),
    (201, "201"),
    (204, "204"),
    (400, "400"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (409, "409"),
    (412, "412"),
    (413, "413"),
    (414, "414"),
    (422, "422"),
    (429, "429"),
    (431, "431"),
    (500, "500"),
    (503, "503"),
    (507, "507"),
    (0, "other"),
];

/// Counters are made when they are first needed, so that only codes that occurred are listed.
pub(super) struct HttpRequests {
    counters: Vec<[OnceLock<Counter>; CODES.len()]>,
}

impl HttpRequests {
    pub(super) fn new() -> Self {
        Self { counters: Route::ALL.iter().map(|_| Default::default()).collect() }
    }

    pub(super) fn count(
        &self,
        route: Route,
        code: u16,
        register: impl FnOnce(Vec<Label>) -> Counter,
    ) {
        let column = CODES.iter().position(|&(known, _)| known == code).unwrap_or(CODES.len() - 1);
        self.counters[route as usize][column]
            .get_or_init(|| {
                let code = CODES[column].1;
                register(vec![
                    Label::from_static_parts("route", route.label()),
                    Label::from_static_parts("code", code),
                ])
            })
            .increment(1);
    }
}

impl fmt::Debug for HttpRequests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HttpRequests").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_stands_at_its_own_index() {
        for (index, route) in Route::ALL.into_iter().enumerate() {
            assert_eq!(route as usize, index, "{route:?}");
        }
    }
}
