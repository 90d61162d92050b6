//! The rules for names and ranges, the same on every disk.

/// Panics unless `name` is one plain path component.
///
/// Names are made by the code of this house, never taken from a request, so a bad one is a bug here
/// and not an error of the disk.
pub(super) fn assert_plain(name: &str) {
    let plain =
        !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']);
    assert!(plain, "{name:?} is not a single path component");
}

/// Where `offset..offset + length` ends, if that is within a file of `file_length` bytes.
pub(super) fn end_within(offset: u64, length: usize, file_length: u64) -> Option<u64> {
    let end = offset.checked_add(u64::try_from(length).ok()?)?;
    (end <= file_length).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_must_lie_within_the_file() {
        assert_eq!(end_within(0, 0, 0), Some(0));
        assert_eq!(end_within(3, 5, 8), Some(8));
        assert_eq!(end_within(3, 6, 8), None);
        assert_eq!(end_within(u64::MAX, 1, u64::MAX), None);
    }

    #[test]
    #[should_panic(expected = "not a single path component")]
    fn a_name_with_a_separator_is_a_bug() {
        assert_plain("a/b");
    }
}
