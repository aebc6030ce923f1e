//! `isolane serve`: a process service over HTTP, until a signal.
//!
//! In: flags, and a file of options and tools. Out: the address of the server on stdout once it listens, the file of the
//! database and lines about failures on stderr, and the exit code of the signal.

mod arguments;
mod config;
mod database;

use std::{path::Path, sync::Arc};

use isolane_environment::{
    ProcessService, ProcessServiceOptions, TypeScriptEnvironment, TypeScriptEnvironmentOptions,
};
use isolane_http::{ListenOptions, RateLimit, Server};

pub(crate) use self::arguments::ServeArguments;
use self::config::Config;
use crate::{
    code::{Given, Installation},
    exit::Ended,
    remote::Remote,
    signals::Signals,
    sources, streams,
};

/// The variable with the token, unless a file is named.
const TOKEN_VARIABLE: &str = "ISOLANE_TOKEN";

pub(crate) async fn serve(
    arguments: ServeArguments,
    installation: &Installation,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let reading = move || {
        let mut config = match arguments.config.as_deref() {
            Some(file) => Config::read(file)?,
            None => Config::none(),
        };
        let given = std::mem::take(&mut config.given).with(&arguments.given)?;
        let listen = listen_options(&arguments, &config)?;
        config.service.database = database::file(arguments.database.as_deref(), &config)?;
        Ok((arguments, given, listen, config))
    };
    let (arguments, given, listen, config) = signals.during(reading).await?;
    let remote = match &config.tools {
        Some(tools) => Some(Remote::open(tools, None, signals).await?),
        None => None,
    };
    let database = config.service.database.clone();
    let installation = installation.clone();
    let tools = remote.as_ref().map(|remote| remote.tools.tools()).unwrap_or_default();
    // A large database and many schemas take long.
    let opening = move || {
        let service = open(&arguments, given, &installation, config)?;
        service.add_tools(tools)?;
        Ok(service)
    };
    let ended = match signals.during(opening).await {
        Ok(service) => offer(service, listen, database.as_deref(), signals).await,
        Err(ended) => Err(ended),
    };
    if let Some(remote) = remote {
        remote.end().await;
    }
    ended
}

/// Offers a service, until a signal.
async fn offer(
    service: ProcessService,
    listen: ListenOptions,
    database: Option<&Path>,
    signals: &mut Signals,
) -> Result<u8, Ended> {
    let server = match Server::listen(service.clone(), listen).await {
        Ok(server) => server,
        Err(error) => {
            service.shutdown().await;
            return Err(error.into());
        }
    };
    database::tell(database);
    // A service whose address nobody reads is of use all the same.
    let _ = streams::out(server.url());
    let (code, _) = signals.next().await;
    tokio::select! {
        // The service refuses new work at once, while its clients read the ends of their processes.
        () = async { service.shutdown().await; server.close().await } => {}
        // A second signal is for those who do not want to wait.
        _ = signals.next() => {}
    }
    Ok(code)
}

fn open(
    arguments: &ServeArguments,
    given: Given,
    installation: &Installation,
    config: Config,
) -> Result<ProcessService, Ended> {
    let defaults = config.service;
    let concurrency = arguments.concurrency.unwrap_or(defaults.concurrency);
    let environment = TypeScriptEnvironment::new(TypeScriptEnvironmentOptions {
        isolation: Some(arguments.isolation.unwrap_or(config.isolation).into()),
        concurrency: Some(concurrency),
        memory_limit_bytes: arguments.given.memory.or(config.memory_limit_bytes),
        globals: given.globals,
        imports: given.imports,
        modules: given.modules,
        worker_folder: installation.worker_folder.clone(),
        ..TypeScriptEnvironmentOptions::default()
    })?;
    Ok(ProcessService::new(ProcessServiceOptions {
        environment: Some(Arc::new(environment)),
        concurrency,
        max_queued: arguments.max_queued.unwrap_or(defaults.max_queued),
        default_timeout_ms: arguments.timeout.map_or(defaults.default_timeout_ms, |limit| limit.0),
        max_timeout_ms: arguments.max_timeout.unwrap_or(defaults.max_timeout_ms),
        kill_grace_ms: arguments.kill_grace.unwrap_or(defaults.kill_grace_ms),
        backstop_ms: arguments.backstop.map_or(defaults.backstop_ms, |limit| limit.0),
        max_stream_bytes: size(arguments.max_stream).unwrap_or(defaults.max_stream_bytes),
        max_output_bytes: size(arguments.max_output).unwrap_or(defaults.max_output_bytes),
        retain_count: arguments.retain_count.unwrap_or(defaults.retain_count),
        retain_ms: arguments.retain.unwrap_or(defaults.retain_ms),
        ..defaults
    })?)
}

fn listen_options(arguments: &ServeArguments, config: &Config) -> Result<ListenOptions, Ended> {
    let defaults = config.listen.clone();
    let token = match &arguments.token_file {
        Some(file) => Some(sources::read(file)?.trim_end_matches(['\r', '\n']).to_owned()),
        None => match std::env::var(TOKEN_VARIABLE) {
            Ok(token) => Some(token),
            Err(std::env::VarError::NotPresent) => None,
            Err(error) => return Err(Ended::misuse(format!("{TOKEN_VARIABLE}: {error}"))),
        },
    };
    let limit = defaults.rate_limit.unwrap_or_default();
    let is_given = arguments.rate.is_some() || arguments.burst.is_some();
    let is_limited = !arguments.no_rate_limit && (is_given || defaults.rate_limit.is_some());
    let rate_limit = is_limited.then(|| RateLimit {
        per_second: arguments.rate.unwrap_or(limit.per_second),
        burst: arguments.burst.unwrap_or(limit.burst),
    });
    Ok(ListenOptions {
        host: arguments.host.clone().unwrap_or_else(|| defaults.host.clone()),
        port: arguments.port.unwrap_or(defaults.port),
        token,
        max_body_bytes: size(arguments.max_body).unwrap_or(defaults.max_body_bytes),
        rate_limit,
        ..defaults
    })
}

/// A number of bytes; one that this machine cannot count is out of range, which the options say.
fn size(bytes: Option<u64>) -> Option<usize> {
    bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
}
