//! `PUT /v1/groups/{group}`, `GET /v1/groups` and `GET /v1/groups/{group}`.
//!
//! A `PUT` gives the settings whole: what is missing takes its default. The tags of a topic that the group
//! has received from are the exception: they are fixed, may be repeated or left out, and stay.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fields::{Label, check_label};
use super::groups::{bounded_duration, control, parse};
use super::members::{Member, Members};
use super::operating::plain;
use super::page::{Page, PageParameters, cursor};
use super::problem::Problem;
use super::query::NoParameters;
use super::{Api, Segment, json, segment};
use crate::consumer::INVISIBLE_FOR_MS;
use crate::message::{GroupName, GroupSettings, StartFrom, TagFilter, TopicName};
use crate::metrics::Route;
use crate::service::{GroupView, TopicProgress};
use crate::store::Made;

/// Most attempts that a group may ask for.
pub(super) const MAX_ATTEMPTS: u32 = 1000;
/// Most steps of a backoff.
pub(super) const MAX_BACKOFF_STEPS: usize = 64;
/// The longest step of a backoff: 30 days.
pub(super) const MAX_BACKOFF_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Most tags of one filter.
pub(super) const MAX_TAGS: usize = 64;
/// Most topics whose filters a group may have set.
pub(super) const MAX_FILTERS: usize = 256;

pub(super) async fn set(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = put(&api, group, request).await;
    api.answer(Route::PutGroup, result)
}

async fn put(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let group = GroupName::writable(&segment(group)?)?;
    let held = control(api, request).await?;
    let settings = settings(&held.bytes)?;
    drop(held);
    let (view, made) = api.service()?.set_group(&group, settings).await?;
    let status = match made {
        Made::Now => StatusCode::CREATED,
        Made::Before => StatusCode::OK,
    };
    Ok(json(status, &Group::from(&view)))
}

pub(super) async fn show(State(api): State<Api>, group: Segment, request: Request) -> Response {
    let result = one(&api, group, request).await;
    api.answer(Route::GetGroup, result)
}

async fn one(api: &Api, group: Segment, request: Request) -> Result<Response, Problem> {
    let NoParameters {} = plain(&request)?;
    let group = GroupName::readable(&segment(group)?)?;
    let view = api.service()?.group(&group).await?;
    Ok(json(StatusCode::OK, &Group::from(&view)))
}

pub(super) async fn list(State(api): State<Api>, request: Request) -> Response {
    let result = page(&api, request).await;
    api.answer(Route::ListGroups, result)
}

async fn page(api: &Api, request: Request) -> Result<Response, Problem> {
    let parameters: PageParameters = plain(&request)?;
    let (limit, after) = (parameters.limit()?, parameters.after()?);
    // One more than is shown says whether there is another page.
    let mut views = api.service()?.groups(after.as_deref(), limit + 1).await?;
    let more = views.len() > limit;
    views.truncate(limit);
    let next_cursor = views.last().filter(|_| more).map(|view| cursor(&view.name));
    let items = views.iter().map(Group::from).collect();
    Ok(json(StatusCode::OK, &Page { items, next_cursor }))
}

pub(super) fn settings(json: &[u8]) -> Result<GroupSettings, Problem> {
    let written: Members<'_> = parse(json)?;
    let mut settings = GroupSettings::default();
    for member in written.at("")? {
        match &*member.name {
            "ordered" => settings.ordered = member.read()?,
            "maxAttempts" => settings.max_attempts = max_attempts(&member)?,
            "backoff" => settings.backoff_ms = backoff(&member)?,
            "invisibleFor" => settings.invisible_for_ms = invisible_for(&member)?,
            "startFrom" => settings.start_from = start_from(&member)?,
            "tags" => settings.filters = filters(&member)?,
            _ => return Err(member.unknown()),
        }
    }
    Ok(settings)
}

fn max_attempts(member: &Member<'_>) -> Result<u32, Problem> {
    match member.read() {
        Ok(attempts) if (1..=MAX_ATTEMPTS).contains(&attempts) => Ok(attempts),
        _ => Err(member.refuse(format!("maxAttempts is 1 to {MAX_ATTEMPTS}"))),
    }
}

fn backoff(member: &Member<'_>) -> Result<Vec<u64>, Problem> {
    let steps: Vec<&RawValue> = member.read()?;
    if !(1..=MAX_BACKOFF_STEPS).contains(&steps.len()) {
        let detail = format!("a backoff has 1 to {MAX_BACKOFF_STEPS} steps; leave it out for ours");
        return Err(member.refuse(detail));
    }
    let steps = steps.into_iter().enumerate();
    steps
        .map(|(index, step)| {
            bounded_duration(step, MAX_BACKOFF_MS, &format!("{}/{index}", member.pointer))
        })
        .collect()
}

fn invisible_for(member: &Member<'_>) -> Result<u64, Problem> {
    let (least, most) = (INVISIBLE_FOR_MS.start(), INVISIBLE_FOR_MS.end());
    match bounded_duration(member.value, *most, &member.pointer)? {
        ms if ms < *least => Err(member.refuse("a lease lasts at least a millisecond")),
        ms => Ok(ms),
    }
}

fn start_from(member: &Member<'_>) -> Result<StartFrom, Problem> {
    match member.read::<String>()?.as_str() {
        "earliest" => Ok(StartFrom::Earliest),
        "latest" => Ok(StartFrom::Latest),
        _ => Err(member.refuse("startFrom is earliest or latest")),
    }
}

fn filters(member: &Member<'_>) -> Result<BTreeMap<String, TagFilter>, Problem> {
    let mut filters = BTreeMap::new();
    for topic in Members::of(member.value, &member.pointer)? {
        let name = TopicName::writable(&topic.name)
            .map_err(|error| Problem::from(error).at(&topic.pointer))?;
        filters.insert(name.as_str().to_owned(), tags(topic.value, &topic.pointer)?);
    }
    if filters.len() > MAX_FILTERS {
        return Err(member.refuse(format!("tags can be set for at most {MAX_FILTERS} topics")));
    }
    Ok(filters)
}

/// A list of tags as a filter. An empty one is refused: it could be meant to let nothing through, or
/// everything, and a consumer that is wrong about that loses messages or drowns in them.
pub(super) fn tags(value: &RawValue, pointer: &str) -> Result<TagFilter, Problem> {
    let tags = Vec::<String>::deserialize(value)
        .map_err(|error| Problem::invalid(error.to_string()).at(pointer))?;
    if !(1..=MAX_TAGS).contains(&tags.len()) {
        let detail =
            format!("a filter has 1 to {MAX_TAGS} tags; leave tags out to receive everything");
        return Err(Problem::invalid(detail).at(pointer));
    }
    for (index, tag) in tags.iter().enumerate() {
        check_label(Label::Tag, tag)
            .map_err(|problem| problem.at(&format!("{pointer}/{index}")))?;
    }
    Ok(TagFilter::new(tags))
}

/// Durations come out as whole milliseconds, which a `PUT` takes, too.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Group<'a> {
    group: &'a str,
    ordered: bool,
    max_attempts: u32,
    backoff: &'a [u64],
    invisible_for: u64,
    start_from: &'static str,
    tags: BTreeMap<&'a str, &'a [String]>,
    topics: Vec<Topic<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Topic<'a> {
    topic: &'a str,
    lag: u64,
    in_flight: u64,
    oldest_unacked_age_ms: Option<u64>,
    dead_letters: u64,
}

impl<'a> From<&'a GroupView> for Group<'a> {
    fn from(view: &'a GroupView) -> Self {
        let settings = &view.settings;
        let tags = settings.filters.iter().map(|(topic, filter)| (topic.as_str(), filter.tags()));
        Self {
            group: &view.name,
            ordered: settings.ordered,
            max_attempts: settings.max_attempts,
            backoff: &settings.backoff_ms,
            invisible_for: settings.invisible_for_ms,
            start_from: match settings.start_from {
                StartFrom::Earliest => "earliest",
                StartFrom::Latest => "latest",
            },
            tags: tags.collect(),
            topics: view.topics.iter().map(Topic::from).collect(),
        }
    }
}

impl<'a> From<&'a TopicProgress> for Topic<'a> {
    fn from(progress: &'a TopicProgress) -> Self {
        Self {
            topic: &progress.topic,
            lag: progress.lag,
            in_flight: progress.in_flight,
            oldest_unacked_age_ms: progress.oldest_unacked_age_ms,
            dead_letters: progress.dead_letters,
        }
    }
}
