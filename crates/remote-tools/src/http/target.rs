//! The address and the body of a call.
//!
//! In: the address of the service, a tool, arguments. Out: an address below the service's, where no argument leaves its
//! segment of the path; the other arguments as query, or as JSON.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, Url};
use serde_json::{Map, Value as Json};

use super::{HttpTool, PathPart};

/// All that is escaped in a segment: everything but letters, digits and `-_.~`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Where a call goes.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    /// JSON.
    pub(super) body: Option<Vec<u8>>,
}

/// The target of a call.
///
/// # Errors
/// An argument that cannot stand in a path: `args.city must not be '..'`.
pub(super) fn target(
    base: &Url,
    tool: &HttpTool,
    mut args: Map<String, Json>,
) -> Result<Target, String> {
    let mut path = base.path().trim_end_matches('/').to_owned();
    let mut used = Vec::new();
    for part in &tool.parts {
        match part {
            PathPart::Text(text) => path.push_str(text),
            PathPart::Field(name) => {
                path.extend(utf8_percent_encode(&segment(name, args.get(name))?, ESCAPED));
                used.push(name);
            }
        }
    }
    for name in used {
        args.shift_remove(name);
    }
    // Servers may take the first or the last of two fields with one name, or the one of a body.
    let is_fixed = |name: &String| base.query_pairs().any(|(fixed, _)| fixed == name.as_str());
    if let Some(name) = args.keys().find(|name| is_fixed(name)) {
        return Err(format!("args.{name} is unknown"));
    }
    let mut url = base.clone();
    if !path.is_empty() {
        url.set_path(&path);
    }
    if ![Method::GET, Method::DELETE].contains(&tool.method) {
        return Ok(Target { url, body: Some(Json::Object(args).to_string().into_bytes()) });
    }
    let pairs: Vec<(String, String)> = args
        .into_iter()
        .flat_map(|(name, value)| texts(value).into_iter().map(move |text| (name.clone(), text)))
        .collect();
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
    Ok(Target { url, body: None })
}

/// The text of an argument for a path. Servers may decode a slash before they look for `..`, so a part between slashes
/// counts as a segment, too.
fn segment(name: &str, value: Option<&Json>) -> Result<String, String> {
    let text = match value {
        Some(Json::String(text)) => text.clone(),
        Some(value @ (Json::Number(_) | Json::Bool(_))) => value.to_string(),
        None | Some(Json::Null) => return Err(format!("args.{name} is missing")),
        Some(_) => return Err(format!("args.{name} must be string")),
    };
    if text.is_empty() {
        return Err(format!("args.{name} must not be empty"));
    }
    match text.split(['/', '\\']).find(|part| matches!(*part, "." | "..")) {
        Some(part) if part == text => Err(format!("args.{name} must not be '{part}'")),
        Some(part) => Err(format!("args.{name} must not have a segment '{part}'")),
        None => Ok(text),
    }
}

/// The texts of an argument in a query: one for each element of an array.
fn texts(value: Json) -> Vec<String> {
    match value {
        Json::Null => Vec::new(),
        Json::String(text) => vec![text],
        Json::Array(elements) => elements.into_iter().flat_map(texts).collect(),
        other => vec![other.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(method: Method, args: Json) -> Result<(String, Option<String>), String> {
        let parts = [
            PathPart::Text("/v1/".to_owned()),
            PathPart::Field("city".to_owned()),
            PathPart::Text("/days".to_owned()),
        ];
        let tool = HttpTool {
            name: "forecast".to_owned(),
            method,
            parts: parts.into(),
            description: isolane_environment::ToolDescription::default(),
        };
        let base = Url::parse("https://example.com/api/?key=k").expect("an address");
        let Json::Object(args) = args else { panic!("an object") };
        let target = target(&base, &tool, args)?;
        let body = target.body.map(|body| String::from_utf8(body).expect("text"));
        Ok((target.url.to_string(), body))
    }

    #[test]
    fn arguments_go_into_the_path_and_the_query() {
        let args = json!({ "city": "São Paulo", "days": 3, "tags": ["a b", "c"], "none": null });
        let url = "https://example.com/api/v1/S%C3%A3o%20Paulo/days?key=k&days=3&tags=a+b&tags=c";
        assert_eq!(made(Method::GET, args), Ok((url.to_owned(), None)));
        let url = "https://example.com/api/v1/7/days?key=k";
        let (made, body) =
            made(Method::POST, json!({ "city": 7, "a": { "b": [] } })).expect("made");
        assert_eq!((made.as_str(), body.as_deref()), (url, Some("{\"a\":{\"b\":[]}}")));
    }

    #[test]
    fn no_argument_leaves_its_segment() {
        for (city, segment) in [
            ("a/b", "a%2Fb"),
            ("?x#y", "%3Fx%23y"),
            ("%2e%2e", "%252e%252e"),
            ("...", "..."),
            ("a\\b", "a%5Cb"),
            ("\n\u{0}", "%0A%00"),
            ("@evil.example:80", "%40evil.example%3A80"),
        ] {
            let url = format!("https://example.com/api/v1/{segment}/days?key=k");
            assert_eq!(made(Method::GET, json!({ "city": city })), Ok((url, None)));
        }
        for (city, fault) in [
            ("..", "args.city must not be '..'"),
            (".", "args.city must not be '.'"),
            ("", "args.city must not be empty"),
            ("../../admin", "args.city must not have a segment '..'"),
            ("a\\..\\b", "args.city must not have a segment '..'"),
        ] {
            let refused = made(Method::GET, json!({ "city": city })).expect_err(city);
            assert_eq!(refused, fault);
        }
        assert_eq!(made(Method::GET, json!({})).expect_err("none"), "args.city is missing");
        for method in [Method::GET, Method::POST] {
            let fixed = made(method, json!({ "city": "a", "key": "mine" }));
            assert_eq!(fixed.expect_err("a fixed field"), "args.key is unknown");
        }
        let list = made(Method::GET, json!({ "city": ["a"] }));
        assert_eq!(list.expect_err("a list"), "args.city must be string");
    }
}
