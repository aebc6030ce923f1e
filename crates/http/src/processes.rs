//! Requests about processes.
//!
//! In: pids, bodies, queries. Out: records, lists, texts. All work is the service's.

use std::time::Duration;

use axum::{
    extract::{RawQuery, Request, State},
    http::{HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use isolane_environment::{ListQuery, NewProcess, ProcessError, ProcessRecord, RunQuery};

use crate::{
    app::{App, SharedApp},
    body,
    params::{self, PidParam},
    problem::Problem,
    reply::{self, PLAIN, Reply},
};

/// POST `/processes`
pub(crate) async fn create(
    State(app): State<SharedApp>,
    RawQuery(query): RawQuery,
    request: Request,
) -> Reply {
    let body = body::json(&app, request).await?;
    let time = params::wait(query.as_deref())?;
    let body = body.ok_or_else(|| Problem::bad_request("the body is empty"))?;
    let mut record = app.service.create(NewProcess::from_json(&body)?).await?;
    if let Some(time) = time {
        record = wait(&app, record.pid, time).await?;
    }
    let location = format!("/processes/{}", record.pid);
    let mut response = reply::json(&record)?;
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// GET `/processes`
pub(crate) async fn list(State(app): State<SharedApp>, RawQuery(query): RawQuery) -> Reply {
    let pairs = params::pairs(query.as_deref());
    let pairs = pairs.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let query = ListQuery::from_pairs(pairs)?;
    reply::json(&app.service.list(query).await?)
}

/// GET `/processes/{pid}`
pub(crate) async fn get(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
) -> Reply {
    let time = params::wait(query.as_deref())?;
    let pid = params::pid(pid)?;
    let record = match time {
        Some(time) => wait(&app, pid, time).await?,
        None => app.service.get(pid).await?,
    };
    reply::json(&record)
}

/// DELETE `/processes/{pid}`
pub(crate) async fn delete(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
) -> Reply {
    params::none(query.as_deref())?;
    app.service.delete(params::pid(pid)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// POST `/processes/{pid}/run`
pub(crate) async fn run(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
    request: Request,
) -> Reply {
    let body = body::json(&app, request).await?;
    params::none(query.as_deref())?;
    let query = RunQuery::from_json(body.as_ref())?;
    reply::json(&app.service.run(params::pid(pid)?, query).await?)
}

/// POST `/processes/{pid}/kill`
pub(crate) async fn kill(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
    request: Request,
) -> Reply {
    let body = body::json(&app, request).await?;
    params::none(query.as_deref())?;
    if body.is_some_and(|body| body.as_object().is_none_or(|fields| !fields.is_empty())) {
        return Err(Problem::bad_request("this request has no body, or an empty object"));
    }
    reply::json(&app.service.kill(params::pid(pid)?).await?)
}

/// GET `/processes/{pid}/code`
pub(crate) async fn code(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
) -> Reply {
    params::none(query.as_deref())?;
    text(app.service.code(params::pid(pid)?).await)
}

/// GET `/processes/{pid}/stdout`
pub(crate) async fn stdout(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
) -> Reply {
    params::none(query.as_deref())?;
    text(app.service.stdout(params::pid(pid)?).await)
}

/// GET `/processes/{pid}/stderr`
pub(crate) async fn stderr(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
) -> Reply {
    params::none(query.as_deref())?;
    text(app.service.stderr(params::pid(pid)?).await)
}

/// GET `/processes/{pid}/output`
pub(crate) async fn output(
    State(app): State<SharedApp>,
    pid: PidParam,
    RawQuery(query): RawQuery,
) -> Reply {
    params::none(query.as_deref())?;
    reply::json(&app.service.output(params::pid(pid)?).await?)
}

fn text(text: Result<String, ProcessError>) -> Reply {
    Ok(reply::typed(PLAIN, text?))
}

/// The record when the process is idle, the time is over, or the server closes.
async fn wait(app: &App, pid: u64, time: Duration) -> Result<ProcessRecord, Problem> {
    let waited = tokio::select! {
        biased;
        record = app.service.wait(pid, Some(time)) => record,
        () = app.closing.cancelled() => app.service.get(pid).await,
    };
    Ok(waited?)
}
