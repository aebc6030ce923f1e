//! The file of `isolane serve`: options, and tools.
//!
//! In: a file of JSON. Out: the options of the service and of the server, which flags replace, and tools. The names are
//! those of Node's options.

use std::path::Path;

use isolane::{Error, ErrorKind, OptionDeclaration, OptionKind, Spelling, unknown_name};
use isolane_environment::ProcessServiceOptions;
use isolane_http::ListenOptions;
use isolane_remote_tools::Config as Tools;
use serde_json::{Map, Value as Json};

use crate::{
    arguments::Place,
    code::Given,
    exit::Ended,
    remote::{named, variable},
    sources,
};

/// Options beside those of the service, of the server and of tools.
const OWN: [&str; 5] = ["isolation", "memory_limit_bytes", "globals", "imports", "modules"];

/// A file of everybody's to read is no place for it.
const TOKEN: &str = "token";

/// The options and tools of a file, or all defaults.
pub(super) struct Config {
    pub(super) service: ProcessServiceOptions,
    pub(super) listen: ListenOptions,
    /// Whether `service` says where the database is.
    pub(super) names_database: bool,
    pub(super) isolation: Place,
    pub(super) memory_limit_bytes: Option<u64>,
    /// The values and sources of all code.
    pub(super) given: Given,
    pub(super) tools: Option<Tools>,
}

impl Config {
    /// Without a file.
    pub(super) fn none() -> Self {
        Self {
            service: ProcessServiceOptions::default(),
            listen: ListenOptions::default(),
            names_database: false,
            isolation: Place::Process,
            memory_limit_bytes: None,
            given: Given::default(),
            tools: None,
        }
    }

    /// Reads a file, and so blocks.
    pub(super) fn read(file: &Path) -> Result<Self, Ended> {
        let text = sources::read(file)?;
        Self::parse(&text).map_err(|error| named(file, &error))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let json = Tools::json(text)?;
        let Json::Object(fields) = &json else {
            return Err(Error::new(ErrorKind::Type, "the configuration must be an object"));
        };
        let spelled = |names: &[&'static str]| names.iter().map(|name| camel(name)).collect();
        let [service, listen, own]: [Vec<String>; 3] =
            [ProcessServiceOptions::NAMES, ListenOptions::NAMES, &OWN].map(spelled);
        let listen: Vec<String> = listen.into_iter().filter(|name| name != TOKEN).collect();
        let tools = Tools::FIELDS.map(str::to_owned);
        let known = [service.clone(), listen.clone(), own, tools.to_vec()].concat();
        if let Some(key) = fields.keys().find(|key| !known.contains(key)) {
            return Err(unknown_name("", key, &known));
        }
        let part = |names: &[String]| {
            let chosen = fields.iter().filter(|(key, _)| names.contains(key));
            Json::Object(chosen.map(|(key, value)| (key.clone(), value.clone())).collect())
        };
        if fields.get("database") == Some(&"none".into()) {
            let message = "database must be a path, or null to keep processes in memory";
            return Err(Error::new(ErrorKind::Type, message));
        }
        let has_tools = fields.keys().any(|key| tools.contains(key));
        let tools = has_tools.then(|| Tools::from_json(&json, variable)).transpose()?;
        Ok(Self {
            service: ProcessServiceOptions::from_json(&part(&service), Spelling::Camel)?,
            listen: ListenOptions::from_json(&part(&listen), Spelling::Camel)?,
            names_database: fields.contains_key("database"),
            isolation: isolation(fields)?,
            memory_limit_bytes: memory(fields)?,
            given: Given::of_fields(fields)?,
            tools,
        })
    }
}

fn isolation(fields: &Map<String, Json>) -> Result<Place, Error> {
    match fields.get("isolation").map(Json::as_str) {
        None | Some(Some("process")) => Ok(Place::Process),
        Some(Some("thread")) => Ok(Place::Thread),
        _ => Err(Error::new(ErrorKind::Type, "isolation must be 'thread' or 'process'")),
    }
}

fn memory(fields: &Map<String, Json>) -> Result<Option<u64>, Error> {
    let name = camel("memory_limit_bytes");
    match fields.get(&name) {
        None => Ok(None),
        // The core would spell the name as Rust does.
        Some(Json::Number(number)) if number.as_u64() == Some(0) => {
            Err(Error::new(ErrorKind::Range, format!("{name} must be at least 1, got 0")))
        }
        Some(Json::Number(number)) if number.is_u64() => Ok(number.as_u64()),
        Some(_) => Err(Error::new(ErrorKind::Type, format!("{name} must be a whole number"))),
    }
}

fn camel(name: &'static str) -> String {
    OptionDeclaration { name, kind: OptionKind::Other }.spelled(Spelling::Camel)
}
