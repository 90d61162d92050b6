//! Idempotency keys: a request that comes again is answered as the first time, and stores nothing.

use timerlog::planted::{self, Fault};

use super::LookError;
use super::look::head;
use super::put::{Prepared, PutAnswer, PutError, PutsAnswer, Refusal, Refused};
use crate::clock::Timestamp;
use crate::commitlog::ReadError;
use crate::message::State;
use crate::message::offset::Offset;
use crate::message::record::{Bound, IdempotencyKey, ItemOutcome, Kind, RecordError};
use crate::store::Store;

/// How long a key is remembered, in milliseconds: 24 hours.
pub const IDEMPOTENT_FOR_MS: u64 = 24 * 60 * 60 * 1000;

/// What the key's request came to when it was first accepted; `None` when the key is new, or so old that
/// it is new again. The caller is alone with the key.
pub(super) fn earlier(
    store: &Store,
    bound: &Bound,
    now: Timestamp,
) -> Result<Option<PutsAnswer>, PutError> {
    let Some((offset, at, request)) = newest(store, bound)? else { return Ok(None) };
    if planted::is(Fault::ForgetRequests) {
        return Ok(None);
    }
    if now.since(at) >= IDEMPOTENT_FOR_MS {
        return Ok(None);
    }
    if request != bound.request {
        return Err(PutError::KeyReused);
    }
    let mut bytes = Vec::new();
    let record = store.log().reader().record(offset, None, &mut bytes).map_err(LookError::from)?;
    let bad = |cause| LookError::from(ReadError::Record { offset: offset.get(), cause });
    let key = IdempotencyKey::decode(&record).map_err(bad)?;
    let answers = key.items.iter().map(|item| answer(*item, offset));
    let items = answers.collect::<Option<_>>();
    let items = items.ok_or_else(|| bad(RecordError::Head("an item lies before the log")))?;
    Ok(Some(PutsAnswer { items, replayed: true }))
}

fn newest(
    store: &Store,
    bound: &Bound,
) -> Result<Option<(Offset, Timestamp, [u8; 16])>, LookError> {
    for offset in store.index().newest_first(store.keys().idempotency(&bound.key), None) {
        let offset = offset?;
        let found = head(store, offset, |record| match record.header.kind {
            Kind::IdempotencyKey => IdempotencyKey::decode_fixed(record).map(Some),
            _ => Ok(None),
        })?;
        if let Some((at, found)) = found.filter(|(_, found)| found.key == bound.key) {
            return Ok(Some((offset, at, found.request)));
        }
    }
    Ok(None)
}

fn answer(item: ItemOutcome, own: Offset) -> Option<Result<PutAnswer, Refusal>> {
    Some(match item {
        ItemOutcome::Accepted { distance, nonce, timed, deliver_at } => {
            let state = if timed { State::Scheduled } else { State::Ready };
            Ok(PutAnswer { offset: ItemOutcome::offset(distance, own)?, nonce, state, deliver_at })
        }
        ItemOutcome::Malformed => Err(Refusal::Malformed),
        ItemOutcome::TooFarAhead => Err(Refusal::TooFarAhead),
        ItemOutcome::TypeMismatch => Err(Refusal::TypeMismatch),
    })
}

/// What a key keeps of a request whose messages take `length` bytes, right before the key's own record.
pub(super) fn outcomes(
    items: &[Result<Prepared, Box<Refused>>],
    length: usize,
) -> Vec<ItemOutcome> {
    let mut left = length;
    let outcome = |item: &Result<Prepared, Box<Refused>>| match item {
        Ok(prepared) => {
            let distance = u32::try_from(left).expect("a request fits one append group of 8 MiB");
            left -= prepared.encoded.len();
            let message = &prepared.message;
            let deadline = message.placement.deadline();
            let (timed, deliver_at) = (deadline.is_some(), deadline.unwrap_or(message.born_at));
            ItemOutcome::Accepted { distance, nonce: message.nonce, timed, deliver_at }
        }
        Err(refused) => match refused.refusal {
            Refusal::Malformed => ItemOutcome::Malformed,
            Refusal::TooFarAhead => ItemOutcome::TooFarAhead,
            Refusal::TypeMismatch => ItemOutcome::TypeMismatch,
        },
    };
    items.iter().map(outcome).collect()
}
