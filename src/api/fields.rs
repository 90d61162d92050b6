//! The rules for what travels with a body, the same for JSON and for headers.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Error, MapAccess, Visitor};

use super::problem::Problem;

/// The longest tag, key, message group or property name, in bytes.
pub(super) const MAX_LABEL_LENGTH: usize = 255;
/// Most keys of a message.
pub(super) const MAX_KEYS: usize = 128;
/// Most bytes of all property names and values together.
pub(super) const MAX_PROPERTIES_LENGTH: usize = 32 * 1024;

/// What a short text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    Tag,
    Key,
    MessageGroup,
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tag => "a tag",
            Self::Key => "a key",
            Self::MessageGroup => "a message group",
        })
    }
}

pub(super) fn check_label(label: Label, text: &str) -> Result<(), Problem> {
    if text.is_empty() || text.len() > MAX_LABEL_LENGTH {
        return Err(Problem::invalid(format!(
            "{label} has 1 to {MAX_LABEL_LENGTH} bytes, this one has {}",
            text.len()
        )));
    }
    Ok(())
}

pub(super) fn check_keys(keys: &[String]) -> Result<(), Problem> {
    if keys.len() > MAX_KEYS {
        return Err(Problem::invalid(format!(
            "a message has at most {MAX_KEYS} keys, this one has {}",
            keys.len()
        )));
    }
    keys.iter().try_for_each(|key| check_label(Label::Key, key))
}

/// Properties in the order they came, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PropertiesVisitor)
    }
}

struct PropertiesVisitor;

impl<'de> Visitor<'de> for PropertiesVisitor {
    type Value = Properties;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object whose values are text")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
        let mut entries: Vec<(String, String)> = Vec::new();
        let mut length = 0;
        while let Some((name, value)) = map.next_entry::<String, String>()? {
            if name.is_empty() || name.len() > MAX_LABEL_LENGTH {
                return Err(A::Error::custom(format!(
                    "a property name has 1 to {MAX_LABEL_LENGTH} bytes, this one has {}",
                    name.len()
                )));
            }
            length += name.len() + value.len();
            if length > MAX_PROPERTIES_LENGTH {
                return Err(A::Error::custom(format!(
                    "properties have at most {MAX_PROPERTIES_LENGTH} bytes together"
                )));
            }
            entries.push((name, value));
        }
        let mut seen = BTreeSet::new();
        match entries.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            Some((name, _)) => Err(A::Error::custom(format!("property {name:?} is given twice"))),
            None => Ok(Properties(entries)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Properties, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn properties_keep_their_order() {
        let properties = read(r#"{"z":"1","a":"2"}"#).unwrap();
        assert_eq!(properties.0, [("z".into(), "1".into()), ("a".into(), "2".into())]);
    }

    #[test]
    fn properties_are_text_given_once_and_short() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_PROPERTIES_LENGTH));
        for (json, reason) in [
            (r#"{"a":"1","b":"2","a":"3"}"#, "given twice"),
            (r#"{"a":1}"#, "expected a string"),
            (r#"{"":"1"}"#, "1 to 255 bytes"),
            (r#"["a"]"#, "an object whose values are text"),
            (long.as_str(), "at most 32768 bytes"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }
}
