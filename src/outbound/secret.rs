//! Signatures by which a receiver knows that a request is ours: Standard Webhooks, version 1
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

const PREFIX: &str = "whsec_";
const MIN_BYTES: usize = 24;
const MAX_BYTES: usize = 64;

/// What the receiver and this server share. It does not show itself, and is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Why a text is not a secret. It repeats nothing of the text, which may be one with a slip in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("a secret begins with {PREFIX}")]
    Prefix,
    #[error("after {PREFIX} a secret is base64 with its padding")]
    Base64,
    #[error(
        "a secret has {MIN_BYTES} to {MAX_BYTES} bytes behind the base64, this one has {length}"
    )]
    Length { length: usize },
}

impl FromStr for Secret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<Self, SecretError> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretError::Prefix)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError::Base64)?;
        let bytes = Zeroizing::new(bytes);
        if !(MIN_BYTES..=MAX_BYTES).contains(&bytes.len()) {
            return Err(SecretError::Length { length: bytes.len() });
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(secret)")
    }
}

impl Secret {
    /// As it was given.
    #[cfg(any(test, fuzzing))]
    pub(super) fn written(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&*self.0))
    }

    /// The signature of a request, with its version: `v1,` and the MAC of `id.seconds.body`.
    pub(super) fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}
