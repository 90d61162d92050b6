//! Durations and sizes as people write them, for requests and settings alike.

use std::str::FromStr;

use jiff::{Span, SpanRelativeTo};

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("not a duration: write 90s, 1h30m, 250ms, PT30M, or whole milliseconds")]
    Syntax,
    #[error("a duration cannot be negative")]
    Negative,
    #[error("a duration is at most 2^64 - 1 milliseconds")]
    TooLong,
    #[error("a duration is counted in whole milliseconds")]
    Fraction,
}

/// The milliseconds in `text`: `90s`, `1h30m`, `250ms`, `30d`, ISO 8601 (`PT30M`), or plain digits,
/// which are milliseconds already. A day has 24 hours; months and years have no fixed length and
/// are refused.
///
/// # Errors
///
/// [`DurationError`] says what is wrong with it.
///
/// ```
/// assert_eq!(horolog::units::duration_ms("1h30m"), Ok(5_400_000));
/// ```
pub fn duration_ms(text: &str) -> Result<u64, DurationError> {
    let text = text.trim_ascii();
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return text.parse().map_err(|_| DurationError::TooLong);
    }
    if text.starts_with('-') {
        return Err(DurationError::Negative);
    }
    let span = Span::from_str(text).map_err(|_| DurationError::Syntax)?;
    let duration =
        span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| DurationError::Syntax)?;
    if duration.is_negative() {
        return Err(DurationError::Negative);
    }
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err(DurationError::Fraction);
    }
    u64::try_from(duration.as_millis()).map_err(|_| DurationError::TooLong)
}

/// Why a text is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    #[error("not a size: write bytes, or a whole number of KiB, MiB or GiB")]
    Syntax,
    #[error("a size is at most 2^64 - 1 bytes")]
    TooLarge,
}

/// The bytes in `text`: `4096`, `64KiB`, `4 MiB`, `1GiB`.
///
/// # Errors
///
/// [`SizeError`] says what is wrong with it.
pub fn size_bytes(text: &str) -> Result<u64, SizeError> {
    let text = text.trim_ascii();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(SizeError::Syntax);
    }
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim_ascii_start() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(SizeError::Syntax),
    };
    let number: u64 = number.parse().map_err(|_| SizeError::TooLarge)?;
    number.checked_mul(scale).ok_or(SizeError::TooLarge)
}

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_every_form_the_api_names() {
        for (text, ms) in [
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("250ms", 250),
            ("30d", 30 * 86_400_000),
            ("PT30M", 1_800_000),
            ("P1DT1H", 90_000_000),
            ("PT0.25S", 250),
            ("0", 0),
            ("0s", 0),
            ("1500", 1_500),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(duration_ms(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_its_reason() {
        for (text, error) in [
            ("", DurationError::Syntax),
            ("soon", DurationError::Syntax),
            ("5 bananas", DurationError::Syntax),
            ("P1Y", DurationError::Syntax),
            ("1mo", DurationError::Syntax),
            ("1e3", DurationError::Syntax),
            ("1.5", DurationError::Syntax),
            ("-5s", DurationError::Negative),
            ("-5", DurationError::Negative),
            ("-PT5S", DurationError::Negative),
            ("5s ago", DurationError::Negative),
            ("PT0.0001S", DurationError::Fraction),
            ("18446744073709551616", DurationError::TooLong),
            ("99999999999999999999h", DurationError::Syntax),
        ] {
            assert_eq!(duration_ms(text), Err(error), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_in_bytes_and_binary_units() {
        for (text, bytes) in
            [("4096", 4096), ("64KiB", 65_536), ("4 MiB", 4 << 20), ("1GiB", 1 << 30), ("7B", 7)]
        {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        for (text, error) in [
            ("", SizeError::Syntax),
            ("MiB", SizeError::Syntax),
            ("-1", SizeError::Syntax),
            ("1.5GiB", SizeError::Syntax),
            ("1GB", SizeError::Syntax),
            ("99999999999999999999", SizeError::TooLarge),
            ("18446744073709551615KiB", SizeError::TooLarge),
        ] {
            assert_eq!(size_bytes(text), Err(error), "{text}");
        }
    }
}
