//! Check-backs that go out: the servers of producers are asked at their `checkUrl`.
//!
//! A check is taken for a host as it is for a caller: its record is durable before anybody is asked. Where
//! nobody was reached it is given back, has not counted, and is due again after one interval.

use super::transactions::CheckView;
use super::{Service, Unavailable, blocking};
use crate::message::record::CheckUrl;
use crate::transaction::{Asked, Check};

/// Hosts that are asked at the same time; the others wait for their turn.
pub const MAX_CALLED_HOSTS: usize = 64;
/// Questions to one host at the same time.
pub const MAX_CALLS_OF_HOST: usize = 8;

/// A question for the server at a URL.
#[derive(Debug)]
pub struct CheckCall {
    pub view: CheckView,
    pub url: CheckUrl,
    check: Check,
    interval_ms: u64,
}

impl Service {
    /// The next host that is to be asked, in turn after `after`, of those that are `free`.
    pub fn host_to_ask(&self, after: &str, free: impl FnMut(&str) -> bool) -> Option<String> {
        self.0.engine.checks.next_host(after, free)
    }

    /// Returns when a host may have to be asked since the last call returned.
    pub async fn host_is_to_be_asked(&self) {
        self.0.engine.check_calls.notified().await;
    }

    /// Takes up to `max` questions for the host. Each must be asked, or [given back](Service::was_not_asked).
    ///
    /// # Errors
    ///
    /// [`Unavailable`]; then none has counted.
    pub async fn check_calls(&self, host: &str, max: usize) -> Result<Vec<CheckCall>, Unavailable> {
        let handed = self.take_checks(&Asked::Host(host.to_owned()), max).await?;
        let (service, checks) = (self.clone(), handed.checks().to_vec());
        let calls: Result<Vec<_>, Unavailable> =
            blocking(move || checks.into_iter().filter_map(|check| service.call(check)).collect())
                .await?;
        // Until here they would be given back.
        let calls = calls?;
        handed.take();
        Ok(calls)
    }

    /// Nothing when the disk has not kept the body: nobody can answer for it, and its checks run out.
    fn call(&self, check: Check) -> Option<Result<CheckCall, Unavailable>> {
        let terms = check.found.message.terms.as_ref()?;
        let (url, interval_ms) = (terms.check_url.clone()?, terms.check_interval_ms);
        let view = self.check_view(&check)?;
        Some(view.map(|view| CheckCall { view, url, check, interval_ms }))
    }

    /// Nobody was reached under the URL.
    pub async fn was_not_asked(&self, call: CheckCall) {
        self.give_back(call.check, call.interval_ms).await;
    }
}
