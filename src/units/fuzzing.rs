//! Durations and sizes, to be tried with text that means nothing. What is read can be written in other ways,
//! so here it is written plainly and read again, and compared with what a slow reader makes of plain forms.

use timerlog::decoder::{Decoder, Judged, unsealed};

use super::{duration_ms, size_bytes};

pub(crate) fn decoders() -> Vec<Decoder> {
    vec![
        Decoder::new("duration", durations, unsealed, judge_duration),
        Decoder::new("size", sizes, unsealed, judge_size),
    ]
}

fn written(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn durations() -> Vec<Vec<u8>> {
    written(&[
        "90s",
        "1h30m",
        "250ms",
        "30d",
        "PT30M",
        "P1DT12H",
        "0",
        "18446744073709551615",
        "2w",
    ])
}

fn judge_duration(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let read = duration_ms(text).ok();
    if let Some(expected) = plain(text, &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)])
    {
        // Beyond what the calendar can count, a duration is refused.
        assert!(read.is_none_or(|ms| u128::from(ms) == expected), "{text} is not {read:?}");
        assert!(read.is_some() || expected > 1 << 48, "{text} is {expected} ms");
    }
    let Some(ms) = read else { return Judged::Refused };
    assert_eq!(duration_ms(&ms.to_string()), Ok(ms), "{text}");
    Judged::Accepted
}

fn sizes() -> Vec<Vec<u8>> {
    written(&["4096", "64KiB", "4 MiB", "1GiB", "7B", "18446744073709551615"])
}

fn judge_size(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let read = size_bytes(text).ok();
    if let Some(expected) = plain(text, &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)]) {
        let expected = u64::try_from(expected).ok();
        assert_eq!(read, expected, "{text}");
    }
    let Some(size) = read else { return Judged::Refused };
    assert_eq!(size_bytes(&size.to_string()), Ok(size), "{text}");
    Judged::Accepted
}

/// Up to 19 digits and one unit, as anybody would read that.
fn plain(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    units.iter().find_map(|(unit, worth)| {
        let digits = text.strip_suffix(unit)?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        (are_digits && (1..=19).contains(&digits.len()))
            .then(|| digits.parse::<u128>().ok())?
            .map(|number| number * worth)
    })
}
