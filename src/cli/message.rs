//! A message as the server writes it, as far as the commands show it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message {
    pub(super) message_id: String,
    pub(super) topic: String,
    /// What was received has none.
    pub(super) state: Option<String>,
    #[serde(default)]
    pub(super) keys: Vec<String>,
    pub(super) tag: Option<String>,
    #[serde(default)]
    pub(super) properties: BTreeMap<String, String>,
    pub(super) message_group: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) timer_key: Option<String>,
    pub(super) born_at: Option<String>,
    pub(super) deliver_at: String,
    pub(super) fired_at: Option<String>,
    pub(super) attempt: Option<u64>,
    pub(super) receipt_handle: Option<String>,
    pub(super) invisible_until: Option<String>,
    body: Option<Box<RawValue>>,
    body_text: Option<String>,
    body_base64: Option<String>,
}

impl Message {
    /// The body, if the server has sent one.
    pub(super) fn body(&self) -> Option<String> {
        body(self.body.as_deref(), self.body_text.clone(), self.body_base64.clone())
    }

    /// Its keys; that of its timer first.
    pub(super) fn all_keys(&self) -> String {
        let keys = self.timer_key.iter().chain(&self.keys);
        keys.map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// The body in whichever form the server has sent it, if it has.
pub(super) fn body(
    json: Option<&RawValue>,
    text: Option<String>,
    base64: Option<String>,
) -> Option<String> {
    let json = json.map(|json| json.get().to_owned());
    json.or(text).or_else(|| base64.map(|base64| format!("base64:{base64}")))
}
