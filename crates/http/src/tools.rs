//! Requests about tools and about the environment.
//!
//! In: names. Out: lists, declarations, descriptions.

use axum::extract::{Path, RawQuery, State, rejection::PathRejection};
use serde_json::json;

use crate::{
    app::SharedApp,
    params,
    problem::Problem,
    reply::{self, MARKDOWN, PLAIN, Reply},
};

/// GET `/tools`
pub(crate) async fn list(State(app): State<SharedApp>, RawQuery(query): RawQuery) -> Reply {
    params::none(query.as_deref())?;
    let tools = app.service.tools();
    reply::json(&json!({ "items": &tools[..] }))
}

/// GET `/tools.d.ts`
pub(crate) async fn types(State(app): State<SharedApp>, RawQuery(query): RawQuery) -> Reply {
    params::none(query.as_deref())?;
    Ok(reply::typed(PLAIN, app.service.tool_types()))
}

/// GET `/tools/{service}/{tool}/docs`
pub(crate) async fn docs(
    State(app): State<SharedApp>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Reply {
    params::none(query.as_deref())?;
    let Ok(Path((service, tool))) = path else {
        return Err(Problem::not_found("there is no such tool"));
    };
    Ok(reply::typed(MARKDOWN, app.service.tool_docs(&service, &tool).await?))
}

/// GET `/environment/docs`
pub(crate) async fn environment(State(app): State<SharedApp>, RawQuery(query): RawQuery) -> Reply {
    params::none(query.as_deref())?;
    Ok(reply::typed(MARKDOWN, app.service.environment_docs().await?))
}
