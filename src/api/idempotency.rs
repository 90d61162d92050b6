//! The `Idempotency-Key` header: which key, and for which request.

use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use sha2::{Digest, Sha256};

use super::limits::MAX_IDEMPOTENCY_KEY;
use super::problem::Problem;
use crate::message::record::Bound;

const NAME: &str = "idempotency-key";
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The key that came with a request, bound to what the request says. Two requests are the same when
/// method, path and query, content type, `Horolog-*` headers and body are.
pub(super) fn bound(head: &Parts, body: &[u8]) -> Result<Option<Bound>, Problem> {
    let mut values = head.headers.get_all(NAME).iter();
    let Some(key) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::invalid("the header idempotency-key is given twice"));
    }
    let key = key.as_bytes();
    if key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY {
        return Err(Problem::invalid(format!(
            "an idempotency key has 1 to {MAX_IDEMPOTENCY_KEY} bytes, this one has {}",
            key.len()
        )));
    }
    let path = head.uri.path().as_bytes();
    Ok(Some(Bound { key: digest(&[path, key]), request: digest(&request(head, body)) }))
}

/// What makes a request this request.
fn request<'a>(head: &'a Parts, body: &'a [u8]) -> Vec<&'a [u8]> {
    let said = |name: &HeaderName| {
        name == axum::http::header::CONTENT_TYPE || name.as_str().starts_with("horolog-")
    };
    let headers = head.headers.iter().filter(|(name, _)| said(name));
    let mut headers: Vec<_> =
        headers.map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]).collect();
    // The order of headers of different names means nothing; that of repeated ones does, and stays.
    headers.sort_by_key(|&[name, _]| name);
    let uri = head.uri.path_and_query().map_or("", |uri| uri.as_str());
    let mut parts = vec![head.method.as_str().as_bytes(), uri.as_bytes()];
    parts.extend(headers.into_iter().flatten());
    parts.push(body);
    parts
}

/// SHA-256 over the parts, each with its length before it, cut to 16 bytes.
fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_le_bytes());
        sha.update(part);
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&sha.finalize()[..16]);
    digest
}

/// Refuses the header where it has no meaning: a client that sends a key counts on it.
pub(super) fn refuse(head: &Parts) -> Result<(), Problem> {
    if head.headers.contains_key(NAME) {
        return Err(Problem::invalid("the header idempotency-key does not belong here"));
    }
    Ok(())
}

/// Says so when the answer is that of an earlier request.
pub(super) fn mark(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn head(path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn of(path: &str, headers: &[(&str, &str)], body: &[u8]) -> Bound {
        bound(&head(path, headers), body).unwrap().unwrap()
    }

    #[test]
    fn a_key_is_a_key_of_its_path() {
        let key = ("idempotency-key", "k");
        let first = of("/v1/topics/a/messages", &[key], b"x");
        assert_eq!(first, of("/v1/topics/a/messages", &[key, ("x-other", "1")], b"x"));
        assert_ne!(first.key, of("/v1/topics/b/messages", &[key], b"x").key);
        assert_ne!(first.key, of("/v1/topics/a/messages", &[("idempotency-key", "l")], b"x").key);
    }

    #[test]
    fn another_body_type_header_or_query_is_another_request() {
        let key = ("idempotency-key", "k");
        let first = of("/p", &[key, ("horolog-delay", "1s"), ("horolog-tag", "t")], b"x");
        let again = of("/p", &[("horolog-tag", "t"), key, ("horolog-delay", "1s")], b"x");
        assert_eq!(first, again, "the order of headers means nothing");
        for (path, headers, body) in [
            ("/p", vec![key, ("horolog-delay", "1s"), ("horolog-tag", "t")], &b"y"[..]),
            ("/p", vec![key, ("horolog-delay", "2s"), ("horolog-tag", "t")], b"x"),
            ("/p", vec![key, ("horolog-delay", "1s")], b"x"),
            ("/p?a=1", vec![key, ("horolog-delay", "1s"), ("horolog-tag", "t")], b"x"),
            ("/p", vec![key, ("content-type", "a/b"), ("horolog-delay", "1s")], b"x"),
        ] {
            let other = of(path, &headers, body);
            assert_eq!(other.key, first.key);
            assert_ne!(other.request, first.request, "{path} {headers:?}");
        }
    }

    #[test]
    fn a_key_is_short_and_given_once() {
        let long = "k".repeat(256);
        for headers in [
            vec![("idempotency-key", "")],
            vec![("idempotency-key", long.as_str())],
            vec![("idempotency-key", "a"), ("idempotency-key", "a")],
        ] {
            assert!(bound(&head("/p", &headers), b"").is_err(), "{headers:?}");
        }
        assert_eq!(bound(&head("/p", &[]), b"").unwrap(), None);
    }
}
