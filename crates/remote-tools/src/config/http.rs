//! Tools over HTTP, as the configuration has them.
//!
//! In: JSON. Out: requests with a place for each argument, or the first mistake with its path.

use isolane::Error;
use isolane_environment::{ToolDescription, is_tool_name};
use isolane_schema::Schema;
use reqwest::{Method, Url};
use serde_json::{Value as Json, json};

use super::{
    address, hint,
    object::{Object, misuse},
    variables::Variables,
};
use crate::{
    hidden::Hidden,
    http::{HttpService, HttpTool, PathPart},
};

/// Reads the tools of one service.
pub(super) fn service(
    name: &str,
    path: &str,
    fields: &Object<'_>,
    variables: &mut Variables<'_>,
) -> Result<HttpService, Error> {
    fields.knows(&["url", "headers", "tools"])?;
    let (url, headers, mut secrets) = address(fields, variables)?;
    if url.cannot_be_a_base() || url.fragment().is_some() {
        return Err(misuse(&fields.path("url"), "must have no fragment"));
    }
    secrets.extend(variables.taken());
    let tools = fields.object("tools")?.ok_or_else(|| misuse(path, "tools is missing"))?;
    let tools = tools
        .objects()
        .map(|tool| {
            let (name, fields) = tool?;
            if !is_tool_name(name) {
                return Err(misuse(&tools.path(name), "is no name of a tool"));
            }
            read(name, &fields, &url)
        })
        .collect::<Result<_, _>>()?;
    Ok(HttpService { name: name.to_owned(), url, headers, hidden: Hidden::new(secrets), tools })
}

fn read(name: &str, fields: &Object<'_>, url: &Url) -> Result<HttpTool, Error> {
    fields.knows(&["method", "path", "description", "inputSchema", "outputSchema"])?;
    let method = match fields.text("method")?.unwrap_or("GET") {
        "GET" => Method::GET,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        "DELETE" => Method::DELETE,
        _ => {
            let problem = "must be GET, POST, PUT, PATCH or DELETE";
            return Err(misuse(&fields.path("method"), problem));
        }
    };
    let parts = parts(&fields.path("path"), fields.text("path")?.unwrap_or_default())?;
    let output_schema = fields.json("outputSchema").cloned();
    for name in ["inputSchema", "outputSchema"] {
        if let Some(schema) = fields.json(name) {
            let is_object = schema.is_object();
            let checked = Schema::new(schema);
            if let (true, Err(fault)) = (is_object, checked) {
                return Err(misuse(&fields.path(name), &format!("is no JSON schema: {fault}")));
            }
            fields.object(name)?;
        }
    }
    let input_schema = match fields.json("inputSchema") {
        Some(schema) => {
            check_fields(&fields.path("path"), &parts, schema)?;
            check_query(&fields.path("inputSchema"), url, schema)?;
            schema.clone()
        }
        None => schema_of(&parts),
    };
    let description = ToolDescription {
        description: fields.text("description")?.unwrap_or_default().to_owned(),
        input_schema: Some(input_schema),
        output_schema,
    };
    Ok(HttpTool { name: name.to_owned(), method, parts, description })
}

/// The parts of a path such as `/v1/{city}`.
fn parts(path: &str, text: &str) -> Result<Vec<PathPart>, Error> {
    if !text.is_empty() && !text.starts_with('/') {
        return Err(misuse(path, "must begin with a slash"));
    }
    if text.contains(['?', '#', '\\']) {
        return Err(misuse(
            path,
            "must have no query: arguments that are not in the path go there",
        ));
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, behind) = rest.split_at(at);
        let end = behind.find('}').filter(|_| behind.starts_with('{'));
        let name = end.map(|end| &behind[1..end]).filter(|name| !name.is_empty());
        let (Some(end), Some(name)) = (end, name) else {
            return Err(misuse(path, "has a brace without its other one; write {field}"));
        };
        if !before.is_empty() {
            parts.push(PathPart::Text(before.to_owned()));
        }
        parts.push(PathPart::Field(name.to_owned()));
        rest = &behind[end + 1..];
    }
    if !rest.is_empty() {
        parts.push(PathPart::Text(rest.to_owned()));
    }
    Ok(parts)
}

/// The fields of a path.
fn path_fields(parts: &[PathPart]) -> impl Iterator<Item = &String> {
    parts.iter().filter_map(|part| match part {
        PathPart::Field(name) => Some(name),
        PathPart::Text(_) => None,
    })
}

/// Refuses a path with a field that the schema does not know.
fn check_fields(path: &str, parts: &[PathPart], schema: &Json) -> Result<(), Error> {
    let Some(known) = schema.get("properties").and_then(Json::as_object) else { return Ok(()) };
    let names: Vec<String> = known.keys().cloned().collect();
    match path_fields(parts).find(|name| !names.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let hint = hint(name, &names, "it has");
            Err(misuse(path, &format!("inputSchema has no field '{name}'; {hint}")))
        }
    }
}

/// Refuses a schema with a field that the query of the address has.
fn check_query(path: &str, url: &Url, schema: &Json) -> Result<(), Error> {
    let known = schema.get("properties").and_then(Json::as_object);
    let mut fixed = url.query_pairs().map(|(name, _)| name);
    match fixed.find(|name| known.is_some_and(|known| known.contains_key(name.as_ref()))) {
        None => Ok(()),
        Some(name) => {
            Err(misuse(path, &format!("has the field '{name}', as the query of url does")))
        }
    }
}

/// The schema of a tool that has none: the fields of its path are required, and any others may be there.
fn schema_of(parts: &[PathPart]) -> Json {
    let names: Vec<&String> = path_fields(parts).collect();
    let properties =
        names.iter().map(|name| ((*name).clone(), json!({ "type": ["string", "number"] })));
    let properties: serde_json::Map<_, _> = properties.collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": true })
}
