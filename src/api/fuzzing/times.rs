//! Times, in any of their forms.

use timerlog::decoder::{Decoder, Judged};

use super::super::moment::{Token, time};
use super::written;

pub(super) fn decoder() -> Decoder {
    super::decoder("time", samples, judge)
}

fn samples() -> Vec<Vec<u8>> {
    written(&[
        "1790000000007",
        "2026-09-21T14:13:20.007Z",
        "2026-09-21T22:13:20.0065+08:00",
        "0",
        "18446744073709551615",
        "9999-12-30T22:00:00.999999999Z",
    ])
}

/// What is read is written as any time is written, and read again as the same.
fn judge(bytes: &[u8]) -> Judged {
    let Ok(text) = std::str::from_utf8(bytes) else { return Judged::Refused };
    let Ok(read) = time(&Token::Text(text.into())) else { return Judged::Refused };
    let number = read.as_millis().to_string();
    assert_eq!(time(&Token::Number(&number)), Ok(read), "{text}");
    let shown = read.to_string();
    if let Ok(again) = time(&Token::Text(shown.as_str().into())) {
        assert_eq!(again, read, "{text} is written as {shown}");
    } else {
        // No calendar goes so far, but for parts of its last second; the API does not let such a moment in.
        assert!(read.as_millis() >= 253_402_207_200_000, "{text} is written as {shown}");
    }
    Judged::Accepted
}
