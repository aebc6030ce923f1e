//! Options of executors of programs, whose types JavaScript has checked.
//!
//! In: the options that are given. Out: executors, or the option that is out of range.

use std::{path::PathBuf, time::Duration};

use isolane::{Error, ErrorKind};
use isolane_executors::{
    CodeExecutor as _, ConfinedCodeExecutor, ContainerCodeExecutor, LocalCodeExecutor,
};
use napi_derive::napi;

/// The options of all executors of programs. One that is not given has its default.
#[napi(object, object_to_js = false)]
pub struct ProgramOptions {
    pub interpreter: Option<String>,
    pub args: Option<Vec<String>>,
    pub timeout_ms: Option<f64>,
    /// Whether there is no limit of time.
    pub without_timeout: Option<bool>,
    pub retry_attempts: Option<f64>,
    /// Pairs of a name and a value.
    pub env: Option<Vec<Vec<String>>>,
    pub inherit_env: Option<bool>,
    pub output_limit_bytes: Option<f64>,
    pub image: Option<String>,
    pub argv: Option<Vec<String>>,
    pub memory: Option<String>,
    pub cpus: Option<String>,
    pub pids_limit: Option<f64>,
    pub user: Option<String>,
    pub drop_capabilities: Option<bool>,
    pub extra_args: Option<Vec<String>>,
    pub engine: Option<String>,
    pub output_files: Option<bool>,
    pub readable: Option<Vec<String>>,
    pub required: Option<Vec<String>>,
}

impl ProgramOptions {
    pub(super) fn local(self) -> Result<LocalCodeExecutor, Error> {
        let mut executor = LocalCodeExecutor::new();
        executor = match self.timeout(executor.timeout())? {
            None => executor.without_timeout(),
            Some(timeout) => executor.with_timeout(timeout),
        };
        if let Some(attempts) = count("retryAttempts", self.retry_attempts, 0)? {
            executor = executor.with_retry_attempts(attempts);
        }
        if let Some(bytes) = count("outputLimitBytes", self.output_limit_bytes, 1)? {
            executor = executor.with_output_limit(bytes_of(bytes));
        }
        if let Some(interpreter) = self.interpreter {
            executor = executor.with_interpreter(interpreter);
        }
        if let Some(args) = self.args {
            executor = executor.with_args(args);
        }
        for (name, value) in pairs(self.env) {
            executor = executor.with_env(name, value);
        }
        if self.inherit_env == Some(true) {
            executor = executor.with_inherited_env();
        }
        Ok(executor)
    }

    pub(super) fn container(self) -> Result<ContainerCodeExecutor, Error> {
        let mut executor = ContainerCodeExecutor::default();
        executor.timeout = self.timeout(executor.timeout)?;
        if let Some(attempts) = count("retryAttempts", self.retry_attempts, 0)? {
            executor.retry_attempts = attempts;
        }
        if let Some(pids) = count("pidsLimit", self.pids_limit, 1)? {
            executor.pids_limit = pids;
        }
        if let Some(bytes) = count("outputLimitBytes", self.output_limit_bytes, 1)? {
            executor.output_limit_bytes = bytes_of(bytes);
        }
        set(&mut executor.image, self.image);
        set(&mut executor.argv, self.argv);
        set(&mut executor.memory, self.memory);
        set(&mut executor.cpus, self.cpus);
        set(&mut executor.user, self.user);
        set(&mut executor.drop_capabilities, self.drop_capabilities);
        set(&mut executor.extra_args, self.extra_args);
        set(&mut executor.output_files, self.output_files);
        executor.engine = self.engine;
        Ok(executor)
    }

    pub(super) fn confined(self, worker: PathBuf) -> Result<ConfinedCodeExecutor, Error> {
        let mut executor = ConfinedCodeExecutor::new().with_worker(worker);
        executor = match self.timeout(executor.timeout())? {
            None => executor.without_timeout(),
            Some(timeout) => executor.with_timeout(timeout),
        };
        if let Some(attempts) = count("retryAttempts", self.retry_attempts, 0)? {
            executor = executor.with_retry_attempts(attempts);
        }
        if let Some(pids) = count("pidsLimit", self.pids_limit, 1)? {
            executor = executor.with_pids_limit(pids);
        }
        if let Some(bytes) = count("outputLimitBytes", self.output_limit_bytes, 1)? {
            executor = executor.with_output_limit(bytes_of(bytes));
        }
        if let Some(interpreter) = self.interpreter {
            executor = executor.with_interpreter(interpreter);
        }
        if let Some(args) = self.args {
            executor = executor.with_args(args);
        }
        if let Some(memory) = self.memory {
            executor = executor.with_memory(memory);
        }
        for (name, value) in pairs(self.env) {
            executor = executor.with_env(name, value);
        }
        for path in self.readable.unwrap_or_default() {
            executor = executor.with_readable(path);
        }
        if let Some(required) = self.required {
            executor = executor.with_required(required);
        }
        Ok(executor)
    }

    fn timeout(&self, default: Option<Duration>) -> Result<Option<Duration>, Error> {
        match self.timeout_ms {
            _ if self.without_timeout == Some(true) => Ok(None),
            Some(ms) => duration("timeoutMs", ms).map(Some),
            None => Ok(default),
        }
    }
}

/// A time in milliseconds.
pub(super) fn duration(name: &str, ms: f64) -> Result<Duration, Error> {
    let time = Duration::try_from_secs_f64(ms / 1e3);
    match time {
        Ok(time) if !time.is_zero() => Ok(time),
        Err(_) if ms.is_finite() && ms > 0.0 => {
            Err(range(format!("{name} is too long a time: {ms:e} milliseconds")))
        }
        _ => {
            let got = shown(ms);
            Err(range(format!("{name} must be a positive number of milliseconds, got {got}")))
        }
    }
}

/// The largest whole number of JavaScript.
const MOST_COUNT: f64 = 9_007_199_254_740_991.0;

/// A whole number.
pub(super) fn count(name: &str, given: Option<f64>, least: u32) -> Result<Option<u32>, Error> {
    let Some(number) = given else { return Ok(None) };
    if number.fract() != 0.0 || !(f64::from(least)..=MOST_COUNT).contains(&number) {
        let got = shown(number);
        let message = if number > MOST_COUNT && number.is_finite() {
            format!("{name} must be a whole number below 2^53, got {got}")
        } else {
            format!("{name} must be a whole number of at least {least}, got {got}")
        };
        return Err(range(message));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    Ok(Some(number as u32))
}

/// A number as JavaScript shows it.
fn shown(number: f64) -> String {
    match number.to_string().as_str() {
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        other => other.to_owned(),
    }
}

fn bytes_of(count: u32) -> usize {
    count as usize
}

fn range(message: String) -> Error {
    Error::new(ErrorKind::Range, message)
}

fn set<T>(place: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *place = given;
    }
}

fn pairs(given: Option<Vec<Vec<String>>>) -> impl Iterator<Item = (String, String)> {
    let pair = |pair: Vec<String>| <[String; 2]>::try_from(pair).ok().map(<(String, String)>::from);
    given.unwrap_or_default().into_iter().filter_map(pair)
}
