//! One setting: its name, its default, what is allowed, and how its text is read.

use std::fmt::Display;
use std::str::FromStr;

use super::error::SettingError;
use crate::message::LevelTable;
use crate::units::{duration_ms, size_bytes};

pub(super) struct Rule<T> {
    /// Its name in the file; flag and variable follow from it.
    pub(super) key: &'static str,
    pub(super) default: &'static str,
    pub(super) allowed: &'static str,
    pub(super) parse: fn(&str) -> Option<T>,
}

impl<T> Rule<T> {
    /// The value of `given`, or of the default.
    pub(super) fn read(&self, given: Option<&str>) -> Result<T, SettingError> {
        let text = given.unwrap_or(self.default).trim();
        (self.parse)(text).ok_or_else(|| SettingError {
            key: self.key,
            value: text.to_owned(),
            allowed: self.allowed,
        })
    }
}

pub(super) fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Option<T> {
    words.iter().find(|(word, _)| *word == text).map(|&(_, value)| value)
}

pub(super) fn between<N: FromStr + PartialOrd + Display>(
    text: &str,
    least: N,
    most: N,
) -> Option<N> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

pub(super) fn size_between(text: &str, least: u64, most: u64) -> Option<u64> {
    size_bytes(text).ok().filter(|size| (least..=most).contains(size))
}

pub(super) fn time_between(text: &str, least_ms: u64, most_ms: u64) -> Option<u64> {
    duration_ms(text).ok().filter(|time| (least_ms..=most_ms).contains(time))
}

/// Durations with white space between them.
pub(super) fn levels(text: &str) -> Option<LevelTable> {
    let delays = text.split_whitespace().map(|delay| duration_ms(delay).ok());
    LevelTable::new(delays.collect::<Option<_>>()?)
}
