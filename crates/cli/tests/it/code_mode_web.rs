//! Tools over HTTP, and of servers that have an address.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::{Value as Json, json};

use crate::code_mode::{error, host, thrown, value};

/// The server of the tests, which ends with this.
struct Web {
    child: Child,
    url: String,
}

impl Web {
    fn start() -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../remote-tools/tests/web.py");
        let mut command = Command::new("python3");
        let mut child = command
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut port = String::new();
        let stdout = child.stdout.as_mut().expect("piped");
        BufReader::new(stdout).read_line(&mut port).expect("a port");
        Self { child, url: format!("http://127.0.0.1:{}", port.trim()) }
    }

    fn config(&self) -> Json {
        let path = |path: &str| json!({ "path": path });
        let city = json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
            "required": ["city"],
        });
        json!({ "tools": { "weather": {
            "url": format!("{}/", self.url),
            "headers": { "authorization": "Bearer a-secret-token" },
            "tools": {
                "forecast": { "path": "/v1/{city}", "description": "The weather.", "inputSchema": city },
                "report": { "method": "POST", "path": "/reports/{id}" },
                "remove": { "method": "DELETE", "path": "/reports/{id}" },
                "missing": path("/status/404"),
                "down": path("/status/503"),
                "moved": path("/redirect"),
                "text": path("/text"),
                "no-json": path("/no-json"),
                "binary": path("/binary"),
                "empty": path("/empty"),
                "large": path("/large"),
                "cut": path("/cut"),
            },
        } } })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_call_is_a_request() {
    let web = Web::start();
    let (_folder, mut host) = host(&web.config());
    let mut call = |call: &str| {
        value(&mut host, &format!("import * as weather from 'weather'; return weather.{call}"))
    };
    let got = call("forecast({ city: 'São/Paulo', days: 3 })");
    let path = "/v1/S%C3%A3o%2FPaulo?days=3";
    let expected =
        json!({ "method": "GET", "path": path, "body": "", "kind": null, "is_known": true });
    assert_eq!(got, expected);
    let posted = call("report({ id: 7, rain: [1, null] })");
    assert_eq!((&posted["method"], &posted["path"]), (&json!("POST"), &json!("/reports/7")));
    assert_eq!(posted["body"], "{\"rain\":[1,null]}");
    assert_eq!(posted["kind"], "application/json");
    assert_eq!(call("remove({ id: 7, force: true })")["path"], "/reports/7?force=true");
    assert_eq!(call("text()"), "grüezi");
    assert_eq!(call("empty()"), Json::Null);
}

#[test]
fn what_is_no_success_is_an_error() {
    let web = Web::start();
    let (_folder, mut host) = host(&web.config());
    let mut fails = |call: &str| {
        error(&mut host, &format!("import * as weather from 'weather'; await weather.{call}"))
    };
    let missing = "weather.missing answered 404: no such city, [hidden]";
    assert_eq!(fails("missing()"), thrown(missing));
    assert_eq!(fails("down()"), thrown("weather.down answered 503: Service Unavailable"));
    let moved = "weather.moved answered 302: a redirect, which is not followed";
    assert_eq!(fails("moved()"), thrown(moved));
    let no_json = fails("noJson()").1;
    assert!(no_json.starts_with("weather.noJson: the answer is no JSON: "), "{no_json}");
    let binary = "weather.binary: the answer is neither JSON nor text in UTF-8";
    assert_eq!(fails("binary()"), thrown(binary));
    let large = "weather.large: the answer is larger than 4194304 bytes";
    assert_eq!(fails("large()"), ("RangeError".to_owned(), large.to_owned()));
    let cut = fails("cut()").1;
    assert!(cut.starts_with("weather.cut: the server cannot be reached: "), "{cut}");
    let dots = "weather.forecast: args.city must not be '..'";
    assert_eq!(fails("forecast({ city: '..' })"), ("TypeError".to_owned(), dots.to_owned()));
    let none = "weather.forecast: args.city is missing";
    assert_eq!(fails("forecast()"), ("TypeError".to_owned(), none.to_owned()));
    let code = "import { missing } from 'weather'; return missing().catch((error) => error.code)";
    assert_eq!(value(&mut host, code), 404);
    drop(web);
    let gone = error(&mut host, "import { text } from 'weather'; await text()").1;
    assert!(gone.starts_with("weather.text: the server cannot be reached: "), "{gone}");
    assert!(!gone.contains("127.0.0.1"), "{gone}");
}

#[test]
fn a_server_may_have_an_address() {
    let web = Web::start();
    let headers = json!({ "Authorization": "Bearer a-secret-token" });
    let server = json!({ "url": format!("{}/mcp", web.url), "headers": headers });
    let (_folder, mut host) = host(&json!({ "mcpServers": { "test": server } }));
    let sum = "import { addNumbers } from 'test'; return addNumbers({ a: 1, b: 2 })";
    assert_eq!(value(&mut host, sum), json!({ "sum": 3 }));
    let failed = error(&mut host, "import { fail } from 'test'; await fail({ text: 'no' })");
    assert_eq!(failed, thrown("no"));
    let refused = error(&mut host, "import { refuse } from 'test'; await refuse()");
    assert_eq!(refused, thrown("test.refuse: not today"));
    drop(web);
    let (name, message) = error(&mut host, "import { say } from 'test'; await say({ text: 'x' })");
    assert_eq!(name, "Error");
    assert!(message.starts_with("test.say: the server"), "{message}");
    assert!(!message.contains("127.0.0.1") && !message.contains("secret"), "{message}");
}

#[test]
fn a_token_that_is_not_taken_is_told() {
    let web = Web::start();
    let headers = json!({ "Authorization": "Bearer another-token" });
    let server = json!({ "url": format!("{}/mcp", web.url), "headers": headers });
    let config = json!({ "mcpServers": { "test": server } });
    let (folder, _file) = crate::code_mode::folder(&config);
    let ran = crate::program::isolane(folder.path(), &["mcp", "--config", "mcp.json"]);
    let refused = "error: mcpServers.test: the server answered 401: the headers have no token that it takes\n";
    assert_eq!(ran, (Some(70), String::new(), refused.to_owned()));
}
