//! A plain client: it sends bytes, and reads responses as they come.

use std::{fmt::Write, io};

use isolane_http::Server;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpSocket, TcpStream},
};

/// A connection.
pub(crate) struct Connection {
    socket: BufReader<TcpStream>,
    host: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(given, _)| given == name);
        found.next().map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The status, the type and the detail of a problem.
    pub(crate) fn problem(&self) -> (u16, String, String) {
        let media_type = self.header("content-type");
        assert_eq!(media_type, Some("application/problem+json"), "{self:?}");
        let problem: Value = serde_json::from_str(&self.body).expect("JSON");
        let text = |name: &str| problem[name].as_str().expect("a text").to_owned();
        assert_eq!(problem["status"], self.status);
        assert!(!text("title").is_empty());
        (self.status, text("type").replace("urn:isolane:", ""), text("detail"))
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }
}

impl Connection {
    pub(crate) async fn to(server: &Server) -> Self {
        let socket = TcpStream::connect(server.address()).await.expect("a connection");
        Self { socket: BufReader::new(socket), host: server.address().to_string() }
    }

    /// A connection over a socket that has options of its own.
    pub(crate) async fn over(socket: TcpSocket, server: &Server) -> Self {
        let socket = socket.connect(server.address()).await.expect("a connection");
        Self { socket: BufReader::new(socket), host: server.address().to_string() }
    }

    /// Sends bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).await.expect("sent");
    }

    /// Sends as many of these bytes as the server takes.
    pub(crate) async fn offer(&mut self, bytes: &[u8]) {
        let _ = self.socket.get_mut().write_all(bytes).await;
    }

    /// Sends the head of a request, with a `Host` unless there is one.
    pub(crate) async fn ask(&mut self, line: &str, headers: &[(&str, &str)], body: &str) {
        let mut text = format!("{line} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            let _ = write!(text, "Host: {}\r\n", self.host);
        }
        for (name, value) in headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        if !body.is_empty() {
            let _ = write!(text, "Content-Length: {}\r\n", body.len());
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.send(text.as_bytes()).await;
    }

    /// Reads a response up to its body.
    pub(crate) async fn head(&mut self) -> Response {
        let line = self.line().await.expect("a response");
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line().await.expect("a header");
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Response { status: status.expect("a status"), headers, body: String::new() }
    }

    /// Reads a response whole.
    pub(crate) async fn response(&mut self) -> Response {
        let mut response = self.head().await;
        if response.is_chunked() {
            while let Some(chunk) = self.chunk().await.expect("a whole body") {
                response.body.push_str(&chunk);
            }
            return response;
        }
        let length = response.header("content-length").map_or(Ok(0), str::parse);
        let mut body = vec![0; length.expect("a length")];
        self.socket.read_exact(&mut body).await.expect("the body");
        response.body = String::from_utf8(body).expect("text");
        response
    }

    /// The next chunk of a body; `None` at its regular end.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<String>> {
        let length = self.line().await?;
        let length = usize::from_str_radix(&length, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        self.socket.read_exact(&mut chunk).await?;
        chunk.truncate(length);
        let chunk = String::from_utf8(chunk).map_err(io::Error::other)?;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    /// The next events of a stream, each as its id, its kind and its data; none at its regular end.
    pub(crate) async fn events(&mut self) -> io::Result<Vec<(u64, String, Value)>> {
        let Some(text) = self.chunk().await? else { return Ok(Vec::new()) };
        let frames = text.strip_suffix("\n\n").expect("whole frames").split("\n\n");
        Ok(frames.map(event).collect())
    }

    /// All further events, until the stream ends.
    pub(crate) async fn all_events(&mut self) -> Vec<(u64, String, Value)> {
        let mut all = Vec::new();
        loop {
            let events = self.events().await.expect("a regular end");
            if events.is_empty() {
                return all;
            }
            all.extend(events);
        }
    }

    /// Waits for the end of the connection; what came before.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A connection that was reset has ended, too.
        let _ = self.socket.read_to_end(&mut rest).await;
        String::from_utf8_lossy(&rest).into_owned()
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.socket.read_line(&mut line).await?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn event(frame: &str) -> (u64, String, Value) {
    let mut lines = frame.lines();
    let mut field = |name: &str| {
        let line = lines.next().expect("a field");
        line.strip_prefix(name).expect("fields in order").to_owned()
    };
    let id = field("id: ").parse().expect("a number");
    let (kind, data) = (field("event: "), field("data: "));
    (id, kind, serde_json::from_str(&data).expect("JSON"))
}

/// A request and its response, on a connection of their own.
pub(crate) async fn ask(server: &Server, line: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = Connection::to(server).await;
    connection.ask(line, headers, "").await;
    connection.response().await
}

pub(crate) async fn get(server: &Server, path: &str) -> Response {
    ask(server, &format!("GET {path}"), &[]).await
}

/// A POST of JSON.
pub(crate) async fn post(server: &Server, path: &str, body: &str) -> Response {
    let mut connection = Connection::to(server).await;
    let headers: &[_] = if body.is_empty() { &[] } else { &[("Content-Type", "application/json")] };
    connection.ask(&format!("POST {path}"), headers, body).await;
    connection.response().await
}

/// Posts code; its pid, when it has ended.
pub(crate) async fn ended(server: &Server, code: &str) -> u64 {
    let body = serde_json::json!({ "code": code }).to_string();
    let response = post(server, "/processes?wait=60000", &body).await;
    let record = response.json();
    assert_eq!((response.status, &record["state"]), (201, &"idle".into()));
    record["pid"].as_u64().expect("a pid")
}
