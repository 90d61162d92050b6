//! The shop: begins each order, writes it to its database, and tells the server how that went, unless it
//! crashes in between. Then the server asks, and who answers looks into the database.

use std::sync::Arc;

use axum::http::Method;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::plan::{Ending, Shop};
use super::{Body, CHECK_AFTER, CHECK_INTERVAL, PRODUCERS, Stage, TOPIC};
use crate::client::Client;
use crate::demo::DemoError;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prepared {
    transaction_id: String,
}

#[derive(Deserialize)]
struct Checks {
    checks: Vec<Check>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    transaction_id: String,
    body: Body,
}

/// Takes every order whose number is `worker` modulo `workers`.
pub(super) async fn take_orders(
    stage: Arc<Stage>,
    worker: usize,
    workers: usize,
) -> Result<(), DemoError> {
    let mut client = Client::new(stage.address);
    let path = format!("/v1/topics/{TOPIC}/transactions");
    for number in (worker..stage.book.len()).step_by(workers) {
        let order = stage.plan.order(number);
        let half = json!({
            "body": { "order": number, "then": "remind the customer" },
            "keys": [format!("order-{number}")],
            "delay": order.delay_ms,
            "producerGroup": PRODUCERS,
            "checkAfter": CHECK_AFTER,
            "checkInterval": CHECK_INTERVAL,
        });
        stage.book.begins(number, stage.after(order.delay_ms), order.shop);
        let Prepared { transaction_id } = client.post(&path, &half).await?.json()?;
        match order.shop {
            Shop::Answers => {
                end(&stage, &mut client, number, &transaction_id, order.ending).await?;
            }
            Shop::FallsSilent => {}
        }
    }
    Ok(())
}

/// Answers for orders that nothing more was heard of, until all have come to their end.
pub(super) async fn answer_checks(stage: Arc<Stage>) -> Result<(), DemoError> {
    let mut client = Client::new(stage.address);
    let path = format!("/v1/producer-groups/{PRODUCERS}/checks");
    let wanted = json!({ "max": 64, "wait": "1s" });
    while !stage.is_over() {
        let Checks { checks } = client.post(&path, &wanted).await?.json()?;
        for Check { transaction_id, body: Body { order } } in checks {
            stage.book.checked_back(order, stage.now());
            // What the plan says is what the shop's database would say.
            let ending = stage.plan.order(order).ending;
            end(&stage, &mut client, order, &transaction_id, ending).await?;
        }
    }
    Ok(())
}

async fn end(
    stage: &Stage,
    client: &mut Client,
    order: usize,
    transaction_id: &str,
    ending: Ending,
) -> Result<(), DemoError> {
    let how = match ending {
        Ending::Committed => "commit",
        Ending::RolledBack => "rollback",
    };
    stage.book.ends(order, ending, stage.now());
    let path = format!("/v1/transactions/{transaction_id}/{how}");
    client.call(Method::POST, &path).await?.json::<IgnoredAny>()?;
    stage.book.ended(order, ending, stage.now());
    Ok(())
}
