//! The answer to a check-back, to be tried with bytes that mean nothing.

use serde_json::{Value, json};
use timerlog::decoder::{Decoder, Judged, unsealed};

use super::{Ended, decided};

pub(crate) fn decoder() -> Decoder {
    Decoder::new("check_answer", samples, unsealed, judge)
}

fn samples() -> Vec<Vec<u8>> {
    let answers = [r#"{"state":"COMMIT"}"#, r#" {"note":[1,{"a":null}],"state":"ROLL\u0042ACK"}"#];
    answers.map(|answer| answer.as_bytes().to_vec()).into()
}

/// Only an object whose state says so ends a transaction.
fn judge(bytes: &[u8]) -> Judged {
    let Some(how) = decided(bytes) else { return Judged::Refused };
    let state = match how {
        Ended::Committed => "COMMIT",
        Ended::RolledBack => "ROLLBACK",
    };
    let written: Value = serde_json::from_slice(bytes).expect("it was read as JSON");
    assert_eq!(written.as_object().map(|members| &members["state"]), Some(&json!(state)));
    assert_eq!(decided(json!({ "state": state }).to_string().as_bytes()), Some(how));
    Judged::Accepted
}
