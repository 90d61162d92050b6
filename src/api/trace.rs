//! The W3C trace context of a request, which is stored with its message.

use axum::http::HeaderMap;

/// Longer ones are left out, as the standard lets a receiver do.
const MAX_TRACEPARENT_LENGTH: usize = 128;
const MAX_TRACESTATE_LENGTH: usize = 512;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) traceparent: Option<String>,
    pub(super) tracestate: Option<String>,
}

impl Trace {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(traceparent) = headers
            .get("traceparent")
            .and_then(|value| value.to_str().ok())
            .filter(|value| value.len() <= MAX_TRACEPARENT_LENGTH)
        else {
            // A state without a parent means nothing.
            return Self::default();
        };
        let states: Vec<&str> =
            headers.get_all("tracestate").iter().filter_map(|value| value.to_str().ok()).collect();
        let tracestate = states.join(",");
        let usable = !tracestate.is_empty() && tracestate.len() <= MAX_TRACESTATE_LENGTH;
        Self { traceparent: Some(traceparent.to_owned()), tracestate: usable.then_some(tracestate) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_joined_and_need_a_parent() {
        let mut headers = HeaderMap::new();
        headers.append("tracestate", "a=1".parse().unwrap());
        headers.append("tracestate", "b=2".parse().unwrap());
        assert_eq!(Trace::of(&headers), Trace::default());
        headers.insert("traceparent", "00-ab-cd-01".parse().unwrap());
        let trace = Trace::of(&headers);
        assert_eq!(trace.traceparent.as_deref(), Some("00-ab-cd-01"));
        assert_eq!(trace.tracestate.as_deref(), Some("a=1,b=2"));
    }
}
