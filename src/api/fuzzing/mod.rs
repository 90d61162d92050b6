//! What the HTTP door reads, to be tried with bytes that mean nothing.
//!
//! What is accepted, written plainly, is read as the same; what is refused is refused by a problem of status 4xx. Every
//! body, query string and header that the API takes is here, each by the very function that its handler calls.

mod controls;
mod messages;
mod queries;
mod settings;
#[cfg(test)]
mod shape;
mod times;

use std::fmt::Debug;

use serde_json::Value;
use timerlog::decoder::{Decoder, Judged, unsealed};

use super::head;
use super::members::{Members, object};
use super::problem::Problem;

pub(crate) fn decoders() -> Vec<Decoder> {
    let mut all = vec![times::decoder(), head::fuzzing::decoder()];
    all.extend(messages::decoders());
    all.extend(controls::decoders());
    all.extend(settings::decoders());
    all.extend(queries::decoders());
    all
}

/// No checksum guards what a client sends.
const fn decoder(
    name: &'static str,
    samples: fn() -> Vec<Vec<u8>>,
    judge: fn(&[u8]) -> Judged,
) -> Decoder {
    Decoder::new(name, samples, unsealed, judge)
}

fn written(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Whatever a client writes, it is its own fault, and told so.
fn refused(problem: &Problem) -> Judged {
    let status = problem.status();
    assert!(status.is_client_error(), "{problem:?}");
    // A problem is the same for a fuzz target, which has no time to read it millions of times.
    if !cfg!(test) {
        return Judged::Refused;
    }
    let json = serde_json::to_value(problem.written()).expect("a problem is JSON");
    assert_eq!(json["status"], status.as_u16());
    let code = json["code"].as_str().unwrap_or_default();
    assert!(!code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'));
    let mut errors = json["errors"].as_array().into_iter().flatten();
    assert!(errors.all(|error| error["pointer"].as_str().is_some_and(|at| at.starts_with("#/"))));
    Judged::Refused
}

/// A body that `read` accepts is an object of which every member is `known` and there once; written `plain`ly it is
/// read as the same.
fn body<T: PartialEq + Debug>(
    bytes: &[u8],
    known: &[&str],
    read: impl Fn(&[u8]) -> Result<T, Problem>,
    plain: impl FnOnce(&T) -> Value,
) -> Judged {
    let first = match read(bytes) {
        Ok(first) => first,
        Err(problem) => return refused(&problem),
    };
    let members = object::<Members<'_>>(bytes).and_then(|members| members.at(""));
    let mut members = members.expect("it was read as an object");
    assert!(members.all(|member| known.contains(&&*member.name)), "it has an unknown member");
    let plain = without_nothing(plain(&first)).to_string();
    let again = read(plain.as_bytes()).map_err(|problem| format!("{problem:?}"));
    assert_eq!(again, Ok(first), "{plain}");
    Judged::Accepted
}

/// What is not given is left out.
fn without_nothing(mut json: Value) -> Value {
    if let Some(members) = json.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    json
}
