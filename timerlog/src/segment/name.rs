//! Names of segment files: the start position in 20 digits, which any `u64` fits.

pub(super) fn encode(start: u64) -> String {
    format!("{start:020}")
}

/// The start position that `name` stands for; `None` for a name that `encode` does not make.
pub(super) fn decode(name: &str) -> Option<u64> {
    let start = name.parse().ok()?;
    (encode(start) == name).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_sort_as_positions() {
        for start in [0, 1, 4096, u64::MAX] {
            assert_eq!(decode(&encode(start)), Some(start));
        }
        assert!(encode(99) < encode(100));
    }

    #[test]
    fn other_names_are_foreign() {
        for name in
            ["", "0", "-0000000000000000001", "+0000000000000000001", "0000000000000004096.tmp"]
        {
            assert_eq!(decode(name), None, "{name}");
        }
        assert_eq!(decode("99999999999999999999"), None, "beyond the largest position");
    }
}
