//! Names of topics and groups, checked once at the door.

use std::fmt;
use std::sync::Arc;

/// Names that begin so belong to the system and cannot be written to.
const RESERVED_PREFIXES: [&str; 4] = ["%", "rmq_sys_", "RMQ_SYS_", "SCHEDULE_TOPIC_"];

/// The longest name, in bytes.
pub const MAX_NAME_LENGTH: usize = 255;

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a name has 1 to {MAX_NAME_LENGTH} bytes, this one has {length}")]
    Length { length: usize },
    #[error("a name has letters, digits and _ % . - only, this one has {found:?}")]
    Character { found: char },
    #[error("{name:?} is not a name")]
    Dots { name: String },
    #[error("names beginning with {prefix} belong to the system")]
    Reserved { prefix: &'static str },
}

fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() || name.len() > MAX_NAME_LENGTH {
        return Err(NameError::Length { length: name.len() });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '%' | '.' | '-');
    if let Some(found) = name.chars().find(|&c| !allowed(c)) {
        return Err(NameError::Character { found });
    }
    if name == "." || name == ".." {
        return Err(NameError::Dots { name: name.to_owned() });
    }
    Ok(())
}

fn check_not_reserved(name: &str) -> Result<(), NameError> {
    match RESERVED_PREFIXES.into_iter().find(|prefix| name.starts_with(prefix)) {
        Some(prefix) => Err(NameError::Reserved { prefix }),
        None => Ok(()),
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// A name that a client may read from: well formed, perhaps the system's.
            ///
            /// # Errors
            ///
            /// [`NameError`] says which rule it breaks.
            pub fn readable(name: &str) -> Result<Self, NameError> {
                check(name)?;
                Ok(Self(name.into()))
            }

            /// A name that a client may write to: well formed and not the system's.
            ///
            /// # Errors
            ///
            /// [`NameError`] says which rule it breaks.
            pub fn writable(name: &str) -> Result<Self, NameError> {
                check(name)?;
                check_not_reserved(name)?;
                Ok(Self(name.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }
    };
}

name_type!(
    /// The name of a topic: 1 to 255 bytes of letters, digits and `_ % . -`.
    TopicName
);
name_type!(
    /// The name of a consumer group, by the same rules as a topic's.
    GroupName
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_plain_and_not_a_path() {
        assert!(TopicName::writable("orders.timeout-v2_%").is_ok());
        assert_eq!(TopicName::writable(""), Err(NameError::Length { length: 0 }));
        assert_eq!(TopicName::writable(&"a".repeat(256)), Err(NameError::Length { length: 256 }));
        assert!(TopicName::writable(&"a".repeat(255)).is_ok());
        assert_eq!(TopicName::writable("a/b"), Err(NameError::Character { found: '/' }));
        assert_eq!(TopicName::writable("a\0"), Err(NameError::Character { found: '\0' }));
        assert_eq!(TopicName::writable(".."), Err(NameError::Dots { name: "..".into() }));
        assert!(TopicName::writable("...").is_ok());
    }

    #[test]
    fn the_systems_names_can_be_read_but_not_written_to() {
        for name in
            ["%DLQ%g", "rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX"]
        {
            assert!(matches!(TopicName::writable(name), Err(NameError::Reserved { .. })), "{name}");
            assert!(TopicName::readable(name).is_ok(), "{name}");
        }
    }
}
