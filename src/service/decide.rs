//! Asking until there is an answer, and telling it when it is durable.

use std::sync::Arc;

use super::{Service, Unavailable, blocking};
use crate::commitlog::Receipt;
use crate::producer::{ChangeError, Decided, LookError, PutError};

/// An error that may only mean: wait for this, and ask again.
pub(super) trait MayBeTooSoon {
    fn too_soon(&self) -> Option<&Receipt>;
}

impl MayBeTooSoon for LookError {
    fn too_soon(&self) -> Option<&Receipt> {
        match self {
            Self::NotWritten(receipt) => Some(receipt),
            _ => None,
        }
    }
}

impl MayBeTooSoon for ChangeError {
    fn too_soon(&self) -> Option<&Receipt> {
        match self {
            Self::Look(error) => error.too_soon(),
            _ => None,
        }
    }
}

impl MayBeTooSoon for PutError {
    fn too_soon(&self) -> Option<&Receipt> {
        match self {
            Self::Look(error) => error.too_soon(),
            _ => None,
        }
    }
}

impl Service {
    /// Makes `attempt` until it comes to a decision: each time that it needs a record which is on its way
    /// to the disk, it is made again when that is there. Then waits until the decision is durable.
    ///
    /// An attempt may read the disk, so it is made on a thread for that.
    pub(super) async fn decide<T, E, F>(
        &self,
        attempt: impl Fn(&Self) -> Result<Decided<T>, E> + Send + Sync + 'static,
    ) -> Result<T, F>
    where
        T: Send + 'static,
        E: MayBeTooSoon + Send + 'static,
        F: From<E> + From<Unavailable>,
    {
        let decided = self.look::<_, E, F>(attempt).await?;
        self.durable(&decided.receipt).await.map_err(F::from)?;
        Ok(decided.answer)
    }

    /// As [`Service::decide`], for what has no receipt of its own.
    pub(super) async fn look<T, E, F>(
        &self,
        attempt: impl Fn(&Self) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<T, F>
    where
        T: Send + 'static,
        E: MayBeTooSoon + Send + 'static,
        F: From<E> + From<Unavailable>,
    {
        let attempt = Arc::new(attempt);
        loop {
            let (service, attempt) = (self.clone(), Arc::clone(&attempt));
            match blocking(move || attempt(&service)).await? {
                Ok(answer) => return Ok(answer),
                Err(error) => match error.too_soon() {
                    Some(receipt) => self.durable(receipt).await?,
                    None => return Err(error.into()),
                },
            }
        }
    }
}
