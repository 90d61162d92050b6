//! Check-back by `checkUrl`: asks the servers of producers what became of their transactions.
//!
//! ```text
//!   checks due ──> a row for each host ──> worker of the host ─┬─ COMMIT, ROLLBACK ──> the transaction ends
//!                   (hosts take turns)     (one at a time)     ├─ anything else, no answer: it has counted
//!                                                              └─ not reached: given back, has not counted
//! ```
//!
//! Ground rules:
//!
//! - **A host that is slow or gone delays its own transactions and nobody else's**: it has one worker, which asks
//!   [`MAX_CALLS_OF_HOST`] questions at a time; the other hosts go on.
//! - What is asked is what a caller of `POST /v1/producer-groups/{group}/checks` is given.
//! - The URL is judged again at each call: a setting may have changed, and so may what its name stands for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::task::JoinSet;

use crate::api;
use crate::clock::Clock;
use crate::outbound::{Outbound, OutboundError, Reply, Secret, SecretError, TargetError};
use crate::service::{CheckCall, Ended, MAX_CALLED_HOSTS, MAX_CALLS_OF_HOST, Service};

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

/// How long an answer may take, connecting included.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long a host is left alone when its checks could not be taken.
const PAUSE: Duration = Duration::from_secs(1);

/// What a call needs.
#[derive(Clone, Debug)]
pub struct CheckBack {
    pub service: Service,
    pub outbound: Arc<Outbound>,
    pub clock: Arc<dyn Clock>,
}

impl CheckBack {
    /// Asks until the service drains, and then waits for the answers that are under way.
    pub async fn run(self) {
        let mut workers = JoinSet::new();
        let mut busy = HashSet::new();
        let mut last = String::new();
        while !self.service.is_draining() {
            while busy.len() < MAX_CALLED_HOSTS
                && let Some(host) = self.service.host_to_ask(&last, |host| !busy.contains(host))
            {
                last.clone_from(&host);
                busy.insert(host.clone());
                workers.spawn(self.clone().ask_host(host));
            }
            tokio::select! {
                () = self.service.host_is_to_be_asked() => {}
                Some(done) = workers.join_next() => {
                    busy.remove(&done.expect("a worker does not panic and is not aborted"));
                }
            }
        }
        workers.join_all().await;
    }

    /// Asks the host some of what it is to be asked, and says which host that was.
    #[expect(clippy::disallowed_methods, reason = "nothing tells when a busy log has room again")]
    async fn ask_host(self, host: String) -> String {
        match self.service.check_calls(&host, MAX_CALLS_OF_HOST).await {
            Ok(calls) => {
                let asking: JoinSet<()> =
                    calls.into_iter().map(|call| self.clone().ask(call)).collect();
                asking.join_all().await;
            }
            Err(error) => {
                tracing::warn!(host, %error, "the checks for a host cannot be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
        host
    }

    async fn ask(self, call: CheckCall) {
        let id = call.view.id.clone();
        match self.post(&call).await {
            Ok(reply) => {
                if let Some(how) = decision(&reply) {
                    self.end(&id, how).await;
                }
            }
            Err(CallError::Outbound(OutboundError::Unknown(error))) => {
                tracing::info!(transaction = id, %error, "a producer gave no answer");
            }
            Err(error) => {
                tracing::info!(transaction = id, %error, "a producer was not asked");
                self.service.was_not_asked(call).await;
            }
        }
    }

    async fn post(&self, call: &CheckCall) -> Result<Reply, CallError> {
        let target = self.outbound.target(&call.url.url)?;
        let secret = call.url.secret.as_deref().map(str::parse::<Secret>).transpose()?;
        let id = format!("{}.{}", call.view.id, call.view.check);
        let body = api::check_json(&call.view);
        let now = self.clock.now().wall;
        let reply = self.outbound.post(&target, &id, now, secret.as_ref(), body, TIMEOUT).await?;
        Ok(reply)
    }

    async fn end(&self, id: &str, how: Ended) {
        if let Err(error) = self.service.end_transaction(id, how).await {
            tracing::info!(transaction = id, %error, "the answer to a check came to nothing");
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum CallError {
    /// It was accepted, by other settings.
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Outbound(#[from] OutboundError),
}

#[derive(Deserialize)]
struct Answer<'a> {
    /// A text with escapes in it cannot be borrowed.
    #[serde(borrow)]
    state: Cow<'a, str>,
}

/// Whatever is neither a commit nor a rollback is no decision.
fn decision(reply: &Reply) -> Option<Ended> {
    if reply.status.is_success() { decided(&reply.body) } else { None }
}

/// An array is no answer, though serde would take its first item for the state; nor is what is not UTF-8, though it
/// would not look into members that are not asked for.
fn decided(json: &[u8]) -> Option<Ended> {
    let json = std::str::from_utf8(json).ok()?;
    if !json.trim_ascii_start().starts_with('{') {
        return None;
    }
    let answer: Answer<'_> = serde_json::from_str(json).ok()?;
    match &*answer.state {
        "COMMIT" => Some(Ended::Committed),
        "ROLLBACK" => Some(Ended::RolledBack),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_a_state_is_a_decision_and_nothing_else_is() {
        assert_eq!(decided(br#"{"state":"COMMIT"}"#), Some(Ended::Committed));
        assert_eq!(decided(br#" {"other":[1],"state":"ROLL\u0042ACK"}"#), Some(Ended::RolledBack));
        for none in [
            // A producer that answers with a list of states has decided nothing. This committed,
            &b"[\"COMMIT\"]"[..],
            // and so did this, which is no JSON.
            b"{\"state\":\"COMMIT\",\"note\":\"\xff\"}",
            b"\"COMMIT\"",
            b"{\"state\":[\"COMMIT\"]}",
            b"{\"state\":\"UNKNOWN\"}",
            b"{\"state\":\"commit\"}",
            b"{\"state\":\"COMMIT\",\"state\":\"ROLLBACK\"}",
            b"{\"state\":\"COMMIT\"} ROLLBACK",
            b"{}",
            b"",
        ] {
            assert_eq!(decided(none), None, "{}", none.escape_ascii());
        }
    }
}
