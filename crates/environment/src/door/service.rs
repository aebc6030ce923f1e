//! The system `process-service`: a service that other languages hold.
//!
//! In: its methods, with the fields of HTTP; calls of the bindings of environments in the caller's language. Out: their
//! answers. A problem rejects as `{ code, message }`.

use std::{sync::Arc, time::Duration};

use isolane::{Caller, Error, Spelling, Value};
use isolane_door::{Called, Context, Given, System, no_method};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{
    Args, ENVIRONMENTS, SERVICES,
    bindings::AllBindings,
    foreign::ForeignEnvironment,
    given::{Options, lenient_json, size, whole},
    readers::{Reader, Readers},
    thrown::{answer, message},
    tool::ForeignTool,
    type_error,
};
use crate::{
    Environment, ListQuery, NewProcess, ProcessError, ProcessService, ProcessServiceOptions,
    RunQuery,
};

/// The option of another language alone: its own environment.
const ENVIRONMENT: &str = "environment";

pub(super) struct ServiceSystem {
    service: ProcessService,
    number: u64,
    max_timeout_ms: u64,
    spelling: Spelling,
    bindings: Arc<AllBindings>,
    readers: Arc<Readers>,
    /// Cancelled when the system is dropped.
    closed: CancellationToken,
}

impl ServiceSystem {
    pub(super) fn open(options: &Given, context: &Context) -> Result<Self, Error> {
        let spelling = context.spelling;
        let names = [&[ENVIRONMENT], ProcessServiceOptions::NAMES].concat();
        let given = Options::new(options, &names, spelling)?;
        let bindings = Arc::new(AllBindings::default());
        let environment = environment(given.get(ENVIRONMENT).1, &bindings)?;
        let options = ProcessServiceOptions { environment, ..read(&given, spelling)? };
        let max_timeout_ms = options.max_timeout_ms;
        let service = ProcessService::new(options)?;
        let number = SERVICES.add(service.downgrade());
        let (readers, closed) = (Arc::default(), CancellationToken::new());
        Ok(Self { service, number, max_timeout_ms, spelling, bindings, readers, closed })
    }

    /// Registers a tool, which lasts until it is taken away with the system.
    fn tool(&self, args: Vec<Given>) -> Result<Called, Error> {
        let ForeignTool { service, name, description, handler } = ForeignTool::read(args)?;
        self.service.tool(&service, &name, description, handler)?;
        let closed = self.closed.clone();
        Ok(Called::background(async move {
            closed.cancelled().await;
            Ok(Value::undefined())
        }))
    }

    fn events(&self, mut args: Args) -> Result<Called, Error> {
        let pid = match args.next() {
            given if given.is_absent() => None,
            given => whole("pid", &given)?,
        };
        let after = whole("after", &args.next())?;
        let (service, readers) = (self.service.clone(), Arc::clone(&self.readers));
        Ok(Called::new(async move {
            let Some(pid) = pid else {
                let reader = Reader::All { last: after, events: service.all_events(after) };
                return Ok(message(&readers.add(reader)));
            };
            let last = after.unwrap_or_default();
            let events = service.events(pid, last).await;
            let reader = events.map(|events| readers.add(Reader::One { pid, last, events }));
            answer(reader)
        }))
    }
}

/// Reads all options that are values.
pub(super) fn read(
    given: &Options<'_>,
    spelling: Spelling,
) -> Result<ProcessServiceOptions, Error> {
    let defaults = ProcessServiceOptions::default();
    Ok(ProcessServiceOptions {
        concurrency: given.whole("concurrency")?.map_or(defaults.concurrency, size),
        max_queued: given.whole("max_queued")?.map_or(defaults.max_queued, size),
        default_timeout_ms: given.nullable("default_timeout_ms", defaults.default_timeout_ms)?,
        max_timeout_ms: given.whole("max_timeout_ms")?.unwrap_or(defaults.max_timeout_ms),
        kill_grace_ms: given.whole("kill_grace_ms")?.unwrap_or(defaults.kill_grace_ms),
        backstop_ms: given.nullable("backstop_ms", defaults.backstop_ms)?,
        max_stream_bytes: given.whole("max_stream_bytes")?.map_or(defaults.max_stream_bytes, size),
        max_output_bytes: given.whole("max_output_bytes")?.map_or(defaults.max_output_bytes, size),
        retain_count: given.whole("retain_count")?.map_or(defaults.retain_count, size),
        retain_ms: given.whole("retain_ms")?.unwrap_or(defaults.retain_ms),
        database: given.text("database")?.map(Into::into),
        spelling,
        ..defaults
    })
}

impl Drop for ServiceSystem {
    fn drop(&mut self) {
        self.closed.cancel();
        SERVICES.remove(self.number);
        self.service.abandon();
    }
}

impl System for ServiceSystem {
    fn call(&self, method: &str, args: Vec<Given>, _caller: &Caller) -> Result<Called, Error> {
        match method {
            "tool" => return self.tool(args),
            "invokeTool" => return Ok(Called::new(self.bindings.invoke_tool(args)?)),
            _ => {}
        }
        let (service, mut args) = (self.service.clone(), Args::new(args));
        Ok(match method {
            "create" => {
                let (most, spelling) = (self.max_timeout_ms, self.spelling);
                let new = json(&args.next()).and_then(|body| {
                    let new = NewProcess::from_spelled(&body, spelling)?;
                    new.check(most, spelling)?;
                    Ok(new)
                });
                settled(async move { service.create(new?).await })
            }
            "list" => {
                let given = args.next();
                let query = if given.is_absent() {
                    Ok(ListQuery::default())
                } else {
                    json(&given).and_then(|query| ListQuery::from_spelled(&query, self.spelling))
                };
                settled(async move { service.list(query?).await })
            }
            "wait" => {
                let pid = args.whole("pid")?;
                let longest = whole("the time", &args.next())?.map(Duration::from_millis);
                settled(async move { service.wait(pid, longest).await })
            }
            "run" => {
                let (pid, given) = (args.whole("pid")?, args.next());
                let query = if given.is_absent() {
                    Ok(RunQuery::default())
                } else {
                    json(&given).and_then(|query| RunQuery::from_json(Some(&query)))
                };
                settled(async move { service.run(pid, query?).await })
            }
            "events" => return self.events(args),
            "nextEvent" => {
                let (number, readers) = (args.whole("the number")?, Arc::clone(&self.readers));
                Called::new(async move { readers.next(number, service).await })
            }
            "toolDocs" => {
                let (name, tool) = (args.text("service")?, args.text("name")?);
                settled(async move { service.tool_docs(&name, &tool).await })
            }
            "environmentDocs" => settled(async move { service.environment_docs().await }),
            "shutdown" => Called::new(async move {
                service.shutdown().await;
                Ok(Value::undefined())
            }),
            "get" | "kill" | "delete" | "code" | "stdout" | "stderr" | "output" => {
                of_process(method, args.whole("pid")?, service)
            }
            _ => return Err(no_method(method)),
        })
    }

    fn ask(&self, method: &str, args: Vec<Given>) -> Result<Value, Error> {
        if let Some(answer) = self.bindings.ask(method, args.clone()) {
            return answer;
        }
        match method {
            "number" => Ok(message(&self.number)),
            "tools" => Ok(message(&*self.service.tools())),
            "toolTypes" => Ok(message(&self.service.tool_types())),
            "closeEvents" => {
                self.readers.remove(Args::new(args).whole("the number")?);
                Ok(Value::undefined())
            }
            _ => Err(no_method(method)),
        }
    }
}

/// A method whose only argument is a pid.
fn of_process(method: &str, pid: u64, service: ProcessService) -> Called {
    let method = method.to_owned();
    Called::new(async move {
        match method.as_str() {
            "get" => answer(service.get(pid).await),
            "kill" => answer(service.kill(pid).await),
            "code" => answer(service.code(pid).await),
            "stdout" => answer(service.stdout(pid).await),
            "stderr" => answer(service.stderr(pid).await),
            "output" => answer(service.output(pid).await),
            _ => answer(service.delete(pid).await).map(|_| Value::undefined()),
        }
    })
}

/// A call that settles with an answer of the service.
fn settled<T: Serialize>(
    future: impl Future<Output = Result<T, ProcessError>> + Send + 'static,
) -> Called {
    Called::new(async move { answer(future.await) })
}

fn json(given: &Given) -> Result<serde_json::Value, ProcessError> {
    lenient_json("", given).map_err(|error| ProcessError::bad_request(error.message()))
}

/// The environment that was given: one of ours by its number, or one of the caller's language.
fn environment(
    given: &Given,
    bindings: &Arc<AllBindings>,
) -> Result<Option<Arc<dyn Environment>>, Error> {
    if given.is_absent() {
        return Ok(None);
    }
    if let Given::Number(_) = given {
        let number = whole("environment", given)?.unwrap_or_default();
        let found = ENVIRONMENTS.get(number, std::sync::Weak::upgrade);
        let found = found.ok_or_else(|| type_error("the environment is closed"))?;
        return Ok(Some(found));
    }
    Ok(Some(Arc::new(ForeignEnvironment::read(given, bindings)?)))
}
