//! The kit's part of a request.
//!
//! In: a request that a binding has made of its caller's options. Out: the same with the kit's functions, names and
//! limits, and with an interceptor that keeps secrets in. A binding starts it as any other, on [`Kit::runtime`], with its
//! own host; its handle on the run gives reports and a result without secrets.

use std::sync::Arc;

use isolane::{
    Error, ErrorKind, ExtensionRequest, Interception, Request, RunInterceptor, SessionInterceptor,
    SessionRequest, Shape, UpdateRequest, Value,
    value::{Malformed, Writer},
};
use isolane_kit_realm::EXTENSION;

use super::{
    Inner, Kit,
    options::TimerLimits,
    run::{Kind, KitRun, RunState},
    session::SessionState,
};
use crate::message_copy::Copy;

/// How deep libraries nest in the realm's image.
const DEFAULT_DEPTH: u64 = 10;

/// The label of a tool without one of its own.
const TOOL: &str = "<tool>";

/// The names that all runs have.
const UTILITIES: [&str; 7] =
    ["setTimeout", "setInterval", "clearTimeout", "clearInterval", "atob", "btoa", "parseCSV"];

impl Kit {
    /// The request of a tool. The binding has handed over the tool's arguments as the only argument of the run, or none:
    /// they become the global `args`.
    ///
    /// # Errors
    /// Misuse: `args` that is no plain object, a global with a name of the kit. A kit that is closed.
    pub fn tool(&self, mut request: Request) -> Result<(Request, KitRun), Error> {
        if !request.imports.is_empty() {
            return Err(misuse("a tool has no imports"));
        }
        let has_args = argument_count(&request)? > 0;
        let name = "args".to_owned();
        if has_args && request.globals.contains(&name) {
            return Err(misuse("globals.args: this name is taken already"));
        }
        request.filename.get_or_insert_with(|| TOOL.to_owned());
        request.shape = Shape::Body;
        let (mut request, run) = self.amend(request, Kind::Tool, has_args)?;
        if has_args {
            request.globals.push(name);
        }
        Ok((request, run))
    }

    /// The request of a module.
    ///
    /// # Errors
    /// Misuse: a global with a name of the kit. A kit that is closed.
    pub fn code(&self, request: Request) -> Result<(Request, KitRun), Error> {
        self.amend(request, Kind::Code, false)
    }

    /// The request of a session. Its cells are intercepted as they come: [`KitRun::of`] has the state of one.
    ///
    /// # Errors
    /// As [`Kit::code`].
    pub fn session_request(&self, mut request: SessionRequest) -> Result<SessionRequest, Error> {
        let inner = &self.inner;
        inner.open()?;
        check_globals(&inner.code_names.properties, &request.globals)?;
        let (inputs, blobs) = std::mem::take(&mut request.inputs).into_parts();
        let input = |writer: &mut Writer| inner.write_input(writer, true);
        request.inputs = with_input(&inputs, blobs, input, false).map_err(|_| malformed())?;
        request.native.extend(&inner.functions);
        request.memory_limit_bytes.get_or_insert(number(inner.options.memory_limit_bytes));
        let ExtensionRequest { names, properties } = &*inner.code_names;
        let session = SessionState::new(inner, names.iter().chain(properties).cloned().collect());
        request.interceptor = Some(Arc::new(session) as Arc<dyn SessionInterceptor>);
        request.extension = Some(Arc::clone(&inner.code_names));
        Ok(request)
    }

    fn amend(
        &self,
        mut request: Request,
        kind: Kind,
        has_args: bool,
    ) -> Result<(Request, KitRun), Error> {
        let inner = &self.inner;
        inner.open()?;
        check_globals(&inner.code_names.properties, &request.globals)?;
        let (inputs, blobs) = std::mem::take(&mut request.inputs).into_parts();
        let input = |writer: &mut Writer| inner.write_input(writer, false);
        request.inputs = with_input(&inputs, blobs, input, has_args).map_err(|_| malformed())?;
        request.native.extend(&inner.functions);
        let options = &inner.options;
        let timeout_ms = *request.timeout_ms.get_or_insert(number(options.timeout_ms));
        request.memory_limit_bytes.get_or_insert(number(options.memory_limit_bytes));
        let run = RunState::new(inner, kind, inner.run_fetch(), timeout_ms);
        let interceptor = Arc::clone(&run) as Arc<dyn RunInterceptor>;
        request.interception = Some(Interception::new(interceptor));
        let names = if kind == Kind::Tool { &inner.tool_names } else { &inner.code_names };
        request.extension = Some(Arc::clone(names));
        Ok((request, KitRun(run)))
    }
}

impl Inner {
    /// The names that code of that kind sees of the kit.
    pub(super) fn names(&self, kind: Kind) -> ExtensionRequest {
        let given = [
            ("fetch", self.fetcher.is_some()),
            ("state", self.state.is_some()),
            ("db", self.db.is_some()),
            ("require", self.libraries.is_some()),
            ("browser", self.page.is_some()),
            ("secrets", self.options.secrets.is_some()),
            ("resolve", kind == Kind::Tool),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        let web: &[&str] = if self.options.web { EXTENSION.properties } else { &[] };
        ExtensionRequest {
            names: UTILITIES.into_iter().chain(given).map(str::to_owned).collect(),
            properties: web.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// Writes the value that the extension is opened with: `undefined` for a run that needs nothing beside its image.
    fn write_input(&self, out: &mut Writer, is_session: bool) {
        let options = &self.options;
        let depth = options.libraries.map_or(DEFAULT_DEPTH, |libraries| libraries.max_depth);
        let is_default = options.timers == TimerLimits::default() && depth == DEFAULT_DEPTH;
        if is_default && !is_session && options.secrets.is_none() {
            return out.undefined();
        }
        out.object();
        let numbers = [
            ("maxDelayMs", options.timers.max_delay_ms),
            ("maxPending", options.timers.max_pending),
            ("maxDepth", depth),
        ];
        for (name, limit) in numbers {
            out.key(name);
            out.number(number(limit));
        }
        out.key("isSession");
        out.bool(is_session);
        if options.secrets.is_some() {
            out.key("secrets");
            out.object();
            for (name, text) in self.secrets.seen() {
                out.key(&name);
                out.string(&text);
            }
            out.end_object();
        }
        out.end_object();
    }
}

/// The inputs of a request after another one. `has_args`: the only argument of the run becomes an input itself.
fn with_input(
    nodes: &[u8],
    blobs: Vec<Vec<u8>>,
    input: impl FnOnce(&mut Writer),
    has_args: bool,
) -> Result<Value, Malformed> {
    let mut copy = Copy::new(nodes, blobs);
    let count = copy.enter()?;
    let mut writer = Writer::new();
    writer.array(count + 1 + u32::from(has_args));
    input(&mut writer);
    for _ in 0..count.saturating_sub(u32::from(has_args)) {
        copy.node(&mut writer)?;
    }
    if has_args {
        copy.enter()?;
        copy.node(&mut writer)?;
        writer.array(0);
    }
    Ok(writer.finish())
}

/// How many arguments a tool's request has: one at most, a plain object.
fn argument_count(request: &Request) -> Result<u32, Error> {
    let mut copy = Copy::new(request.inputs.nodes(), Vec::new());
    let mut skip = || -> Result<(u32, Option<bool>), Malformed> {
        let inputs = copy.enter()?;
        if inputs > 1 {
            // The globals come first.
            copy = Copy::new(request.inputs.nodes(), request.inputs.blobs().to_vec());
            copy.enter()?;
        }
        let mut skipped = Writer::new();
        for _ in 0..inputs.saturating_sub(1) {
            copy.node(&mut skipped)?;
        }
        let count = copy.enter()?;
        let is_object = if count == 0 { None } else { Some(copy.next_is_object()?) };
        Ok((count, is_object))
    };
    match skip().map_err(|_| malformed())? {
        (0, _) => Ok(0),
        (1, Some(true)) => Ok(1),
        _ => Err(misuse("args must be a plain object")),
    }
}

/// Refuses names of the kit among those of an update.
pub(super) fn check_update(names: &[String], update: &UpdateRequest) -> Result<(), Error> {
    check_globals(names, &update.globals)?;
    check_globals(names, &update.removed_globals)
}

/// Refuses names of the kit among the caller's. The core itself refuses those that are globals of a run.
fn check_globals(names: &[String], globals: &[String]) -> Result<(), Error> {
    match globals.iter().find(|name| names.contains(name)) {
        Some(name) => Err(misuse(format!("globals.{name}: this name is taken already"))),
        None => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "limits are safe integers")]
pub(super) fn number(limit: u64) -> f64 {
    limit as f64
}

fn misuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Type, message)
}

fn malformed() -> Error {
    Error::new(ErrorKind::Internal, "the inputs are no message")
}
