//! Requests about the server itself: health, metrics, the document, the page.
//!
//! In: nothing. Out: what operators and browsers ask for.

use axum::extract::State;
use isolane_environment::ProblemType;
use serde_json::json;

use crate::{
    app::SharedApp,
    page,
    problem::Problem,
    reply::{self, JSON, METRICS, Reply},
};

/// GET `/healthz`
pub(crate) async fn health(State(app): State<SharedApp>) -> Reply {
    if app.service.is_shutting_down() {
        return Err(Problem::new(ProblemType::ShuttingDown, "the service is shutting down"));
    }
    reply::json(&json!({ "status": "ok" }))
}

/// GET `/metrics`
pub(crate) async fn metrics(State(app): State<SharedApp>) -> Reply {
    Ok(reply::typed(METRICS, app.metrics.text(&app.service.stats())))
}

/// GET `/openapi.json`
pub(crate) async fn openapi(State(app): State<SharedApp>) -> Reply {
    Ok(reply::typed(JSON, app.openapi.clone()))
}

/// GET `/`
pub(crate) async fn index() -> Reply {
    Ok(page::response())
}
