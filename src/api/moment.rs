//! Moments as requests give them, by JSON or by header, and why one is refused.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::problem::{Code, Problem};
use crate::clock::Timestamp;
use crate::message::Moment;
use crate::units::{DurationError, duration_ms};

/// A value as it was written: the door decides what it means, not the JSON parser, which would turn
/// a number of 65 bits into something near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Number(&'a str),
    Text(Cow<'a, str>),
    /// An object, an array, a truth value or null.
    Other,
}

impl<'a> From<&'a RawValue> for Token<'a> {
    fn from(raw: &'a RawValue) -> Self {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'"') => match serde_json::from_str(text) {
                Ok(text) => Self::Text(text),
                Err(_) => Self::Other,
            },
            Some(b'-' | b'0'..=b'9') => Self::Number(text),
            _ => Self::Other,
        }
    }
}

/// The three ways to say when; each may be missing.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) deliver_at: Option<Token<'a>>,
    pub(super) delay: Option<Token<'a>>,
    pub(super) delay_level: Option<Token<'a>>,
}

/// Why a time or a duration was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TimeError {
    #[error("this is neither text nor a number")]
    WrongType,
    #[error("not a time: write RFC 3339 with an offset, or whole milliseconds since 1970")]
    NotATime,
    #[error("a time is counted in whole milliseconds")]
    Fraction,
    #[error("a time before 1970 cannot be used")]
    Negative,
    #[error("a time has at most 64 bits")]
    TooLarge,
    #[error(transparent)]
    Duration(#[from] DurationError),
}

/// Why a moment was refused, and which member it was given in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MomentError {
    #[error("at most one of deliverAt, delay and delayLevel can be given")]
    Several,
    #[error("deliverAt: {0}")]
    DeliverAt(TimeError),
    #[error("delay: {0}")]
    Delay(TimeError),
    #[error("delayLevel: a level is a whole number, and not negative")]
    Level,
}

impl From<MomentError> for Problem {
    fn from(error: MomentError) -> Self {
        let (code, pointer) = match error {
            MomentError::Several => (Code::InvalidRequest, None),
            MomentError::Level => (Code::InvalidRequest, Some("/delayLevel")),
            MomentError::DeliverAt(reason) => (code_of(reason), Some("/deliverAt")),
            MomentError::Delay(reason) => (code_of(reason), Some("/delay")),
        };
        let problem = Self::new(code, error.to_string());
        match pointer {
            Some(pointer) => problem.at(pointer),
            None => problem,
        }
    }
}

const fn code_of(reason: TimeError) -> Code {
    match reason {
        TimeError::WrongType => Code::InvalidRequest,
        TimeError::NotATime
        | TimeError::Fraction
        | TimeError::Negative
        | TimeError::TooLarge
        | TimeError::Duration(_) => Code::InvalidDeliveryTime,
    }
}

/// The moment asked for; nothing asked for means now.
pub(super) fn moment(asked: &Asked<'_>) -> Result<Moment, MomentError> {
    let level = match &asked.delay_level {
        None => None,
        Some(token) => match level(token)? {
            0 => None,
            level => Some(level),
        },
    };
    match (&asked.deliver_at, &asked.delay, level) {
        (None, None, None) => Ok(Moment::Now),
        (Some(at), None, None) => time(at).map(Moment::At).map_err(MomentError::DeliverAt),
        (None, Some(delay), None) => duration(delay).map(Moment::After).map_err(MomentError::Delay),
        (None, None, Some(level)) => Ok(Moment::Level(level)),
        _ => Err(MomentError::Several),
    }
}

/// Text is no level, whatever it says. There is no level too high: it will be the table's last.
fn level(token: &Token<'_>) -> Result<u32, MomentError> {
    match token {
        Token::Number(text) if is_number(text) && !text.starts_with('-') => {
            Ok(text.parse().unwrap_or(u32::MAX))
        }
        Token::Number(_) | Token::Text(_) | Token::Other => Err(MomentError::Level),
    }
}

/// RFC 3339 with any offset, or whole milliseconds since 1970. Finer than a millisecond is rounded
/// up, since a message must not come before the moment that was asked for.
pub(super) fn time(token: &Token<'_>) -> Result<Timestamp, TimeError> {
    let text = match token {
        Token::Number(text) => return milliseconds(text).map(Timestamp::from_millis),
        Token::Text(text) => text.trim_ascii(),
        Token::Other => return Err(TimeError::WrongType),
    };
    if is_number(text) {
        return milliseconds(text).map(Timestamp::from_millis);
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| TimeError::NotATime)?;
    let nanos = time.as_nanosecond();
    if nanos < 0 {
        return Err(TimeError::Negative);
    }
    let millis = nanos.unsigned_abs().div_ceil(1_000_000);
    u64::try_from(millis).map(Timestamp::from_millis).map_err(|_| TimeError::TooLarge)
}

/// A duration in milliseconds, in any of the forms of [`duration_ms`].
pub(super) fn duration(token: &Token<'_>) -> Result<u64, TimeError> {
    match token {
        Token::Number(text) => milliseconds(text),
        Token::Text(text) => duration_ms(text).map_err(TimeError::Duration),
        Token::Other => Err(TimeError::WrongType),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn milliseconds(number: &str) -> Result<u64, TimeError> {
    if number.starts_with('-') {
        return Err(TimeError::Negative);
    }
    if !is_number(number) {
        return Err(TimeError::Fraction);
    }
    number.parse().map_err(|_| TimeError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(json: &str) -> Result<Moment, MomentError> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        moment(&Asked { deliver_at: Some(raw.into()), ..Asked::default() })
    }

    fn after(json: &str) -> Result<Moment, MomentError> {
        let raw: &RawValue = serde_json::from_str(json).unwrap();
        moment(&Asked { delay: Some(raw.into()), ..Asked::default() })
    }

    #[test]
    fn a_time_is_read_with_any_offset_or_as_milliseconds() {
        for (json, ms) in [
            ("0", 0),
            ("1790000000007", 1_790_000_000_007),
            ("\"1790000000007\"", 1_790_000_000_007),
            ("\"2026-09-21T14:13:20.007Z\"", 1_790_000_000_007),
            ("\"2026-09-21T22:13:20.007+08:00\"", 1_790_000_000_007),
            ("\"2026-09-21t14:13:20.007z\"", 1_790_000_000_007),
            ("\"2026-09-21T14:13:20.0065Z\"", 1_790_000_000_007),
            ("\"2026-09-21T14:13:20.006000001Z\"", 1_790_000_000_007),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(at(json), Ok(Moment::At(Timestamp::from_millis(ms))), "{json}");
        }
    }

    #[test]
    fn a_time_that_cannot_be_is_refused_with_its_reason() {
        for (json, reason) in [
            ("-1", TimeError::Negative),
            ("\"-1\"", TimeError::Negative),
            ("\"1969-12-31T23:59:59Z\"", TimeError::Negative),
            ("1.5", TimeError::Fraction),
            ("1e300", TimeError::Fraction),
            ("18446744073709551616", TimeError::TooLarge),
            ("\"18446744073709551616\"", TimeError::TooLarge),
            ("\"\"", TimeError::NotATime),
            ("\"tomorrow\"", TimeError::NotATime),
            ("\"2026-09-21T14:13:20\"", TimeError::NotATime),
            ("\"2026-02-30T00:00:00Z\"", TimeError::NotATime),
            ("true", TimeError::WrongType),
            ("null", TimeError::WrongType),
            ("[1]", TimeError::WrongType),
        ] {
            assert_eq!(at(json), Err(MomentError::DeliverAt(reason)), "{json}");
        }
    }

    #[test]
    fn a_delay_is_read_as_a_duration_or_as_milliseconds() {
        for (json, ms) in [("1500", 1500), ("\"90s\"", 90_000), ("\"PT30M\"", 1_800_000)] {
            assert_eq!(after(json), Ok(Moment::After(ms)), "{json}");
        }
        for (json, reason) in [
            ("-1", TimeError::Negative),
            ("0.5", TimeError::Fraction),
            ("99999999999999999999", TimeError::TooLarge),
            ("\"-5s\"", TimeError::Duration(DurationError::Negative)),
            ("\"soon\"", TimeError::Duration(DurationError::Syntax)),
            ("{}", TimeError::WrongType),
        ] {
            assert_eq!(after(json), Err(MomentError::Delay(reason)), "{json}");
        }
    }

    #[test]
    fn only_one_way_to_say_when_can_be_given_and_none_means_now() {
        let one = || Some(Token::Number("1"));
        let zero = || Some(Token::Number("0"));
        let asked = |deliver_at, delay, delay_level| Asked { deliver_at, delay, delay_level };
        assert_eq!(moment(&asked(None, None, None)), Ok(Moment::Now));
        assert_eq!(moment(&asked(None, None, zero())), Ok(Moment::Now));
        assert_eq!(moment(&asked(None, one(), zero())), Ok(Moment::After(1)));
        assert_eq!(moment(&asked(one(), one(), None)), Err(MomentError::Several));
        assert_eq!(moment(&asked(one(), None, one())), Err(MomentError::Several));
        assert_eq!(moment(&asked(None, one(), one())), Err(MomentError::Several));
        assert_eq!(moment(&asked(None, None, one())), Ok(Moment::Level(1)));
        assert_eq!(moment(&asked(None, None, Some(Token::Other))), Err(MomentError::Level));
    }

    #[test]
    fn a_level_is_a_whole_number_and_none_is_too_high() {
        let level = |json| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            moment(&Asked { delay_level: Some(raw.into()), ..Asked::default() })
        };
        for (json, expected) in [
            ("0", Moment::Now),
            ("1", Moment::Level(1)),
            ("18", Moment::Level(18)),
            ("999", Moment::Level(999)),
            ("4294967296", Moment::Level(u32::MAX)),
            ("99999999999999999999", Moment::Level(u32::MAX)),
        ] {
            assert_eq!(level(json), Ok(expected), "{json}");
        }
        for json in ["-1", "-0", "1.5", "1.0", "1e1", "\"3\"", "\"\"", "null", "true", "[3]"] {
            assert_eq!(level(json), Err(MomentError::Level), "{json}");
        }
    }
}
