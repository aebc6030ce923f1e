//! Executors of programs for faces: subprocesses, containers, confined subprocesses.
//!
//! In: options and inputs. Out: calls: `execute`, `prepare` and `confinement`, which a caller may end, and answers: the
//! `traits` that the loop asks for, and the arguments of a container's engine.

use std::{
    path::Path,
    sync::Arc,
    task::{Poll, Waker},
};

use isolane::{Caller, Completion, Error, ErrorKind, Spelling, Value, value::Writer};
use isolane_confine::program::launcher_in;
use isolane_door::{Called, Context, Given, System, no_method};

use super::{
    data::{completion, context, input, length, result_message},
    options::Options,
};
use crate::{
    CodeExecutionInput, CodeExecutor, ConfinedCodeExecutor, ContainerCodeExecutor, ExecutorError,
    ExecutorErrorKind, InvocationContext, LocalCodeExecutor, ProgramConfinement,
};

/// Opens the executor with that name, such as `local-executor`.
///
/// # Errors
/// Misuse of an option.
pub fn open(name: &str, options: &Given, context: Context) -> Result<Arc<dyn System>, Error> {
    let Context { spelling, worker_folder, .. } = context;
    let kind = match name {
        "local-executor" => Kind::Local(Options::read(options, LOCAL, spelling)?.local()?),
        "container-executor" => {
            Kind::Container(Box::new(Options::read(options, CONTAINER, spelling)?.container()?))
        }
        _ => {
            let options = Options::read(options, CONFINED, spelling)?;
            Kind::Confined(options.confined(launcher_in(&worker_folder))?)
        }
    };
    let program = Program { executor: kind.executor(), kind, spelling };
    program.check()?;
    Ok(Arc::new(program))
}

const LOCAL: &[&str] = &[
    "interpreter",
    "args",
    "env",
    "inherit_env",
    "retry_attempts",
    "output_limit_bytes",
    "timeout_ms",
];
const CONFINED: &[&str] = &[
    "interpreter",
    "args",
    "env",
    "memory",
    "pids_limit",
    "readable",
    "required",
    "retry_attempts",
    "output_limit_bytes",
    "timeout_ms",
];
const CONTAINER: &[&str] = &[
    "image",
    "argv",
    "memory",
    "cpus",
    "pids_limit",
    "user",
    "drop_capabilities",
    "extra_args",
    "engine",
    "output_files",
    "retry_attempts",
    "output_limit_bytes",
    "timeout_ms",
];

struct Program {
    kind: Kind,
    executor: Arc<dyn CodeExecutor>,
    spelling: Spelling,
}

enum Kind {
    Local(LocalCodeExecutor),
    Container(Box<ContainerCodeExecutor>),
    Confined(ConfinedCodeExecutor),
}

impl Kind {
    fn executor(&self) -> Arc<dyn CodeExecutor> {
        match self {
            Self::Local(executor) => Arc::new(executor.clone()),
            Self::Container(executor) => Arc::new((**executor).clone()),
            Self::Confined(executor) => Arc::new(executor.clone()),
        }
    }
}

impl Program {
    /// # Errors
    /// An option that the executor refuses.
    fn check(&self) -> Result<(), Error> {
        // A call that is cancelled before it begins checks the options, and does nothing.
        let context = InvocationContext::default();
        context.cancellation.cancel();
        let mut call = self.executor.execute_code(&context, CodeExecutionInput::default());
        match call.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) if error.kind() == ExecutorErrorKind::BadInput => {
                Err(Error::new(ErrorKind::Range, error.message()))
            }
            _ => Ok(()),
        }
    }
}

impl System for Program {
    fn call(&self, method: &str, args: Vec<Given>, caller: &Caller) -> Result<Called, Error> {
        match (method, &self.kind) {
            ("execute", _) => Ok(Called::new(execution(Arc::clone(&self.executor), args, caller))),
            ("prepare", Kind::Container(executor)) => {
                let executor = executor.clone();
                let prepared = async move { executor.prepare().await.map(|()| Value::undefined()) };
                Ok(until_terminated(caller, prepared))
            }
            ("confinement", Kind::Confined(executor)) => {
                let (executor, spelling) = (executor.clone(), self.spelling);
                let had = async move {
                    executor.confinement().await.map(|had| confinement(&had, spelling))
                };
                Ok(until_terminated(caller, had))
            }
            _ => Err(no_method(method)),
        }
    }

    fn ask(&self, method: &str, args: Vec<Given>) -> Result<Value, Error> {
        match (method, &self.kind) {
            ("traits", _) => Ok(traits(&*self.executor)),
            ("build_run_args", Kind::Container(executor)) => {
                let options = Options::of_call(self.spelling);
                let mut args = args.into_iter();
                let name = options.text("name", &args.next().unwrap_or_default())?;
                let built = match args.next() {
                    None => executor.build_run_args(&name),
                    Some(folder) => {
                        let folder = options.text("folder", &folder)?;
                        executor.build_run_args_staged(&name, Path::new(&folder))
                    }
                };
                Value::serialize(&built)
            }
            _ => Err(no_method(method)),
        }
    }

    fn tells_torn(&self) -> bool {
        true
    }
}

/// A call of an executor, with its context and its input.
pub(super) fn execution(
    executor: Arc<dyn CodeExecutor>,
    args: Vec<Given>,
    caller: &Caller,
) -> impl Future<Output = Completion> + Send + use<> {
    let mut args = args.into_iter();
    let mut next = || args.next().unwrap_or_default();
    let (context, live) = context(&next(), caller);
    let input = input(next());
    let (cancellation, terminated) = (context.cancellation.clone(), caller.terminated());
    async move {
        let call = async { executor.execute_code(&context, input?).await.map(result_message) };
        let ended = async {
            tokio::pin!(call);
            let Some(live) = &live else { return completion(call.await) };
            let delivered = live.deliver();
            tokio::pin!(delivered);
            tokio::select! {
                ended = &mut call => {
                    live.close();
                    delivered.await?;
                    completion(ended)
                }
                delivered = &mut delivered => {
                    // A receiver has thrown, and the program ends with the call.
                    cancellation.cancel();
                    let ended = call.await;
                    delivered?;
                    completion(ended)
                }
            }
        };
        tokio::pin!(ended);
        tokio::select! {
            ended = &mut ended => ended,
            _ = terminated => {
                cancellation.cancel();
                ended.await
            }
        }
    }
}

/// A call that is over at once when its caller ends it.
fn until_terminated(
    caller: &Caller,
    call: impl Future<Output = Result<Value, ExecutorError>> + Send + 'static,
) -> Called {
    let terminated = caller.terminated();
    Called::new(async move {
        tokio::select! {
            ended = call => completion(ended),
            _ = terminated => completion(Err(ExecutorError::cancelled())),
        }
    })
}

/// Whether an executor is stateful, its attempts, its time in milliseconds, whether it keeps that time itself, and its
/// delimiters.
pub(super) fn traits(executor: &dyn CodeExecutor) -> Value {
    let mut writer = Writer::new();
    writer.array(5);
    writer.bool(executor.stateful());
    writer.number(executor.error_retry_attempts().into());
    match executor.timeout() {
        Some(timeout) => writer.number(timeout.as_secs_f64() * 1e3),
        None => writer.null(),
    }
    writer.bool(executor.keeps_time());
    let delimiters = executor.code_block_delimiters();
    writer.array(length(delimiters.len()));
    for (opening, closing) in delimiters {
        writer.array(2);
        writer.string(&opening);
        writer.string(&closing);
    }
    writer.finish()
}

/// The confinement that programs have, by the names of the caller's language.
fn confinement(had: &ProgramConfinement, spelling: Spelling) -> Value {
    let mut writer = Writer::new();
    writer.object();
    for (name, item) in had.items.items() {
        writer.key(&super::options::spelled(name, spelling));
        writer.bool(item);
    }
    writer.key("memory");
    writer.string(had.memory.as_str());
    writer.end_object();
    writer.finish()
}
