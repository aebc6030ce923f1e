//! The server of the table of tools, as the table describes it.
//!
//! In: requests by HTTP, one a connection. Out: answers. Its threads end with the process.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Map, json};

/// A server that is running.
pub(crate) struct Server {
    /// `http://127.0.0.1:PORT`.
    pub(crate) origin: String,
    /// Another one.
    pub(crate) other: String,
}

/// The parts of requests: their lines, headers and bodies.
type Seen = Arc<Mutex<Vec<String>>>;

impl Server {
    pub(crate) fn start() -> Self {
        let seen = Seen::default();
        let listen = || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let origin = format!("http://{}", listener.local_addr().expect("an address"));
            let seen = Arc::clone(&seen);
            thread::spawn(move || {
                for connection in listener.incoming().flatten() {
                    let seen = Arc::clone(&seen);
                    // A client that goes away is no matter.
                    thread::spawn(move || serve(connection, &seen).ok());
                }
            });
            origin
        };
        Self { origin: listen(), other: listen() }
    }

    /// A table with its origins in it.
    pub(crate) fn filled(&self, table: &str) -> String {
        table.replace("{origin}", &self.origin).replace("{other}", &self.other)
    }
}

fn serve(connection: TcpStream, seen: &Seen) -> std::io::Result<()> {
    let mut lines = BufReader::new(connection.try_clone()?);
    let line = read_line(&mut lines)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or("").to_owned());
    let mut headers = Map::new();
    loop {
        let header = read_line(&mut lines)?;
        let Some((name, value)) = header.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), json!(value.trim()));
    }
    let length = headers.get("content-length").and_then(|length| length.as_str()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    lines.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body);
    let (place, query) = path.split_once('?').unwrap_or((&path, ""));
    let mut parts = place.split('/').skip(1);
    let (kind, count) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    let count = count.parse().unwrap_or(0);
    let mut seen = seen.lock().expect("no panic");
    if kind != "seen" {
        seen.push(format!("{line}{} {body}", json!(headers)));
    }
    let had = seen.iter().filter(|request| request.contains(query)).count();
    drop(seen);
    if kind == "raw" {
        let mut connection = connection;
        connection.write_all(&unescaped(query))?;
        connection.write_all(&vec![b'x'; count])?;
        // One that is held ends when the client goes away.
        return if parts.next() == Some("hold") { lines.read_exact(&mut [0]) } else { Ok(()) };
    }
    let echo = || json!({ "method": method, "path": path, "body": body, "headers": headers });
    let (status, header, body) = match place {
        "/json" => ("200 OK", "Content-Type: application/json\r\n", b"{\"a\":1}".to_vec()),
        "/echo" => {
            ("200 OK", "Content-Type: application/json\r\n", echo().to_string().into_bytes())
        }
        "/status" => ("404 Not Found", "", b"no".to_vec()),
        "/redirect" => ("302 Found", "Location: /json\r\n", Vec::new()),
        "/loop" => ("302 Found", "Location: /loop\r\n", Vec::new()),
        "/large" => ("200 OK", "", vec![b'x'; 100_000]),
        "/bytes" => ("200 OK", "", (0..=255).collect()),
        "/seen" => ("200 OK", "", had.to_string().into_bytes()),
        _ if kind == "gzip" => {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(&vec![b'x'; count])?;
            ("200 OK", "Content-Encoding: gzip\r\n", gzip.finish()?)
        }
        _ => {
            // It ends when the client goes away.
            lines.read_exact(&mut [0])?;
            return Ok(());
        }
    };
    let mut connection = connection;
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {status}\r\n{header}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    if method == "HEAD" { Ok(()) } else { connection.write_all(&body) }
}

/// A line, whose bytes are characters each.
fn read_line(lines: &mut impl BufRead) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    lines.read_until(b'\n', &mut bytes)?;
    Ok(bytes.into_iter().map(char::from).collect())
}

/// The bytes of a text that is percent-encoded.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    bytes
}
