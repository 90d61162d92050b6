//! What a name means at the moment.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// The answer, when it is there.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Turns names into addresses. Injected, so that a test can make a name change its meaning between two
/// calls. It gives no ports: those are the target's.
pub trait Resolve: fmt::Debug + Send + Sync {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a>;
}

/// The operating system's resolver, with all it is configured for.
///
/// It runs on one of tokio's threads for blocking work. A call that ran out of time stops waiting for
/// it, but cannot end it: the thread is busy until the system gives up.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
