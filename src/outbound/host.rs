//! The host of a URL: a name, or an address in the one spelling that means the same to everybody.
//!
//! Resolvers read `127.1`, `0x7f000001`, `2130706433` and `0177.0.0.1` as 127.0.0.1, and some readers of URLs
//! do, too. Here a host whose last label is a number has to be four decimal numbers without leading
//! zeros; any other spelling is refused instead of guessed at.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name that DNS can carry, as it is written.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Host {
    /// In lower case, without the dot at the end.
    Name(String),
    Address(IpAddr),
}

/// Why a text is not a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("an IPv4 address is written as four decimal numbers without leading zeros")]
    Number,
    #[error("what stands in brackets is not an IPv6 address without a zone")]
    Brackets,
    #[error("a name has letters, digits, hyphens and underscores between its dots; others as xn--")]
    Character,
    #[error("between two dots stand 1 to 63 characters, and no hyphen first or last")]
    Label,
    #[error("a name has at most 253 characters")]
    Length,
    #[error("localhost is this machine, which is called only with --allow-private-targets")]
    Localhost,
}

impl Host {
    pub(super) fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            let address = rest.strip_suffix(']').and_then(|inside| inside.parse::<Ipv6Addr>().ok());
            return address.map(|v6| Self::Address(IpAddr::V6(v6))).ok_or(HostError::Brackets);
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.rsplit('.').next().is_some_and(is_number) {
            let address = text.parse::<Ipv4Addr>().map_err(|_| HostError::Number)?;
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        if name.len() > MAX_NAME {
            return Err(HostError::Length);
        }
        for label in name.split('.') {
            check_label(label)?;
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }

    /// Whether RFC 6761 says that the name is this machine, whatever a resolver may say.
    pub(super) fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(_) => false,
        }
    }
}

/// As it stands in a URL.
impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

/// Whether somebody would read the label as a number: `7`, `0177`, `0x7f`, and even `0x`.
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hex {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn check_label(label: &str) -> Result<(), HostError> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !label.bytes().all(known) {
        return Err(HostError::Character);
    }
    if !(1..=MAX_LABEL).contains(&label.len()) || label.starts_with('-') || label.ends_with('-') {
        return Err(HostError::Label);
    }
    Ok(())
}
