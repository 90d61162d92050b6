//! A URL that was judged.

use std::fmt;

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

use super::address::{AddressError, judge};
use super::host::{Host, HostError};
use crate::config::PrivateTargets;

/// Most bytes of a URL.
pub const MAX_TARGET_BYTES: usize = 2 << 10;

/// Ports below this one belong to other protocols, some of which take an HTTP request for theirs.
const FIRST_FREE_PORT: u16 = 1024;

/// Where a call goes. It can be posted to, which does not mean that the address behind its name is one
/// that may be connected to: that is judged at each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub(super) scheme: Scheme,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) path: PathAndQuery,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
        })
    }
}

/// Why a URL is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("a URL has at most {MAX_TARGET_BYTES} bytes, this one has {length}")]
    Length { length: usize },
    #[error("this is not a URL: write https://HOST/PATH")]
    Syntax,
    #[error("a URL begins with https://")]
    Scheme,
    #[error(
        "a URL begins with https://; http is for private targets, with --allow-private-targets"
    )]
    Http,
    #[error("a URL has no user name and no password here: requests are signed instead")]
    UserInfo,
    #[error("a URL has no fragment here: it would never be sent")]
    Fragment,
    #[error("a URL names a host")]
    NoHost,
    #[error("the host cannot be called: {0}")]
    Host(#[from] HostError),
    #[error("the port is a number up to 65535")]
    PortSyntax,
    #[error("port {port} is not called: allowed are 80, 443, and those from {FIRST_FREE_PORT} on")]
    Port { port: u16 },
    #[error("the host cannot be called: {0}")]
    Address(#[from] AddressError),
}

impl Target {
    /// Judges `url`. Addresses that stand in it are judged here; a name's only when it is called.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what is wrong with the URL, in words for the one who gave it.
    ///
    /// ```
    /// use horolog::config::PrivateTargets;
    /// use horolog::outbound::Target;
    ///
    /// assert!(Target::new("https://shop.example/checks", PrivateTargets::Refused).is_ok());
    /// assert!(Target::new("https://127.0.0.1/checks", PrivateTargets::Refused).is_err());
    /// ```
    pub fn new(url: &str, private_targets: PrivateTargets) -> Result<Self, TargetError> {
        if url.len() > MAX_TARGET_BYTES {
            return Err(TargetError::Length { length: url.len() });
        }
        let (scheme, rest) = split_scheme(url)?;
        // `Uri` drops a fragment without a word, so this comes before it.
        if rest.contains('#') {
            return Err(TargetError::Fragment);
        }
        // Readers disagree whether a backslash is a slash, and so where the host ends.
        if rest.contains('\\') {
            return Err(TargetError::Syntax);
        }
        if rest.is_empty() || rest.starts_with(['/', '?', ':']) {
            return Err(TargetError::NoHost);
        }
        let uri: Uri = url.parse().map_err(|_| TargetError::Syntax)?;
        let authority = uri.authority().ok_or(TargetError::NoHost)?.as_str();
        if authority.contains('@') {
            return Err(TargetError::UserInfo);
        }
        let (host, port) = split_port(authority)?;
        let host = Host::parse(host)?;
        let port = match port {
            Some(digits) => parse_port(digits)?,
            None => scheme.port(),
        };
        if scheme == Scheme::Http && private_targets == PrivateTargets::Refused {
            return Err(TargetError::Http);
        }
        if host.is_localhost() && private_targets == PrivateTargets::Refused {
            return Err(HostError::Localhost.into());
        }
        if let Host::Address(address) = host {
            judge(address, scheme, private_targets)?;
        }
        // `Uri` keeps a query that follows the host as it is, and writes a slash before it: read it so.
        let written = uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        let path = written.parse().map_err(|_| TargetError::Syntax)?;
        Ok(Self { scheme, host, port, path })
    }

    /// The name or address that is called, without the port.
    pub fn host(&self) -> String {
        self.host.to_string()
    }

    /// The host as a request's `Host` says it: with the port, unless it is the scheme's own.
    pub(super) fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// The URL, its host in lower case and without a port that goes without saying.
impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

fn split_scheme(url: &str) -> Result<(Scheme, &str), TargetError> {
    let (scheme, rest) = url.split_once("://").ok_or(TargetError::Syntax)?;
    if scheme.eq_ignore_ascii_case("https") {
        Ok((Scheme::Https, rest))
    } else if scheme.eq_ignore_ascii_case("http") {
        Ok((Scheme::Http, rest))
    } else {
        Err(TargetError::Scheme)
    }
}

/// The colons of an IPv6 address are not the one before a port.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), TargetError> {
    let after_host = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority[after_host..].find(':') {
        Some(colon) => {
            let (host, port) = authority.split_at(after_host + colon);
            Ok((host, Some(&port[1..])))
        }
        None => Ok((authority, None)),
    }
}

fn parse_port(digits: &str) -> Result<u16, TargetError> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TargetError::PortSyntax);
    }
    let port = digits.parse().map_err(|_| TargetError::PortSyntax)?;
    if matches!(port, 80 | 443) || port >= FIRST_FREE_PORT {
        Ok(port)
    } else {
        Err(TargetError::Port { port })
    }
}
