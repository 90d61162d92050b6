//! Which messages of a topic a group wants: those that have one of these tags.

use std::sync::Arc;

use super::record::tag_hash;

/// A set of tags. The empty one is no filter: it admits everything, also what has no tag. Any other
/// admits nothing that has no tag. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagFilter {
    /// Sorted, each once.
    tags: Arc<[String]>,
    /// Of the tags, sorted.
    hashes: Arc<[u16]>,
}

impl TagFilter {
    /// The filter that admits the messages with one of `tags`; their order does not matter.
    pub fn new(tags: impl IntoIterator<Item = String>) -> Self {
        let mut tags: Vec<_> = tags.into_iter().collect();
        tags.sort_unstable();
        tags.dedup();
        let mut hashes: Vec<_> = tags.iter().map(|tag| tag_hash(Some(tag))).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self { tags: tags.into(), hashes: hashes.into() }
    }

    pub fn everything() -> Self {
        Self::default()
    }

    pub fn admits_everything(&self) -> bool {
        self.tags.is_empty()
    }

    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// Whether a message whose tag has this hash may be admitted. `false` is certain; `true` must be
    /// asked again, with the tag.
    pub fn may_admit(&self, hash: u16) -> bool {
        self.admits_everything() || self.hashes.binary_search(&hash).is_ok()
    }

    pub fn admits(&self, tag: Option<&str>) -> bool {
        self.admits_everything()
            || tag.is_some_and(|tag| {
                self.tags.binary_search_by(|known| known.as_str().cmp(tag)).is_ok()
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(tags: &[&str]) -> TagFilter {
        TagFilter::new(tags.iter().map(ToString::to_string))
    }

    #[test]
    fn a_filter_is_a_set() {
        assert_eq!(filter(&["b", "a", "b"]), filter(&["a", "b"]));
        assert_ne!(filter(&["a"]), filter(&["a", "b"]));
        assert_eq!(filter(&[]), TagFilter::everything());
    }

    #[test]
    fn what_has_no_tag_is_admitted_by_no_filter_only() {
        assert!(filter(&[]).admits(None) && filter(&[]).may_admit(0));
        assert!(!filter(&["a"]).admits(None) && !filter(&["a"]).may_admit(0));
    }

    #[test]
    fn the_hash_admits_whatever_the_tag_admits_and_more() {
        let wanted = filter(&["paid", "late"]);
        for number in 0..100_000 {
            let tag = number.to_string();
            assert!(!wanted.admits(Some(&tag)));
        }
        for tag in ["paid", "late"] {
            assert!(wanted.admits(Some(tag)) && wanted.may_admit(tag_hash(Some(tag))));
        }
        let same_hash = (0..200_000)
            .map(|number| number.to_string())
            .find(|tag| tag_hash(Some(tag)) == tag_hash(Some("paid")))
            .unwrap();
        assert!(wanted.may_admit(tag_hash(Some(&same_hash))) && !wanted.admits(Some(&same_hash)));
    }
}
