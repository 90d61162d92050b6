//! A JSON object member by member, so that whatever is wrong with one can be pointed at.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::problem::Problem;

/// Reads an object. Where a request has one, an array is none, though serde would take its items for the members
/// in the order that they are declared in.
pub(super) fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::invalid("the request is no JSON object"));
    }
    serde_json::from_slice(json).map_err(|error| Problem::invalid(error.to_string()))
}

/// The members of an object, in the order they came.
#[derive(Debug)]
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// One member, and where it stands.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) value: &'a RawValue,
    pub(super) pointer: String,
}

impl<'a> Members<'a> {
    /// The members of `object`, which stands at `pointer`; each name is there once.
    pub(super) fn of(
        object: &'a RawValue,
        pointer: &str,
    ) -> Result<impl Iterator<Item = Member<'a>>, Problem> {
        let members = Self::deserialize(object)
            .map_err(|_| Problem::invalid("this is no object").at(pointer))?;
        members.at(pointer)
    }

    /// As [`Members::of`], for an object that was read already.
    pub(super) fn at(
        self,
        pointer: &str,
    ) -> Result<impl Iterator<Item = Member<'a>> + use<'a>, Problem> {
        let within = pointer.to_owned();
        let members = self.0.into_iter().map(|(name, value)| {
            let pointer = format!("{within}/{}", escaped(&name));
            Member { name, value, pointer }
        });
        let members: Vec<_> = members.collect();
        let mut seen = BTreeSet::new();
        match members.iter().find(|member| !seen.insert(&member.name)) {
            Some(twice) => Err(Problem::invalid("this is given twice").at(&twice.pointer)),
            None => Ok(members.into_iter()),
        }
    }
}

impl<'a> Member<'a> {
    /// The value, read as `T`.
    pub(super) fn read<T: Deserialize<'a>>(&self) -> Result<T, Problem> {
        T::deserialize(self.value).map_err(|error| self.refuse(error.to_string()))
    }

    pub(super) fn refuse(&self, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::invalid(detail).at(&self.pointer)
    }

    pub(super) fn unknown(&self) -> Problem {
        self.refuse(format!("{:?} is not known here", self.name))
    }
}

/// As a token of a JSON pointer (RFC 6901).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

struct MembersVisitor;

/// A name that is borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        Ok(members)
    }
}
