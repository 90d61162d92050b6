//! Refusals as the client sees them: RFC 9457 `application/problem+json` with a stable `code`.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

use crate::metrics::Bound;

const PROBLEM_JSON: &str = "application/problem+json";

/// What is wrong, in a word that programs may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    InvalidRequest,
    InvalidDeliveryTime,
    ReservedName,
    NotFound,
    MethodNotAllowed,
    TopicNotFound,
    MessageNotFound,
    TimerNotFound,
    GroupNotFound,
    SubscriptionMismatch,
    GroupOrderFixed,
    AlreadyDelivered,
    AlreadyCancelled,
    TopicTypeMismatch,
    TopicTypeFixed,
    QueuesFixed,
    TopicNotEmpty,
    TimerExists,
    IdempotencyKeyReused,
    InvalidReceiptHandle,
    RequestTimeout,
    BodyTooLarge,
    BatchTooLarge,
    HeadersTooLarge,
    UriTooLong,
    TooManyWaiting,
    TooManyLeases,
    NotReady,
    Overloaded,
    StorageFull,
    StoreFailed,
    MessageDamaged,
    TransactionOpen,
    TransactionNotFound,
    UrlNotAllowed,
    DecidedOtherwise,
    TransactionAbandoned,
    TransactionNotAbandoned,
}

struct Facts {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
}

impl Code {
    /// The one place where a code gets its status.
    const fn facts(self) -> Facts {
        let (status, code, title) = match self {
            Self::InvalidRequest => {
                (StatusCode::BAD_REQUEST, "INVALID_REQUEST", "The request is malformed")
            }
            Self::InvalidDeliveryTime => (
                StatusCode::BAD_REQUEST,
                "INVALID_DELIVERY_TIME",
                "The delivery time cannot be used",
            ),
            Self::ReservedName => {
                (StatusCode::BAD_REQUEST, "RESERVED_NAME", "The name belongs to the system")
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "NOT_FOUND", "There is nothing here"),
            Self::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "METHOD_NOT_ALLOWED",
                "The path does not take this method",
            ),
            Self::TopicNotFound => {
                (StatusCode::NOT_FOUND, "TOPIC_NOT_FOUND", "There is no such topic")
            }
            Self::MessageNotFound => {
                (StatusCode::NOT_FOUND, "MESSAGE_NOT_FOUND", "There is no such message")
            }
            Self::TimerNotFound => {
                (StatusCode::NOT_FOUND, "TIMER_NOT_FOUND", "No timer was put under this key")
            }
            Self::TransactionOpen => (
                StatusCode::CONFLICT,
                "TRANSACTION_OPEN",
                "The message's transaction is not decided",
            ),
            Self::TransactionNotFound => {
                (StatusCode::NOT_FOUND, "TRANSACTION_NOT_FOUND", "There is no such transaction")
            }
            Self::UrlNotAllowed => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "URL_NOT_ALLOWED",
                "The server may not call this URL",
            ),
            Self::DecidedOtherwise => (
                StatusCode::CONFLICT,
                "DECIDED_OTHERWISE",
                "The transaction was decided the other way",
            ),
            Self::TransactionAbandoned => (
                StatusCode::GONE,
                "TRANSACTION_ABANDONED",
                "Nobody answered for the transaction in time",
            ),
            Self::TransactionNotAbandoned => (
                StatusCode::CONFLICT,
                "TRANSACTION_NOT_ABANDONED",
                "Only an abandoned transaction can be resumed",
            ),
            Self::AlreadyCancelled => {
                (StatusCode::CONFLICT, "ALREADY_CANCELLED", "The message was already cancelled")
            }
            Self::TopicTypeMismatch => (
                StatusCode::CONFLICT,
                "TOPIC_TYPE_MISMATCH",
                "The topic's type does not take such a message",
            ),
            Self::TopicTypeFixed => {
                (StatusCode::CONFLICT, "TOPIC_TYPE_FIXED", "A topic's type cannot be changed")
            }
            Self::QueuesFixed => (
                StatusCode::CONFLICT,
                "QUEUES_FIXED",
                "Queues can only be added, and to a FIFO topic none",
            ),
            Self::TopicNotEmpty => {
                (StatusCode::CONFLICT, "TOPIC_NOT_EMPTY", "The topic is not empty")
            }
            Self::TimerExists => (
                StatusCode::PRECONDITION_FAILED,
                "TIMER_EXISTS",
                "A timer waits under this key already",
            ),
            Self::IdempotencyKeyReused => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "IDEMPOTENCY_KEY_REUSED",
                "The idempotency key was used for another request",
            ),
            Self::GroupNotFound => {
                (StatusCode::NOT_FOUND, "GROUP_NOT_FOUND", "There is no such group")
            }
            Self::SubscriptionMismatch => (
                StatusCode::CONFLICT,
                "SUBSCRIPTION_MISMATCH",
                "The group reads the topic by another filter",
            ),
            Self::GroupOrderFixed => (
                StatusCode::CONFLICT,
                "GROUP_ORDER_FIXED",
                "Whether a group is ordered cannot be changed once it reads",
            ),
            Self::AlreadyDelivered => {
                (StatusCode::CONFLICT, "ALREADY_DELIVERED", "The message was already delivered")
            }
            Self::InvalidReceiptHandle => (
                StatusCode::CONFLICT,
                "INVALID_RECEIPT_HANDLE",
                "The receipt handle is not, or no longer, good",
            ),
            Self::RequestTimeout => {
                (StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", "The request came too slowly")
            }
            Self::BodyTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", "The body is too large")
            }
            Self::BatchTooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "BATCH_TOO_LARGE", "Too much at once")
            }
            Self::TooManyWaiting => {
                (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_WAITING", "Too many receives are waiting")
            }
            Self::TooManyLeases => {
                (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_LEASES", "Too many messages are out")
            }
            Self::HeadersTooLarge => (
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "HEADERS_TOO_LARGE",
                "The headers are too large",
            ),
            Self::UriTooLong => (StatusCode::URI_TOO_LONG, "URI_TOO_LONG", "The path is too long"),
            Self::NotReady => {
                (StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", "The server is not ready")
            }
            Self::Overloaded => {
                (StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED", "The server is overloaded")
            }
            Self::StorageFull => {
                (StatusCode::INSUFFICIENT_STORAGE, "STORAGE_FULL", "The disk is too full")
            }
            Self::StoreFailed => {
                (StatusCode::INTERNAL_SERVER_ERROR, "STORE_FAILED", "The store has failed")
            }
            Self::MessageDamaged => {
                (StatusCode::INTERNAL_SERVER_ERROR, "MESSAGE_DAMAGED", "The message is damaged")
            }
        };
        Facts { status, code, title }
    }

    /// The bound that it tells of, when it tells of no other.
    const fn bound(self) -> Option<Bound> {
        match self {
            Self::HeadersTooLarge | Self::UriTooLong => Some(Bound::HeaderBytes),
            Self::BodyTooLarge => Some(Bound::BodyBytes),
            Self::RequestTimeout => Some(Bound::BodyTime),
            Self::TooManyWaiting => Some(Bound::WaitingReceives),
            Self::TooManyLeases => Some(Bound::Leases),
            Self::StorageFull => Some(Bound::DiskReserve),
            _ => None,
        }
    }

    /// The code's own spelling, for where a code stands outside a problem.
    pub(super) const fn as_str(self) -> &'static str {
        self.facts().code
    }

    const fn worth_trying_again(self) -> bool {
        matches!(
            self,
            Self::NotReady | Self::Overloaded | Self::TooManyWaiting | Self::TooManyLeases
        )
    }
}

/// What becomes of the connection after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Afterwards {
    Keep,
    /// Where the next request begins is not known, or not worth reading up to.
    Close,
}

/// One refusal.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    errors: Vec<FieldError>,
    afterwards: Afterwards,
    /// That it was refused for.
    bound: Option<Bound>,
}

/// A member of the request's JSON that is wrong.
#[derive(Clone, Debug, Serialize)]
struct FieldError {
    /// A JSON pointer, in its URI fragment form.
    pointer: String,
    detail: String,
}

impl Problem {
    pub(super) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        let afterwards = match code {
            Code::BodyTooLarge | Code::RequestTimeout => Afterwards::Close,
            _ => Afterwards::Keep,
        };
        let bound = code.bound();
        Self { code, detail: detail.into(), errors: Vec::new(), afterwards, bound }
    }

    /// The same, refused for `bound`.
    #[must_use]
    pub(super) fn by(mut self, bound: Bound) -> Self {
        self.bound = Some(bound);
        self
    }

    pub(super) fn bound(&self) -> Option<Bound> {
        self.bound
    }

    pub(super) fn status(&self) -> StatusCode {
        self.code.facts().status
    }

    pub(super) fn invalid(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::InvalidRequest, detail)
    }

    /// The same, pointing at a member of the request's JSON, such as `/deliverAt`.
    #[must_use]
    pub(super) fn at(mut self, pointer: &str) -> Self {
        let detail = self.detail.clone().into_owned();
        self.errors.push(FieldError { pointer: format!("#{pointer}"), detail });
        self
    }

    /// The same, of a part of a larger request that begins at `prefix`.
    #[must_use]
    pub(super) fn within(mut self, prefix: &str) -> Self {
        if self.errors.is_empty() {
            return self.at(prefix);
        }
        for error in &mut self.errors {
            let pointer = error.pointer.trim_start_matches('#');
            error.pointer = format!("#{prefix}{pointer}");
        }
        self
    }

    /// As it stands in JSON.
    pub(super) fn written(&self) -> Written<'_> {
        let Facts { status, code, title } = self.code.facts();
        Written {
            r#type: format!("urn:horolog:problem:{code}"),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            code,
            errors: &self.errors,
        }
    }

    /// The same, of a request that carries many: what is too large is the batch, to be sent in parts.
    #[must_use]
    pub(super) fn of_batch(mut self) -> Self {
        if self.code == Code::BodyTooLarge {
            self.code = Code::BatchTooLarge;
        }
        self
    }

    #[must_use]
    pub(super) fn closing(mut self) -> Self {
        self.afterwards = Afterwards::Close;
        self
    }
}

impl Problem {
    /// A whole answer, for a connection on which no handler was asked; the connection is closed after it.
    pub(super) fn written_whole(&self) -> Bytes {
        let json = self.json();
        let status = self.status();
        let (number, reason) = (status.as_u16(), status.canonical_reason().unwrap_or_default());
        let retry = if self.code.worth_trying_again() { "retry-after: 1\r\n" } else { "" };
        let length = json.len();
        let head = format!(
            "HTTP/1.1 {number} {reason}\r\ncontent-type: {PROBLEM_JSON}\r\n{retry}\
             connection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        [head.into_bytes(), json].concat().into()
    }

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.written()).expect("strings and numbers are always JSON")
    }
}

/// A problem as JSON.
#[derive(Debug, Serialize)]
pub(super) struct Written<'a> {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    #[serde(skip_serializing_if = "<[FieldError]>::is_empty")]
    errors: &'a [FieldError],
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = Response::new(Body::from(self.json()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if self.code.worth_trying_again() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.afterwards == Afterwards::Close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
