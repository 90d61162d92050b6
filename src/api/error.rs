//! Every error that a service can answer with, matched to its code: the one place where that is
//! decided, and exhaustive, so that a new error does not compile before it has a code.

use super::problem::{Code, Problem};
use crate::message::NameError;
use crate::metrics::Bound;
use crate::producer::Refusal;
use crate::service::{
    ChangeError, DeadLettersError, ExtendError, GroupError, LookupError, PutError, ReceiveError,
    ResetOffsetsError, ScheduledError, SearchError, TimerError, TopicError, TransactionError,
    Unavailable,
};

impl From<Unavailable> for Problem {
    fn from(error: Unavailable) -> Self {
        let code = match error {
            Unavailable::NotReady { .. } => Code::NotReady,
            Unavailable::Overloaded => Code::Overloaded,
            Unavailable::StorageFull => Code::StorageFull,
            Unavailable::Failed { .. } => Code::StoreFailed,
        };
        let problem = Self::new(code, error.to_string());
        match error {
            Unavailable::Overloaded => problem.by(Bound::QueuedAppends),
            _ => problem,
        }
    }
}

impl From<PutError> for Problem {
    fn from(error: PutError) -> Self {
        let code = match error {
            PutError::Unavailable(error) => return error.into(),
            PutError::Refused { refusal, .. } => return refusal.into(),
            PutError::TopicNotFound { .. } => Code::TopicNotFound,
            PutError::KeyReused => Code::IdempotencyKeyReused,
            PutError::TooLarge => Code::BatchTooLarge,
        };
        Self::new(code, error.to_string())
    }
}

impl From<LookupError> for Problem {
    fn from(error: LookupError) -> Self {
        let code = match error {
            LookupError::Unavailable(error) => return error.into(),
            LookupError::NotFound => Code::MessageNotFound,
            LookupError::Damaged { .. } => Code::MessageDamaged,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::Malformed => Code::InvalidRequest,
            Refusal::TooFarAhead => Code::InvalidDeliveryTime,
            Refusal::TypeMismatch => Code::TopicTypeMismatch,
        };
        Self::new(code, refusal.to_string())
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let code = match error {
            ChangeError::Unavailable(error) => return error.into(),
            ChangeError::NotFound => Code::MessageNotFound,
            ChangeError::AlreadyDelivered => Code::AlreadyDelivered,
            ChangeError::AlreadyCancelled => Code::AlreadyCancelled,
            ChangeError::TooFarAhead => Code::InvalidDeliveryTime,
            ChangeError::TransactionOpen => Code::TransactionOpen,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        let code = match error {
            SearchError::Unavailable(error) => return error.into(),
            SearchError::TopicNotFound { .. } => Code::TopicNotFound,
            SearchError::BadCursor => Code::InvalidRequest,
        };
        Self::new(code, error.to_string())
    }
}

impl From<TimerError> for Problem {
    fn from(error: TimerError) -> Self {
        let code = match error {
            TimerError::Unavailable(error) => return error.into(),
            TimerError::Put(error) => return error.into(),
            TimerError::Exists => Code::TimerExists,
            TimerError::NotFound => Code::TimerNotFound,
            TimerError::AlreadyDelivered => Code::AlreadyDelivered,
        };
        Self::new(code, error.to_string())
    }
}

impl From<TopicError> for Problem {
    fn from(error: TopicError) -> Self {
        let code = match error {
            TopicError::Unavailable(error) => return error.into(),
            TopicError::NotFound { .. } => Code::TopicNotFound,
            TopicError::TypeFixed { .. } => Code::TopicTypeFixed,
            TopicError::QueuesFixed { .. } => Code::QueuesFixed,
            TopicError::NotEmpty { .. } => Code::TopicNotEmpty,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ReceiveError> for Problem {
    fn from(error: ReceiveError) -> Self {
        let code = match error {
            ReceiveError::Unavailable(error) => return error.into(),
            ReceiveError::TopicNotFound { .. } => Code::TopicNotFound,
            ReceiveError::Mismatch { .. } => Code::SubscriptionMismatch,
            ReceiveError::TooManyOut => Code::TooManyLeases,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ScheduledError> for Problem {
    fn from(error: ScheduledError) -> Self {
        let code = match error {
            ScheduledError::Unavailable(error) => return error.into(),
            ScheduledError::TopicNotFound { .. } => Code::TopicNotFound,
            ScheduledError::InvalidCursor
            | ScheduledError::EmptyRange
            | ScheduledError::Timeline(_) => Code::InvalidRequest,
        };
        Self::new(code, error.to_string())
    }
}

impl From<TransactionError> for Problem {
    fn from(error: TransactionError) -> Self {
        let code = match error {
            TransactionError::Unavailable(error) => return error.into(),
            TransactionError::NotFound => Code::TransactionNotFound,
            TransactionError::TopicNotFound { .. } => Code::TopicNotFound,
            TransactionError::InvalidCursor => Code::InvalidRequest,
            TransactionError::DecidedOtherwise => Code::DecidedOtherwise,
            TransactionError::Abandoned => Code::TransactionAbandoned,
            TransactionError::NotAbandoned => Code::TransactionNotAbandoned,
        };
        Self::new(code, error.to_string())
    }
}

impl From<GroupError> for Problem {
    fn from(error: GroupError) -> Self {
        let code = match error {
            GroupError::Unavailable(error) => return error.into(),
            GroupError::NotFound { .. } => Code::GroupNotFound,
            GroupError::Mismatch { .. } => Code::SubscriptionMismatch,
            GroupError::OrderFixed { .. } => Code::GroupOrderFixed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<DeadLettersError> for Problem {
    fn from(error: DeadLettersError) -> Self {
        let code = match error {
            DeadLettersError::Unavailable(error) => return error.into(),
            DeadLettersError::GroupNotFound { .. } => Code::GroupNotFound,
            DeadLettersError::TopicNotFound { .. } => Code::TopicNotFound,
            DeadLettersError::InvalidCursor => Code::InvalidRequest,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ResetOffsetsError> for Problem {
    fn from(error: ResetOffsetsError) -> Self {
        let text = error.to_string();
        match error {
            ResetOffsetsError::Unavailable(error) => error.into(),
            ResetOffsetsError::GroupNotFound { .. } => Self::new(Code::GroupNotFound, text),
            ResetOffsetsError::TopicNotFound { .. } => Self::new(Code::TopicNotFound, text),
            ResetOffsetsError::UnknownQueue { queue }
            | ResetOffsetsError::BeyondEnd { queue, .. } => {
                Self::invalid(text).at(&format!("/to/{queue}"))
            }
        }
    }
}

impl From<ExtendError> for Problem {
    fn from(error: ExtendError) -> Self {
        let code = match error {
            ExtendError::Unavailable(error) => return error.into(),
            ExtendError::InvalidReceiptHandle => Code::InvalidReceiptHandle,
        };
        Self::new(code, error.to_string())
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        let code = match error {
            NameError::Length { .. } | NameError::Character { .. } | NameError::Dots { .. } => {
                Code::InvalidRequest
            }
            NameError::Reserved { .. } => Code::ReservedName,
        };
        Self::new(code, error.to_string())
    }
}
