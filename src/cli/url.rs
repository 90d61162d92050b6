//! Where a server is: `http://` and a name or an address.

use std::fmt;
use std::str::FromStr;

use axum::http::{HeaderValue, Uri};

/// The base of a server's paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    host: String,
    port: u16,
}

impl Url {
    /// What to resolve: a name or an address, without brackets.
    pub(super) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn header(&self) -> HeaderValue {
        HeaderValue::try_from(format!("{}:{}", self.host, self.port))
            .expect("the host of a URL is written in ASCII")
    }
}

impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}:{}", self.host, self.port)
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "write http://HOST:PORT";
        let uri: Uri = text.parse().map_err(|_| expected.to_owned())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(
                    "this program does not speak TLS; use a tunnel or a proxy, and http".to_owned()
                );
            }
            _ => return Err(expected.to_owned()),
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(format!("a server has no path; {expected}"));
        }
        let authority = uri.authority().ok_or(expected)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(expected)?;
        if authority.as_str().contains('@') {
            return Err(format!("a server has no user name; {expected}"));
        }
        Ok(Self { host: host.to_owned(), port: uri.port_u16().unwrap_or(80) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_a_host_and_a_port() {
        for (text, host, port) in [
            ("http://127.0.0.1:7400", "127.0.0.1", 7400),
            ("http://localhost:7400/", "localhost", 7400),
            ("http://scheduler.bank.internal", "scheduler.bank.internal", 80),
            ("http://[::1]:7400", "::1", 7400),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!((url.host(), url.port()), (host, port), "{text}");
        }
        assert_eq!("http://[::1]:7400".parse::<Url>().unwrap().to_string(), "http://[::1]:7400");
    }

    #[test]
    fn what_is_no_server_is_refused_with_a_hint() {
        for (text, hint) in [
            ("", "http://HOST:PORT"),
            ("127.0.0.1:7400", "http://HOST:PORT"),
            ("localhost", "http://HOST:PORT"),
            ("http://", "http://HOST:PORT"),
            ("ftp://a", "http://HOST:PORT"),
            ("https://a", "TLS"),
            ("http://a/v1", "no path"),
            ("http://a?x", "no path"),
            ("http://me@a", "no user name"),
        ] {
            let error = text.parse::<Url>().unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
