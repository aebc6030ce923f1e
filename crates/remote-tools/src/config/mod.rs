//! The configuration: servers, requests, a policy.
//!
//! In: JSON, and the variables of the environment. Out: all that is needed to reach the tools, or the first mistake with its
//! path. Nothing starts before everything is read. `json` reads the text, `object` reads fields, `variables` fills `${NAME}`,
//! `http` reads the tools over HTTP.

mod http;
mod json;
mod object;
mod variables;

use isolane::{Error, ErrorKind, unknown_name};
use isolane_environment::{Log, is_tool_name};
use reqwest::{
    Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::Value as Json;

use self::{
    json::OnceEach,
    object::{Object, misuse},
    variables::Variables,
};
use crate::{
    hidden::Hidden,
    http::HttpService,
    policy::{Decision, Names, Policy},
};

/// The most characters of the names that an error lists.
const MOST_HINT: usize = 500;

/// Headers whose values are no secrets.
const PLAIN_HEADERS: [HeaderName; 4] =
    [header::ACCEPT, header::ACCEPT_LANGUAGE, header::CONTENT_TYPE, header::USER_AGENT];

/// Variables whose values are no secrets, unless the configuration takes them from variables of ours.
const PLAIN_VARIABLES: [&str; 15] = [
    "DEBUG",
    "HOME",
    "HOST",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LOGLEVEL",
    "LOG_LEVEL",
    "NODE_ENV",
    "PATH",
    "PORT",
    "PYTHONUNBUFFERED",
    "TERM",
    "TZ",
    "USER",
];

/// The configuration, checked, with the values of all variables.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub(crate) servers: Vec<Server>,
    pub(crate) services: Vec<HttpService>,
    pub(crate) policy: Policy,
    /// The names of servers that are switched off.
    pub(crate) disabled: Vec<String>,
}

/// An MCP server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// The specifier of its tools.
    pub(crate) name: String,
    pub(crate) reach: Reach,
    pub(crate) hidden: Hidden,
}

/// The way to a server.
#[derive(Clone)]
pub(crate) enum Reach {
    /// A program, over its standard streams.
    Program { command: String, args: Vec<String>, env: Vec<(String, String)>, cwd: Option<String> },
    /// An address, over streamable HTTP.
    Address { url: Url, headers: HeaderMap },
}

/// Shows no value.
impl std::fmt::Debug for Reach {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Program { .. } => "Program",
            Self::Address { .. } => "Address",
        })
    }
}

impl Config {
    /// The fields that [`Config::from_json`] reads.
    pub const FIELDS: [&str; 3] = ["mcpServers", "tools", "policy"];

    /// Reads a configuration. `variable` gives the values of variables.
    ///
    /// # Errors
    /// No JSON; an unknown field; a wrong type; a variable that is not there. The message has the path, and no value.
    pub fn parse(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let json = Self::json(text)?;
        Object::new(String::new(), &json)?.knows(&Self::FIELDS)?;
        Self::from_json(&json, variable)
    }

    /// Reads the JSON of a configuration, in which each field of an object must be there once.
    ///
    /// # Errors
    /// No JSON; a field that is there twice.
    pub fn json(text: &str) -> Result<Json, Error> {
        // Editors of Windows begin files with a byte-order mark.
        let read = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
        read.map(|OnceEach(json)| json)
            .map_err(|error| Error::new(ErrorKind::Type, format!("no JSON: {error}")))
    }

    /// The same as [`Config::parse`] for JSON that may have other fields beside those of [`Config::FIELDS`].
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn from_json(
        json: &Json,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let root = Object::new(String::new(), json)?;
        let mut variables = Variables::new(&variable);
        let mut config = Self::default();
        if let Some(servers) = root.object("mcpServers")? {
            for server in servers.objects() {
                let (name, fields) = server?;
                let path = servers.path(name);
                config.take_name(&path, name)?;
                match server_of(name, &path, &fields, &mut variables)? {
                    Some(server) => config.servers.push(server),
                    None => config.disabled.push(name.to_owned()),
                }
            }
        }
        if let Some(services) = root.object("tools")? {
            for service in services.objects() {
                let (name, fields) = service?;
                let path = services.path(name);
                config.take_name(&path, name)?;
                config.services.push(http::service(name, &path, &fields, &mut variables)?);
            }
        }
        if let Some(policy) = root.object("policy")? {
            for entry in policy.texts() {
                let (pattern, decision) = entry?;
                let path = policy.path(pattern);
                let decision = Decision::of(decision)
                    .ok_or_else(|| misuse(&path, "must be allow, ask or deny"))?;
                config.policy.insert(pattern, decision)?;
            }
        }
        config.check_services()?;
        Ok(config)
    }

    /// Whether it has no tools at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.services.is_empty()
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let servers = self.servers.iter().map(|server| server.name.as_str());
        let services = self.services.iter().map(|service| service.name.as_str());
        servers.chain(services).chain(self.disabled.iter().map(String::as_str))
    }

    fn take_name(&self, path: &str, name: &str) -> Result<(), Error> {
        if !is_tool_name(name) {
            let letters = "ASCII letters, digits and _-./$@, at most 128 of them";
            return Err(misuse(path, &format!("the name of a service has {letters}")));
        }
        if self.names().any(|other| other == name) {
            return Err(misuse(path, "mcpServers has that name, too"));
        }
        Ok(())
    }

    /// A pattern for a service that there is not would let calls through that somebody wants to stop.
    fn check_services(&self) -> Result<(), Error> {
        let names: Vec<String> = self.names().map(str::to_owned).collect();
        for (service, _) in self.policy.services() {
            // A service's name may have a dot itself.
            let is_known = |name: &String| name.split('.').next() == Some(service);
            if !names.iter().any(is_known) {
                let hint = hint(service, &names, "there are");
                return Err(misuse("policy", &format!("there is no service '{service}'; {hint}")));
            }
        }
        Ok(())
    }

    /// Refuses a pattern for one tool that its service does not have, once all tools are known. Patterns with a `*` that
    /// match nothing are told.
    pub(crate) fn check_patterns(&self, tools: &[Names], log: &Log) -> Result<(), Error> {
        for pattern in self.policy.unmatched(tools, &self.disabled) {
            if pattern.contains('*') {
                log(&format!("policy: '{pattern}' matches no tool"));
                continue;
            }
            let service = pattern.split('.').next();
            let of_service = tools.iter().filter(|names| names.full.split('.').next() == service);
            let names: Vec<String> = of_service.map(|names| names.full.clone()).collect();
            let hint = hint(pattern, &names, "there are");
            return Err(misuse("policy", &format!("there is no tool '{pattern}'; {hint}")));
        }
        Ok(())
    }
}

/// A name that may be meant, or the names that there are.
fn hint(name: &str, names: &[String], there_are: &str) -> String {
    if names.is_empty() {
        return format!("{there_are} none");
    }
    let error = unknown_name("", name, names);
    let hint = error.message().rsplit_once("; ").map_or("", |(_, hint)| hint);
    let hint = hint.replace("valid options are", there_are);
    let shown: String = hint.chars().take(MOST_HINT).collect();
    if shown.len() < hint.len() { format!("{shown}…") } else { shown }
}

/// Reads a server; `None` if it is switched off.
fn server_of(
    name: &str,
    path: &str,
    fields: &Object<'_>,
    variables: &mut Variables<'_>,
) -> Result<Option<Server>, Error> {
    fields.knows(&["command", "args", "env", "cwd", "url", "headers", "type", "disabled"])?;
    if fields.is_true("disabled")? {
        return Ok(None);
    }
    let kind = fields.text("type")?;
    let (reach, mut secrets) = match (fields.text("command")?, fields.text("url")?) {
        (Some(command), None) => {
            if let Some(field) = ["headers"].into_iter().find(|field| fields.has(field)) {
                return Err(misuse(&fields.path(field), "a server with a command has none"));
            }
            if kind.is_some_and(|kind| kind != "stdio") {
                return Err(misuse(&fields.path("type"), "must be stdio for a command"));
            }
            let command = variables.fill(&fields.path("command"), command)?;
            let args = fields.list("args")?;
            let args = args.into_iter().map(|arg| variables.fill(&fields.path("args"), arg));
            let args = args.collect::<Result<_, _>>()?;
            let cwd = fields.text("cwd")?.map(|cwd| variables.fill(&fields.path("cwd"), cwd));
            let cwd = cwd.transpose()?;
            let env = fields.object("env")?.map(|env| env.filled(variables)).transpose()?;
            let env = env.unwrap_or_default();
            let secrets = env.iter().filter(|(name, _)| !PLAIN_VARIABLES.contains(&name.as_str()));
            let secrets = secrets.map(|(_, value)| value.clone()).collect::<Vec<_>>();
            (Reach::Program { command, args, env, cwd }, secrets)
        }
        (None, Some(_)) => {
            if let Some(field) = ["args", "env", "cwd"].into_iter().find(|field| fields.has(field))
            {
                return Err(misuse(&fields.path(field), "a server with a url has none"));
            }
            if kind
                .is_some_and(|kind| !["http", "streamable-http", "streamableHttp"].contains(&kind))
            {
                return Err(misuse(&fields.path("type"), "must be http for a url"));
            }
            let (url, headers, secrets) = address(fields, variables)?;
            (Reach::Address { url, headers }, secrets)
        }
        (Some(_), Some(_)) => return Err(misuse(path, "has a command and a url; leave one out")),
        (None, None) => return Err(misuse(path, "needs a command or a url")),
    };
    secrets.extend(variables.taken());
    Ok(Some(Server { name: name.to_owned(), reach, hidden: Hidden::new(secrets) }))
}

/// Reads `url` and `headers`, and the values that no message may show.
fn address(
    fields: &Object<'_>,
    variables: &mut Variables<'_>,
) -> Result<(Url, HeaderMap, Vec<String>), Error> {
    let path = fields.path("url");
    let text = fields.text("url")?.ok_or_else(|| misuse(&path, "is missing"))?;
    // The error of the library says nothing of the text.
    let url = Url::parse(&variables.fill(&path, text)?)
        .map_err(|error| misuse(&path, &format!("is no URL: {error}")))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(misuse(&path, "must begin with http:// or https://"));
    }
    let mut secrets: Vec<String> = url.password().map(str::to_owned).into_iter().collect();
    secrets.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    let mut headers = HeaderMap::new();
    if let Some(given) = fields.object("headers")? {
        for (name, value) in given.filled(variables)? {
            let path = given.path(&name);
            let header = HeaderName::try_from(name.as_str())
                .map_err(|_| misuse(&path, "is no name of a header"))?;
            let mut value_of = HeaderValue::try_from(value.as_str())
                .map_err(|_| misuse(&path, "is no value of a header"))?;
            value_of.set_sensitive(true);
            if !PLAIN_HEADERS.contains(&header) {
                secrets.push(value);
            }
            headers.insert(header, value_of);
        }
    }
    Ok((url, headers, secrets))
}
