//! How far away a moment is, and how long something takes, as people say it.

use std::fmt::Write;

use crate::clock::Timestamp;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// `in 29m 59s`, `2d 3h ago` or `now`: the two largest units, rounded down.
pub(super) fn far(moment: Timestamp, now: Timestamp) -> String {
    match (moment.since(now), now.since(moment)) {
        (0, 0) => "now".to_owned(),
        (ahead, 0) => format!("in {}", duration(ahead)),
        (_, ago) => format!("{} ago", duration(ago)),
    }
}

/// The two largest units, rounded down.
pub(super) fn duration(millis: u64) -> String {
    let (large, small) = match millis {
        0..SECOND => return format!("{millis}ms"),
        SECOND..MINUTE => return format!("{}s", millis / SECOND),
        MINUTE..HOUR => ((MINUTE, 'm'), (SECOND, 's')),
        HOUR..DAY => ((HOUR, 'h'), (MINUTE, 'm')),
        DAY.. => ((DAY, 'd'), (HOUR, 'h')),
    };
    let rest = millis % large.0 / small.0;
    match rest {
        0 => format!("{}{}", millis / large.0, large.1),
        rest => format!("{}{} {rest}{}", millis / large.0, large.1, small.1),
    }
}

/// All of it, in a form that the server takes, too: `1d2h`, `250ms`.
pub(super) fn exact(millis: u64) -> String {
    let mut text = String::new();
    let mut rest = millis;
    for (size, unit) in [(DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (1, "ms")] {
        if rest >= size {
            write!(text, "{}{unit}", rest / size).expect("text takes what is written to it");
            rest %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// A time that the server wrote, and how far away it is.
pub(super) fn time(text: &str, now: Timestamp) -> String {
    match read(text) {
        Some(moment) => format!("{text}  {}", far(moment, now)),
        None => text.to_owned(),
    }
}

/// How far away a time is that the server wrote; nothing when it is no time.
pub(super) fn away(text: &str, now: Timestamp) -> String {
    read(text).map(|moment| far(moment, now)).unwrap_or_default()
}

fn read(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_millisecond()).ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_so_far_away() {
        let now = Timestamp::from_millis(1_790_000_000_000);
        for (millis, text) in [
            (0, "now"),
            (1, "in 1ms"),
            (999, "in 999ms"),
            (1000, "in 1s"),
            (59_999, "in 59s"),
            (60_000, "in 1m"),
            (1_799_999, "in 29m 59s"),
            (3_600_000, "in 1h"),
            (5_400_000, "in 1h 30m"),
            (86_400_000, "in 1d"),
            (97_200_000, "in 1d 3h"),
            (3_153_600_000_000, "in 36500d"),
        ] {
            assert_eq!(far(now.checked_add(millis).unwrap(), now), text);
        }
        let before = Timestamp::from_millis(now.as_millis() - 61_000);
        assert_eq!(far(before, now), "1m 1s ago");
        assert_eq!(time("2026-09-21T14:13:20.000Z", now), "2026-09-21T14:13:20.000Z  now");
        assert_eq!(time("later", now), "later");
        assert_eq!(away("2026-09-21T14:13:21.500Z", now), "in 1s");
    }

    #[test]
    fn a_setting_is_shown_to_the_millisecond() {
        for (millis, text) in [
            (0, "0s"),
            (250, "250ms"),
            (30_000, "30s"),
            (90_001, "1m30s1ms"),
            (604_800_000, "7d"),
            (93_784_005, "1d2h3m4s5ms"),
        ] {
            assert_eq!(exact(millis), text);
        }
    }
}
