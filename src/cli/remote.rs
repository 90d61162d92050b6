//! The server at the other end: requests to it, and what its answers mean.

use std::io;
use std::net::SocketAddr;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CliError, Url};
use crate::client::{Answer, Client, ClientError};

/// Stay as they are in a path or a query; all else is percent-encoded.
const UNRESERVED: &[u8] = b"-._~";

/// A server, connected to when it is first asked.
#[derive(Debug)]
pub(super) struct Remote {
    url: Url,
    client: Option<Client>,
}

/// The server has answered: yes, or no.
#[derive(Debug)]
pub(super) enum Reply {
    Done(Good),
    Refused(Refusal),
}

/// An answer of success.
#[derive(Debug)]
pub(super) struct Good {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    json: Bytes,
    url: Url,
}

/// A problem, as the server wrote it.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) json: Bytes,
    pub(super) code: String,
    pub(super) detail: String,
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
    #[serde(default)]
    errors: Vec<Flaw>,
}

/// What of the request is wrong.
#[derive(Deserialize)]
struct Flaw {
    pointer: String,
}

impl Problem {
    /// The detail, and before it what it is about, where it does not say so itself: of several durations
    /// one must know which is none.
    fn sentence(&self) -> String {
        let detail = &self.detail;
        let pointer = self.errors.first().map(|flaw| flaw.pointer.trim_start_matches(['#', '/']));
        let member = pointer.and_then(|pointer| pointer.split('/').next()).unwrap_or_default();
        match pointer {
            Some(pointer) if !detail.contains(member) => format!("{pointer}: {detail}"),
            _ => detail.clone(),
        }
    }
}

impl From<Refusal> for CliError {
    fn from(Refusal { code, detail, .. }: Refusal) -> Self {
        Self::Refused { code, detail }
    }
}

impl Reply {
    pub(super) fn good(self) -> Result<Good, CliError> {
        match self {
            Self::Done(good) => Ok(good),
            Self::Refused(refusal) => Err(refusal.into()),
        }
    }
}

impl Good {
    /// The answer as the server wrote it, with an end of line.
    pub(super) fn write(&self, output: &mut dyn io::Write) -> io::Result<()> {
        output.write_all(&self.json)?;
        output.write_all(b"\n")
    }

    /// What to say when it is the answer to an earlier request under the same idempotency key.
    pub(super) fn replayed(&self) -> Option<&'static str> {
        let replayed = self.headers.contains_key("idempotent-replayed");
        replayed.then_some("yes: an earlier request under the key stored it")
    }

    /// Notes that beside an answer which does not say so itself.
    pub(super) fn note_replay(&self, notes: &mut dyn io::Write) -> io::Result<()> {
        match self.replayed() {
            Some(_) => writeln!(notes, "horolog: answered as an earlier request under the key was"),
            None => Ok(()),
        }
    }

    /// The answer, of which this program knows some members.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CliError> {
        serde_json::from_slice(&self.json).map_err(|error| CliError::Foreign {
            url: self.url.clone(),
            reason: format!("its answer is not what was expected: {error}"),
        })
    }
}

impl Remote {
    pub(super) fn new(url: &Url) -> Self {
        Self { url: url.clone(), client: None }
    }

    /// A `GET` whose answer must be good.
    pub(super) async fn get(&mut self, path: &str) -> Result<Good, CliError> {
        self.send(Method::GET, path, &[], Bytes::new()).await?.good()
    }

    /// A `POST` of JSON whose answer must be good.
    pub(super) async fn post(
        &mut self,
        path: &str,
        value: &impl Serialize,
    ) -> Result<Good, CliError> {
        self.send(Method::POST, path, &[], written(value)).await?.good()
    }

    /// A `PUT` of JSON whose answer must be good.
    pub(super) async fn put(
        &mut self,
        path: &str,
        value: &impl Serialize,
    ) -> Result<Good, CliError> {
        self.send(Method::PUT, path, &[], written(value)).await?.good()
    }

    /// Sends a request; what has a body is JSON.
    pub(super) async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Reply, CliError> {
        let mut request = Request::new(Full::default());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("paths are percent-encoded");
        request
            .headers_mut()
            .extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
        if !body.is_empty() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            *request.body_mut() = Full::new(body);
        }
        let answer = self.answer(request).await?;
        self.understand(answer)
    }

    /// Sends to the first address of the server's name that takes connections: nothing was sent to the
    /// others.
    async fn answer(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, CliError> {
        if let Some(client) = &mut self.client {
            return client.send(request).await.map_err(|error| no_answer(&self.url, error));
        }
        let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in self.addresses().await? {
            let mut client = Client::of_host(address, self.url.header());
            match client.send(request.clone()).await {
                Ok(answer) => {
                    self.client = Some(client);
                    return Ok(answer);
                }
                Err(ClientError::Connect { cause, .. }) => refused = cause,
                Err(error) => return Err(no_answer(&self.url, error)),
            }
        }
        Err(CliError::NoServer { url: self.url.clone(), cause: refused })
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, CliError> {
        match tokio::net::lookup_host((self.url.host(), self.url.port())).await {
            Ok(addresses) => Ok(addresses.collect()),
            Err(cause) => Err(CliError::Resolve { url: self.url.clone(), cause }),
        }
    }

    fn understand(&self, answer: Answer) -> Result<Reply, CliError> {
        let Answer { status, headers, body: json } = answer;
        if status.is_success() {
            return Ok(Reply::Done(Good { status, headers, json, url: self.url.clone() }));
        }
        match serde_json::from_slice::<Problem>(&json) {
            Ok(problem) => {
                let (detail, code) = (problem.sentence(), problem.code);
                Ok(Reply::Refused(Refusal { json, code, detail }))
            }
            Err(_) => Err(self.foreign(status)),
        }
    }

    fn foreign(&self, status: StatusCode) -> CliError {
        CliError::Foreign { url: self.url.clone(), reason: format!("it answers {status}") }
    }
}

fn no_answer(url: &Url, error: ClientError) -> CliError {
    let url = url.clone();
    match error {
        ClientError::Http(cause) => CliError::NoAnswer { url, cause },
        ClientError::Connect { cause, .. } => CliError::NoServer { url, cause },
        ClientError::Json(_) | ClientError::Refused { .. } => {
            unreachable!("sending reads no answer: {error}")
        }
    }
}

/// `text` as one piece of a path or a query.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// The parameters that are given, as a query; nothing when none is.
pub(super) fn query(parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name}={}", encoded(value))));
    let given: Vec<_> = given.collect();
    match given.is_empty() {
        true => String::new(),
        false => format!("?{}", given.join("&")),
    }
}

/// `value` as JSON.
pub(super) fn written(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("what we write has text as its keys").into()
}

/// An object of the members that are given.
pub(super) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_in_a_url_is_encoded() {
        assert_eq!(encoded("order-17_a.b~"), "order-17_a.b~");
        assert_eq!(encoded("a/b c?d#e%+&="), "a%2Fb%20c%3Fd%23e%25%2B%26%3D");
        assert_eq!(encoded("é"), "%C3%A9");
        let parameters = [("topic", Some("a b")), ("key", None), ("limit", Some("5"))];
        assert_eq!(query(&parameters), "?topic=a%20b&limit=5");
        assert_eq!(query(&[("key", None)]), "");
    }

    #[test]
    fn a_refusal_says_what_it_is_about() {
        let sentence = |detail: &str, pointer: Option<&str>| {
            let errors = pointer.map(|pointer| Flaw { pointer: pointer.to_owned() });
            let (code, detail) = ("INVALID_REQUEST".to_owned(), detail.to_owned());
            Problem { code, detail, errors: errors.into_iter().collect() }.sentence()
        };
        assert_eq!(sentence("not a duration", Some("#/backoff/1")), "backoff/1: not a duration");
        assert_eq!(sentence("maxChecks is 1 to 5", Some("#/maxChecks")), "maxChecks is 1 to 5");
        assert_eq!(sentence("the request has no body", None), "the request has no body");
        assert_eq!(sentence("this is no object", Some("#")), "this is no object");
    }

    #[test]
    fn an_object_has_the_members_that_are_given() {
        let members =
            [("queues", Some(8.into())), ("type", None), ("retention", Some("7d".into()))];
        assert_eq!(object(members).to_string(), r#"{"queues":8,"retention":"7d"}"#);
        assert_eq!(object([("type", None)]).to_string(), "{}");
    }
}
