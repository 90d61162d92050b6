//! `horolog get`: what is known of one message.

use super::arguments::{GetArgs, Output};
use super::far::time;
use super::message::Message;
use super::remote::{Remote, encoded};
use super::table::Facts;
use super::{CliError, Io};

pub(super) async fn run(args: &GetArgs, io: &mut Io<'_>) -> Result<(), CliError> {
    let with_body = if args.body { "?body=true" } else { "" };
    let path = format!("/v1/messages/{}{with_body}", encoded(&args.id));
    let good = Remote::new(&args.common.url).get(&path).await?;
    if args.common.output == Output::Json {
        return Ok(good.write(io.output)?);
    }
    let message: Message = good.read()?;
    let now = (io.now)();
    let mut facts = Facts::default();
    let body = message.body();
    facts.add("message", message.message_id);
    facts.add("topic", message.topic);
    facts.add_if("state", message.state);
    facts.add_if("timer", message.timer_key);
    facts.add_if("keys", (!message.keys.is_empty()).then(|| message.keys.join(", ")));
    facts.add_if("tag", message.tag);
    facts.add_if("group", message.message_group);
    facts.add_if("type", message.content_type);
    facts.add_if("put at", message.born_at.map(|at| time(&at, now)));
    facts.add("deliver at", time(&message.deliver_at, now));
    facts.add_if("fired at", message.fired_at.map(|at| time(&at, now)));
    for (name, value) in message.properties {
        facts.add("property", format!("{name}={value}"));
    }
    facts.add_if("body", body);
    Ok(facts.write(io.output)?)
}
