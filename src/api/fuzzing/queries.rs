//! Query strings, and the cursors in them.

use std::fmt::Debug;

use axum::http::Uri;
use timerlog::decoder::{Decoder, Judged};

use super::super::operating::{Checks, checks_asked};
use super::super::page::{self, PageParameters};
use super::super::problem::Problem;
use super::super::query::{NoParameters, parameters};
use super::super::scheduled::{list_asked, timeline_request};
use super::super::{batch, dead_letters, messages, topics, transactions};
use super::{decoder, refused, written};
use crate::clock::Timestamp;
use crate::service::WithBody;
use crate::store::Force;

pub(super) fn decoders() -> Vec<Decoder> {
    vec![
        decoder("scheduled_query", scheduled, judge_scheduled),
        decoder("timeline_query", timelines, judge_timeline),
        decoder("search_query", searches, judge_search),
        decoder("transactions_query", transactions, judge_transactions),
        decoder("page_query", pages, judge_page),
        decoder("flag_query", flags, judge_flags),
    ]
}

type Said = Vec<(&'static str, Option<String>)>;

/// A query that `read` accepts, written `plain`ly, is read as the same.
fn query<T: PartialEq + Debug>(
    bytes: &[u8],
    read: impl Fn(&Uri) -> Result<T, Problem>,
    plain: impl FnOnce(&T) -> Said,
) -> Judged {
    // What is no URI is refused before any of this.
    let uri = std::str::from_utf8(bytes).ok().and_then(uri_of);
    let Some(uri) = uri else { return Judged::Refused };
    let first = match read(&uri) {
        Ok(first) => first,
        Err(problem) => return refused(&problem),
    };
    let said = plain(&first).into_iter();
    let said = said.filter_map(|(name, value)| Some(format!("{name}={}", escaped(&value?))));
    let plain = said.collect::<Vec<_>>().join("&");
    let uri = uri_of(&plain).expect("nothing is left that a URI cannot hold");
    let again = read(&uri).map_err(|problem| format!("{problem:?}"));
    assert_eq!(again, Ok(first), "{plain}");
    Judged::Accepted
}

fn uri_of(query: &str) -> Option<Uri> {
    format!("/?{query}").parse().ok()
}

/// Every byte but letters and digits as two hexadecimal digits.
fn escaped(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    escaped.collect()
}

fn millis(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.as_millis().to_string())
}

fn scheduled() -> Vec<Vec<u8>> {
    written(&[
        "topic=orders&key=user-&tag=a%20b&from=2026-09-21T14:13:20Z&to=1790000000007&limit=5&cursor=c",
        "limit=1000",
        "",
    ])
}

fn judge_scheduled(bytes: &[u8]) -> Judged {
    query(bytes, list_asked, |asked| {
        let query = &asked.query;
        vec![
            ("topic", query.topic.as_ref().map(ToString::to_string)),
            ("key", query.key.clone()),
            ("tag", query.tag.clone()),
            ("from", millis(query.from)),
            ("to", millis(query.to)),
            ("limit", Some(asked.limit.to_string())),
            ("cursor", asked.cursor.clone()),
        ]
    })
}

fn timelines() -> Vec<Vec<u8>> {
    written(&["topic=orders&from=1790000000007&to=2026-09-22T00:00:00%2B08:00&bucket=PT1H", ""])
}

fn judge_timeline(bytes: &[u8]) -> Judged {
    query(bytes, timeline_request, |asked| {
        vec![
            ("topic", asked.topic.as_ref().map(ToString::to_string)),
            ("from", millis(asked.from)),
            ("to", millis(asked.to)),
            ("bucket", Some(asked.bucket_ms.to_string())),
        ]
    })
}

fn searches() -> Vec<Vec<u8>> {
    written(&["key=order-17&limit=7&cursor=AAEC", "key=%C3%A9+"])
}

fn judge_search(bytes: &[u8]) -> Judged {
    query(bytes, messages::search_asked, |asked| {
        vec![
            ("key", Some(asked.key.clone())),
            ("limit", Some(asked.limit.to_string())),
            ("cursor", asked.cursor.clone()),
        ]
    })
}

fn transactions() -> Vec<Vec<u8>> {
    written(&["state=ROLLED_BACK&topic=orders&limit=9&cursor=x", "state=PREPARED", ""])
}

fn judge_transactions(bytes: &[u8]) -> Judged {
    query(bytes, transactions::list_asked, |asked| {
        vec![
            ("state", asked.state.map(|state| transactions::state(state).to_owned())),
            ("topic", asked.topic.as_ref().map(ToString::to_string)),
            ("limit", Some(asked.limit.to_string())),
            ("cursor", asked.cursor.clone()),
        ]
    })
}

fn pages() -> Vec<Vec<u8>> {
    let after = format!("limit=3&cursor={}", page::cursor("orders"));
    let mut all = written(&["", "cursor=JVJFVFJZJWc"]);
    all.push(after.into_bytes());
    all
}

/// Lists by name, and lists whose cursors only the service can read.
fn judge_page(bytes: &[u8]) -> Judged {
    query(bytes, dead_letters::page_asked, |(limit, cursor)| {
        vec![("limit", Some(limit.to_string())), ("cursor", cursor.clone())]
    });
    let read = |uri: &Uri| {
        let asked: PageParameters = parameters(uri)?;
        Ok((asked.limit()?, asked.after()?))
    };
    query(bytes, read, |(limit, after)| {
        let cursor = after.as_ref().map(|name| page::cursor(name));
        vec![("limit", Some(limit.to_string())), ("cursor", cursor)]
    })
}

fn flags() -> Vec<Vec<u8>> {
    written(&["force=true", "body=false", "atomic=true", "verbose", "verbose=true", ""])
}

/// Requests that can be told one thing, or nothing.
fn judge_flags(bytes: &[u8]) -> Judged {
    let all = [
        query(bytes, topics::force, |force| {
            vec![("force", Some((*force == Force::Yes).to_string()))]
        }),
        query(bytes, messages::with_body, |body| {
            vec![("body", Some((*body == WithBody::Yes).to_string()))]
        }),
        query(bytes, batch::is_atomic, |atomic| vec![("atomic", atomic.map(|is| is.to_string()))]),
        query(bytes, checks_asked, |checks| {
            vec![("verbose", Some((*checks == Checks::Listed).to_string()))]
        }),
        query(bytes, |uri| parameters(uri).map(|NoParameters {}| ()), |()| Vec::new()),
    ];
    if all.contains(&Judged::Accepted) { Judged::Accepted } else { Judged::Refused }
}
