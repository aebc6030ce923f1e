//! The policy of `isolane mcp`: which tools code may call, and which ones the user of the host is asked about.

use serde_json::{Value as Json, json};

use crate::{
    code_mode::{error, folder, good, host, thrown, value},
    host::Host,
    program::isolane,
};

const DELETE: &str = "import { delete_all } from 'test'; return delete_all()";

#[test]
fn a_user_is_asked_about_each_call_that_can_destroy() {
    let (_folder, file) = folder(&good());
    let mut host = Host::able(&["--config", &file], &json!({ "elicitation": {} }));
    let mut asked = |action: &str| {
        let code = "import { delete_all } from 'test'; return delete_all({ what: 'logs' })";
        let id = host.begin("run_code", &json!({ "code": code }));
        let question = host.question();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let message =
            "Code that the model wrote wants to call test.delete_all with {\"what\":\"logs\"}";
        assert_eq!(question["params"]["message"], message);
        assert_eq!(question["params"]["requestedSchema"]["type"], "object");
        host.reply(&question, &json!({ "action": action, "content": {} }));
        host.answer(id)["result"]["structuredContent"].clone()
    };
    assert_eq!(asked("accept")["result"], "all is gone");
    let declined = asked("decline");
    assert_eq!(declined["error"]["message"], "test.delete_all: the call was declined");
    assert_eq!(asked("cancel")["error"]["message"], "test.delete_all: the call was declined");
    // A user takes time.
    let listed = host.ask("tools/list", &json!({}));
    let limit = &listed["result"]["tools"][0]["inputSchema"]["properties"]["timeoutMs"];
    assert_eq!(limit["default"], 300_000);
}

#[test]
fn in_the_newest_revision_the_answer_asks() {
    let (_folder, file) = folder(&good());
    let mut host = Host::start(&["--config", &file]);
    let meta = |capabilities: Json| {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "a test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        })
    };
    let code = "import { delete_all, say } from 'test'; const said = await say({ text: 'x' }); const ask = () => \
                delete_all().catch(({ message }) => message); return [said, ...await Promise.all([ask(), ask()]), await ask()]";
    let mut params = json!({
        "name": "run_code",
        "arguments": { "code": code },
        "_meta": meta(json!({ "elicitation": {} })),
    });
    let asked = host.ask("tools/call", &params)["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().expect("requests").clone();
    let question = &requests["approval1"];
    assert_eq!(question["method"], "elicitation/create", "{asked}");
    let message = "Code that the model wrote wants to call test.delete_all with {}";
    assert_eq!(question["params"]["message"], message);
    // The two calls may ask together, or one after the other; the third asks alone.
    let mut answered = 0;
    let mut asked = asked;
    let result = loop {
        if asked["resultType"] != "input_required" {
            break asked["structuredContent"]["result"].clone();
        }
        let mut responses = json!({});
        for key in asked["inputRequests"].as_object().expect("requests").keys() {
            answered += 1;
            let action = if answered < 3 { "accept" } else { "decline" };
            responses[key] = json!({ "action": action });
        }
        params["inputResponses"] = responses;
        params["requestState"] = asked["requestState"].clone();
        asked = host.ask("tools/call", &params)["result"].clone();
    };
    let declined = "test.delete_all: the call was declined";
    assert_eq!(result, json!(["x", "all is gone", "all is gone", declined]));
    // A number counts once.
    let again = host.ask("tools/call", &params)["result"].clone();
    let late = "this call does not wait for an answer any more; call again";
    assert_eq!((&again["content"][0]["text"], &again["isError"]), (&json!(late), &json!(true)));
    let none =
        json!({ "name": "run_code", "arguments": { "code": DELETE }, "_meta": meta(json!({})) });
    let refused = host.ask("tools/call", &none)["result"]["structuredContent"].clone();
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.contains("there is nobody to ask"), "{message}");
    assert_eq!(host.end(), Some(0));
}

#[test]
fn where_nobody_can_be_asked_a_call_throws() {
    let refused = "test.delete_all: a call needs an approval, and there is nobody to ask; the policy { \
                   \"test.delete_all\": \"allow\" } allows it";
    let (folder, mut host) = host(&good());
    assert_eq!(error(&mut host, DELETE), thrown(refused));
    std::fs::write(folder.path().join("a.js"), DELETE.replace("return", "await")).expect("a file");
    let (code, _, stderr) = isolane(folder.path(), &["run", "a.js", "--mcp", "mcp.json"]);
    assert!(code == Some(1) && stderr.contains(refused), "{stderr}");
}

#[test]
fn patterns_allow_and_deny() {
    let mut config = good();
    config["mcpServers"]["off"] = json!({ "command": "none", "disabled": true });
    config["policy"] = json!({
        "test.*": "allow", "test.d*": "deny", "test.delete_all": "allow", "test.addNumbers": "deny", "off.x": "deny",
    });
    let (_folder, mut host) = host(&config);
    assert_eq!(value(&mut host, DELETE), "all is gone");
    let (name, message) = error(&mut host, "import { die } from 'test'");
    assert_eq!(name, "SyntaxError");
    assert!(message.starts_with("Module 'test' has no export 'die'"), "{message}");
    let (_, message) = error(&mut host, "import { addNumbers } from 'test'");
    assert!(message.starts_with("Module 'test' has no export 'addNumbers'"), "{message}");
    let described = host.call("describe_tools", &json!({}));
    assert!(!described["structuredContent"]["types"].to_string().contains("function die("));
}

#[test]
fn a_pattern_that_is_none_is_misuse() {
    let misused = |pattern: &str, decision: &str| {
        let mut config = good();
        config["policy"] = json!({ pattern: decision });
        let (folder, _file) = folder(&config);
        let (code, _, stderr) = isolane(folder.path(), &["mcp", "--config", "mcp.json"]);
        assert_eq!(code, Some(2), "{stderr}");
        stderr.strip_prefix("error: mcp.json: ").expect(&stderr).trim_end().to_owned()
    };
    assert_eq!(misused("test.x", "never"), "policy[\"test.x\"]: must be allow, ask or deny");
    let pattern = "policy: 'test delete' is no pattern; write service.tool, where * stands for any characters: \
                   github.delete_*";
    assert_eq!(misused("test delete", "deny"), pattern);
    let service = "policy: there is no service 'tets'; did you mean 'test'?";
    assert_eq!(misused("tets.*", "deny"), service);
    let mut config = good();
    config["policy"] = json!({ "test.delete_al": "deny" });
    let (at, _file) = folder(&config);
    let (code, _, stderr) = isolane(at.path(), &["mcp", "--config", "mcp.json"]);
    assert_eq!(code, Some(2), "{stderr}");
    let tool =
        "error: policy: there is no tool 'test.delete_al'; did you mean 'test.delete_all'?\n";
    assert!(stderr.ends_with(tool), "{stderr}");
    let twice = r#"{ "policy": { "a.b": "deny", "a.b": "allow" } }"#;
    std::fs::write(at.path().join("mcp.json"), twice).expect("a file");
    let (code, _, stderr) = isolane(at.path(), &["mcp", "--config", "mcp.json"]);
    let message =
        "error: mcp.json: no JSON: an object has the field 'a.b' twice at line 1 column 45\n";
    assert_eq!((code, stderr.as_str()), (Some(2), message));
}

#[test]
fn tools_are_described_by_a_search() {
    let (_folder, mut host) = host(&good());
    let found = host.call("describe_tools", &json!({ "query": "sum of numbers", "limit": 1 }));
    assert_eq!(found["isError"], false);
    assert_eq!(found["structuredContent"]["tools"], json!(["test.addNumbers"]));
    let text = found["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("declare module 'test' {\n  /** Adds two numbers. */\n"), "{text}");
    let none = host.text("describe_tools", &json!({ "query": "weather" }));
    assert_eq!(none, ("no tool fits; try fewer words, or none".to_owned(), false));
    let wrong = host.text("describe_tools", &json!({ "limit": 0 }));
    assert_eq!(wrong, ("limit must be a whole number from 1 to 100, got 0".to_owned(), true));
}
