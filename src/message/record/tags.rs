//! Tag filters inside other records: `count 2, each: length 2, bytes`, sorted, each tag once.

use super::RecordError;
use crate::message::TagFilter;

pub(super) fn encode(filter: &TagFilter, out: &mut Vec<u8>) {
    put_length(filter.tags().len(), out);
    for tag in filter.tags() {
        put_text(tag, out);
    }
}

pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    put_length(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

fn put_length(length: usize, out: &mut Vec<u8>) {
    let length = u16::try_from(length).expect("the door lets in few tags, and short ones");
    out.extend_from_slice(&length.to_le_bytes());
}

/// What is left to read of a body.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl Rest<'_> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        match self.0.split_first_chunk() {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(*taken)
            }
            None => Err(RecordError::Short { needed: N, got: self.0.len() }),
        }
    }

    pub(super) fn u64(&mut self) -> Result<u64, RecordError> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn text(&mut self) -> Result<String, RecordError> {
        let needed = usize::from(u16::from_le_bytes(self.take()?));
        let Some((text, rest)) = self.0.split_at_checked(needed) else {
            return Err(RecordError::Short { needed, got: self.0.len() });
        };
        self.0 = rest;
        let text = std::str::from_utf8(text).map_err(|_| RecordError::Head("a tag is no text"))?;
        Ok(text.to_owned())
    }

    /// Nothing is allocated for a count that the bytes cannot hold.
    pub(super) fn filter(&mut self) -> Result<TagFilter, RecordError> {
        let count = u16::from_le_bytes(self.take()?);
        let mut tags = Vec::new();
        for _ in 0..count {
            tags.push(self.text()?);
        }
        if !tags.is_sorted_by(|one, next| one < next) {
            return Err(RecordError::Head("tags are sorted, and each is there once"));
        }
        Ok(TagFilter::new(tags))
    }

    pub(super) fn end(&self) -> Result<(), RecordError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(RecordError::Head("bytes follow the last tag")),
        }
    }
}
