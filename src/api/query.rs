//! Query parameters: each is known by its request, or refused.

use axum::extract::Query;
use axum::http::Uri;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// For requests that take no parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// The parameters of `uri`.
pub(super) fn parameters<T: DeserializeOwned + Default>(uri: &Uri) -> Result<T, Problem> {
    match uri.query() {
        None | Some("") => Ok(T::default()),
        Some(_) => match Query::try_from_uri(uri) {
            Ok(Query(parameters)) => Ok(parameters),
            Err(rejection) => Err(Problem::invalid(rejection.body_text())),
        },
    }
}
