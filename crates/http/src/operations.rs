//! The operations of a server: each with its route, its handler and its description.
//!
//! In: the table below, which is the only one. Out: the routes, and for `openapi` the description of each.

use axum::{
    Router,
    http::{Method, Uri},
    routing::{MethodRouter, delete, get, post},
};
use isolane_environment::ProblemType::{
    self, AlreadyIdle, HasResults, NotFound, NotIdle, QueueFull, ShuttingDown,
};

use crate::{
    about,
    app::SharedApp,
    events,
    problem::Problem,
    processes,
    reply::{EVENT_STREAM, HTML, JSON, MARKDOWN, METRICS, PLAIN},
    tools,
};

/// A request that clients may send.
pub(crate) struct Operation {
    /// In small letters.
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Its name for generators of clients.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) parameters: &'static [&'static str],
    pub(crate) body: Option<&'static str>,
    pub(crate) answer: Answer,
    /// Problems beyond those that all operations of this kind have.
    pub(crate) problems: &'static [ProblemType],
    handler: fn() -> MethodRouter<SharedApp>,
}

/// The answer to a request that succeeds.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    /// The name of its schema.
    pub(crate) schema: &'static str,
}

const fn answer(status: u16, media_type: &'static str, schema: &'static str) -> Answer {
    Answer { status, media_type, schema }
}

const fn read(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    answer: Answer,
    handler: fn() -> MethodRouter<SharedApp>,
) -> Operation {
    let (parameters, problems): (&[&str], &[ProblemType]) = (&[], &[]);
    Operation {
        method: "get",
        path,
        id,
        summary,
        parameters,
        body: None,
        answer,
        problems,
        handler,
    }
}

/// All operations.
pub(crate) const OPERATIONS: &[Operation] = &[
    Operation {
        method: "post",
        body: Some("NewProcess"),
        parameters: &["wait"],
        problems: &[QueueFull, ShuttingDown],
        ..read(
            "/processes",
            "createProcess",
            "Creates a process, and queues it unless `autorun` is false. With `wait`, answers when it is idle or the time is over.",
            answer(201, JSON, "Process"),
            || post(processes::create),
        )
    },
    Operation {
        parameters: &["state", "exitState", "limit", "before"],
        ..read(
            "/processes",
            "listProcesses",
            "Lists processes, newest first, without their output.",
            answer(200, JSON, "ProcessList"),
            || get(processes::list),
        )
    },
    Operation {
        parameters: &["pid", "wait"],
        problems: &[NotFound],
        ..read(
            "/processes/{pid}",
            "getProcess",
            "The record of a process. With `wait`, answers when it is idle or the time is over.",
            answer(200, JSON, "Process"),
            || get(processes::get),
        )
    },
    Operation {
        method: "delete",
        parameters: &["pid"],
        problems: &[NotFound, NotIdle],
        ..read(
            "/processes/{pid}",
            "deleteProcess",
            "Forgets an idle process.",
            answer(204, "", ""),
            || delete(processes::delete),
        )
    },
    Operation {
        parameters: &["pid"],
        problems: &[NotFound],
        ..read(
            "/processes/{pid}/code",
            "getCode",
            "The code of a process.",
            answer(200, PLAIN, "Text"),
            || get(processes::code),
        )
    },
    Operation {
        parameters: &["pid"],
        problems: &[NotFound],
        ..read(
            "/processes/{pid}/stdout",
            "getStdout",
            "The standard output so far.",
            answer(200, PLAIN, "Text"),
            || get(processes::stdout),
        )
    },
    Operation {
        parameters: &["pid"],
        problems: &[NotFound],
        ..read(
            "/processes/{pid}/stderr",
            "getStderr",
            "The standard error so far.",
            answer(200, PLAIN, "Text"),
            || get(processes::stderr),
        )
    },
    Operation {
        parameters: &["pid"],
        problems: &[NotFound],
        ..read(
            "/processes/{pid}/output",
            "getOutput",
            "The output so far.",
            answer(200, JSON, "Output"),
            || get(processes::output),
        )
    },
    Operation {
        parameters: &["pid", "after", "Last-Event-ID"],
        problems: &[NotFound],
        ..read(
            "/processes/{pid}/events",
            "streamProcess",
            "The events of a process: `state`, `stdout`, `stderr`, `output`, and `exit`, which ends the stream.",
            answer(200, EVENT_STREAM, "Events"),
            || get(events::of_process),
        )
    },
    Operation {
        method: "post",
        parameters: &["pid"],
        body: Some("Run"),
        problems: &[NotFound, NotIdle, HasResults, QueueFull, ShuttingDown],
        ..read(
            "/processes/{pid}/run",
            "runProcess",
            "Queues an idle process. With `force`, its results are cleared.",
            answer(200, JSON, "Process"),
            || post(processes::run),
        )
    },
    Operation {
        method: "post",
        parameters: &["pid"],
        body: Some("Kill"),
        problems: &[NotFound, AlreadyIdle],
        ..read(
            "/processes/{pid}/kill",
            "killProcess",
            "Kills a process; the record is that right after the request.",
            answer(200, JSON, "Process"),
            || post(processes::kill),
        )
    },
    Operation {
        parameters: &["after", "Last-Event-ID"],
        ..read(
            "/events",
            "streamProcesses",
            "A `process` event, with the record, for each change of a process.",
            answer(200, EVENT_STREAM, "Events"),
            || get(events::of_all),
        )
    },
    read(
        "/tools",
        "listTools",
        "The tools that code may call.",
        answer(200, JSON, "ToolList"),
        || get(tools::list),
    ),
    read(
        "/tools.d.ts",
        "getToolTypes",
        "The declarations of all tools in TypeScript.",
        answer(200, PLAIN, "Text"),
        || get(tools::types),
    ),
    Operation {
        parameters: &["service", "tool"],
        problems: &[NotFound],
        ..read(
            "/tools/{service}/{tool}/docs",
            "getToolDocs",
            "The description of a tool.",
            answer(200, MARKDOWN, "Text"),
            || get(tools::docs),
        )
    },
    Operation {
        problems: &[NotFound],
        ..read(
            "/environment/docs",
            "getEnvironmentDocs",
            "The description of the environment.",
            answer(200, MARKDOWN, "Text"),
            || get(tools::environment),
        )
    },
    Operation {
        problems: &[ShuttingDown],
        ..read(
            "/healthz",
            "getHealth",
            "Whether the service takes new work.",
            answer(200, JSON, "Health"),
            || get(about::health),
        )
    },
    read(
        "/metrics",
        "getMetrics",
        "Counts, in the text format of Prometheus.",
        answer(200, METRICS, "Text"),
        || get(about::metrics),
    ),
    read("/openapi.json", "getDocument", "This document.", answer(200, JSON, "Document"), || {
        get(about::openapi)
    }),
    read(
        "/",
        "getPage",
        "A page that shows processes, and can kill them.",
        answer(200, HTML, "Text"),
        || get(about::index),
    ),
];

/// The routes of all operations, and the problems of requests that have none.
pub(crate) fn routes() -> Router<SharedApp> {
    let add = |routes: Router<SharedApp>, operation: &Operation| {
        routes.route(operation.path, (operation.handler)())
    };
    OPERATIONS
        .iter()
        .fold(Router::new(), add)
        .fallback(|uri: Uri| async move {
            let path: String = uri.path().chars().take(100).collect();
            Problem::not_found(format!("there is nothing at '{path}'"))
        })
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            let path: String = uri.path().chars().take(100).collect();
            let detail = format!("'{path}' has no {method}");
            Problem::new(ProblemType::MethodNotAllowed, detail)
        })
}
