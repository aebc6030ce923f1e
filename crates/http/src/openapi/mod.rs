//! The description of the requests, by OpenAPI 3.1.
//!
//! In: the table of operations, and the schemas beside this file. Out: the document of `/openapi.json`.

use std::collections::BTreeMap;

use isolane_environment::ProblemType;
use serde_json::{Map, Value, json};

use crate::{
    guard::OPEN_PATHS,
    operations::{OPERATIONS, Operation},
    problem::PROBLEM_JSON,
    reply::EVENT_STREAM,
};

/// The schemas and the parameters.
const COMPONENTS: &str = include_str!("components.json");

/// Paths whose queries are ignored.
const LENIENT: [&str; 4] = ["/", "/healthz", "/metrics", "/openapi.json"];

/// The document of a server with a token or without, whose service takes time limits up to that many milliseconds.
pub(crate) fn document(has_token: bool, max_timeout_ms: u64) -> Value {
    // A test reads the same text.
    let mut components: Value = serde_json::from_str(COMPONENTS).unwrap_or_default();
    components["schemas"]["NewProcess"]["properties"]["timeoutMs"]["maximum"] =
        json!(max_timeout_ms);
    let mut paths = Map::new();
    for operation in OPERATIONS {
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        methods[operation.method] = describe(operation, has_token);
    }
    if has_token {
        components["securitySchemes"] = json!({ "token": { "type": "http", "scheme": "bearer" } });
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Isolane",
            "description": "Runs code of clients in sandboxes, and keeps the records.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "security": if has_token { json!([{ "token": [] }]) } else { json!([]) },
        "paths": paths,
        "components": components,
    })
}

fn describe(operation: &Operation, has_token: bool) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": responses(operation, has_token),
    });
    if !operation.parameters.is_empty() {
        let reference = |name: &&str| json!({ "$ref": format!("#/components/parameters/{name}") });
        described["parameters"] = operation.parameters.iter().map(reference).collect();
    }
    if let Some(schema) = operation.body {
        described["requestBody"] = json!({
            "required": schema == "NewProcess",
            "content": { "application/json": { "schema": schema_of(schema) } },
        });
    }
    if has_token && OPEN_PATHS.contains(&operation.path) {
        described["security"] = json!([]);
    }
    described
}

fn responses(operation: &Operation, has_token: bool) -> Map<String, Value> {
    let answer = &operation.answer;
    let mut success = json!({ "description": "Done." });
    if !answer.media_type.is_empty() {
        let content = json!({ "schema": schema_of(answer.schema) });
        success["content"] =
            Value::Object(Map::from_iter([(answer.media_type.to_owned(), content)]));
    }
    if answer.status == 201 {
        success["headers"] = json!({
            "Location": { "description": "The path of the process.", "schema": { "type": "string" } },
        });
    }
    let mut responses = Map::from_iter([(answer.status.to_string(), success)]);
    if answer.media_type == EVENT_STREAM {
        let none = json!({ "description": "No event can follow." });
        responses.insert("204".to_owned(), none);
    }
    let mut by_status: BTreeMap<u16, Vec<ProblemType>> = BTreeMap::new();
    for problem in problems(operation, has_token) {
        by_status.entry(problem.status()).or_default().push(problem);
    }
    for (status, problems) in by_status {
        responses.insert(status.to_string(), problem_response(&problems));
    }
    responses
}

/// The problems of an operation.
fn problems(operation: &Operation, has_token: bool) -> Vec<ProblemType> {
    let mut problems = vec![ProblemType::ForbiddenOrigin, ProblemType::Internal];
    problems.extend(operation.problems);
    if !LENIENT.contains(&operation.path) {
        problems.push(ProblemType::BadRequest);
    }
    if has_token && !OPEN_PATHS.contains(&operation.path) {
        problems.push(ProblemType::Unauthorized);
    }
    if operation.method == "post" {
        problems.extend([
            ProblemType::TooLarge,
            ProblemType::UnsupportedMediaType,
            ProblemType::RateLimited,
        ]);
    }
    problems
}

/// The response with one of these problems, which have the same status.
fn problem_response(problems: &[ProblemType]) -> Value {
    let types: Vec<String> =
        problems.iter().map(|problem| format!("`urn:isolane:{}`", problem.as_str())).collect();
    let content = json!({ "schema": schema_of("Problem") });
    let mut response = json!({
        "description": types.join(", "),
        "content": Map::from_iter([(PROBLEM_JSON.to_owned(), content)]),
    });
    let retries = [ProblemType::RateLimited, ProblemType::QueueFull];
    if problems.iter().any(|problem| retries.contains(problem)) {
        response["headers"] = json!({
            "Retry-After": { "description": "Seconds.", "schema": { "type": "integer" } },
        });
    }
    response
}

fn schema_of(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts under a key, anywhere.
    fn texts<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| texts(value, key, found)),
            Value::Object(map) => {
                found.extend(map.get(key).and_then(Value::as_str));
                map.values().for_each(|value| texts(value, key, found));
            }
            _ => {}
        }
    }

    #[test]
    fn all_references_lead_somewhere_and_all_components_are_used() {
        let document = document(true, 1000);
        let mut references = Vec::new();
        texts(&document, "$ref", &mut references);
        for reference in &references {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        for kind in ["schemas", "parameters"] {
            let components = document["components"][kind].as_object().expect("components");
            for name in components.keys() {
                let reference = format!("#/components/{kind}/{name}");
                assert!(references.contains(&reference.as_str()), "{reference}");
            }
        }
    }

    #[test]
    fn each_operation_has_its_own_name_and_the_parameters_of_its_path() {
        let mut ids: Vec<&str> = OPERATIONS.iter().map(|operation| operation.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), OPERATIONS.len());
        let document = document(false, 1000);
        for operation in OPERATIONS {
            let in_path = operation.path.split(['{', '}']).skip(1).step_by(2);
            let declared = operation
                .parameters
                .iter()
                .filter(|name| document["components"]["parameters"][**name]["in"] == json!("path"));
            assert!(in_path.eq(declared.copied()), "{}", operation.id);
        }
    }

    #[test]
    fn a_server_without_a_token_asks_for_none() {
        let document = document(false, 1000).to_string();
        assert!(!document.contains("\"401\"") && !document.contains("securitySchemes"));
    }
}
