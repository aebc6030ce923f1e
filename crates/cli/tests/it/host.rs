//! The host of a model: it starts `isolane mcp`, and speaks the protocol over its pipes.
//!
//! In: requests and notifications. Out: answers by their ids, notifications in order, the exit code.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::program::command;

pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    requests: u64,
    /// Answers that came before they were asked for.
    answers: BTreeMap<u64, Json>,
    /// Notifications that nobody has taken yet.
    notes: Vec<Json>,
    /// Requests of the server that nobody has taken yet.
    questions: Vec<Json>,
}

impl Host {
    /// A server whose code runs on threads, before its first message.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let mut command = command(&["mcp", "--isolation", "thread"]);
        command.args(flags).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("it starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (answers, notes, questions) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { child, stdin, stdout, requests: 0, answers, notes, questions }
    }

    /// A server that is ready for calls.
    pub(crate) fn ready(flags: &[&str]) -> Self {
        Self::able(flags, &json!({}))
    }

    /// The same, for a host with these capabilities.
    pub(crate) fn able(flags: &[&str], capabilities: &Json) -> Self {
        let mut host = Self::start(flags);
        let mut params = initialize("2025-06-18");
        params["capabilities"] = capabilities.clone();
        let answer = host.ask("initialize", &params);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        host
    }

    pub(crate) fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads");
    }

    /// Sends a request; gives its id.
    pub(crate) fn request(&mut self, method: &str, params: &Json) -> u64 {
        self.requests += 1;
        let id = self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request.to_string());
        id
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Json) -> Json {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Begins a call, whose progress has the id as its token.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Json) -> u64 {
        let token = self.requests + 1;
        let meta = json!({ "progressToken": token });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.request("tools/call", &params)
    }

    /// Calls a tool; gives its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Json) -> Json {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask("tools/call", &params);
        assert_eq!(answer["error"], Json::Null, "{answer}");
        answer["result"].clone()
    }

    /// The text of a call, and whether it is an error.
    pub(crate) fn text(&mut self, tool: &str, arguments: &Json) -> (String, bool) {
        let result = self.call(tool, arguments);
        let text = result["content"][0]["text"].as_str().expect("a text").to_owned();
        (text, result["isError"].as_bool().expect("a boolean"))
    }

    pub(crate) fn cancel(&mut self, id: u64) {
        let method = "notifications/cancelled";
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": id } });
        self.send(&note.to_string());
    }

    /// The answer to a request. Others that come before are kept.
    pub(crate) fn answer(&mut self, id: u64) -> Json {
        while !self.answers.contains_key(&id) {
            self.read();
        }
        self.answers.remove(&id).expect("it is there")
    }

    /// Whether an answer to that request has come so far.
    pub(crate) fn has_answer(&self, id: u64) -> bool {
        self.answers.contains_key(&id)
    }

    /// The next request of the server.
    pub(crate) fn question(&mut self) -> Json {
        while self.questions.is_empty() {
            self.read();
        }
        self.questions.remove(0)
    }

    /// Answers a request of the server.
    pub(crate) fn reply(&mut self, question: &Json, result: &Json) {
        let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": result });
        self.send(&reply.to_string());
    }

    /// The next notification.
    pub(crate) fn note(&mut self) -> Json {
        while self.notes.is_empty() {
            self.read();
        }
        self.notes.remove(0)
    }

    /// The notifications that have come so far.
    pub(crate) fn notes(&mut self) -> Vec<Json> {
        std::mem::take(&mut self.notes)
    }

    fn read(&mut self) {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("UTF-8");
        assert!(!line.is_empty(), "the server has ended: {:?}", self.child.wait());
        let message: Json = serde_json::from_str(&line).expect("nothing but JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match (message["id"].as_u64(), message["method"].is_string()) {
            (Some(_), true) => self.questions.push(message),
            (Some(id), false) => drop(self.answers.insert(id, message)),
            (None, _) => self.notes.push(message),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Closes the input; gives the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.ended()
    }

    /// Closes the output, and not the input; gives the exit code.
    pub(crate) fn unread(self) -> Option<i32> {
        let Self { mut child, stdin, stdout, .. } = self;
        drop(stdout);
        let code = child.wait().expect("it ends").code();
        drop(stdin);
        code
    }

    /// Waits for the end; gives the exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).expect("it ends");
        self.child.wait().expect("it ends").code()
    }
}

/// The parameters of the first request.
pub(crate) fn initialize(revision: &str) -> Json {
    json!({
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": { "name": "a test", "version": "1" },
    })
}
