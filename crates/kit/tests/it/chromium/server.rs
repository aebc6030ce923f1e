//! A server of pages, which notes what it is asked for.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use super::support::CEILING;

const PAGE: &str = "<!doctype html><title>a page</title><body><p>one</p><p>two</p>
  <button onclick=\"this.textContent = 'clicked'\">button</button><input value=\"before\">
  <script>window.shared = { day: new Date(0), list: [1, 2n] }</script></body>";

/// A server on all addresses of loopback, which notes the host and the path of each request. 127.0.0.2 is one that no kit
/// here lets through.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    pages: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Self { port, requests: Arc::default(), pages: Arc::default() };
        let (requests, pages) = (Arc::clone(&server.requests), Arc::clone(&server.pages));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (requests, pages) = (Arc::clone(&requests), Arc::clone(&pages));
                thread::spawn(move || serve(&socket, port, &requests, &pages));
            }
        });
        server
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Has the server show that document at a path.
    pub(crate) fn show(&self, path: &str, html: &str) -> String {
        self.pages.lock().expect("the pages").push((path.to_owned(), html.to_owned()));
        self.at(path)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("the requests").clone()
    }
}

fn serve(
    mut socket: &TcpStream,
    port: u16,
    requests: &Mutex<Vec<String>>,
    pages: &Mutex<Vec<(String, String)>>,
) {
    let mut lines = BufReader::new(socket).lines().map_while(Result::ok);
    let Some(path) = lines.next().and_then(|line| Some(line.split(' ').nth(1)?.to_owned())) else {
        return;
    };
    let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    let host = head
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
    let host = host.unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    requests.lock().expect("the requests").push(format!("{host}{path}"));
    let known = pages.lock().expect("the pages").iter().rev().find(|(of, _)| *of == path).cloned();
    let (status, more, body) = match (path.as_str(), known) {
        (_, Some((_, html))) => ("200 OK", "Content-Type: text/html".to_owned(), html),
        ("/away", _) => {
            ("302 Found", format!("Location: http://127.0.0.1:{port}/forbidden"), String::new())
        }
        ("/hello", _) => (
            "200 OK",
            "Content-Type: text/plain".to_owned(),
            "the value is hunter2-hunter2".to_owned(),
        ),
        ("/missing", _) => {
            ("404 Not Found", "Content-Type: text/html".to_owned(), "none".to_owned())
        }
        ("/locked", _) => (
            "401 Unauthorized",
            "WWW-Authenticate: Basic realm=\"x\"".to_owned(),
            "locked".to_owned(),
        ),
        ("/file", _) => (
            "200 OK",
            "Content-Disposition: attachment; filename=\"x.bin\"".to_owned(),
            "x".repeat(1000),
        ),
        // An answer that comes late.
        ("/slow", _) => {
            thread::sleep(Duration::from_secs(1));
            ("200 OK", "Content-Type: text/plain".to_owned(), "slow".to_owned())
        }
        // An answer that never comes.
        ("/never", _) => return thread::sleep(4 * CEILING),
        _ => ("200 OK", "Content-Type: text/html".to_owned(), PAGE.to_owned()),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\n{more}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // The browser may be gone.
    let _ = socket.write_all(answer.as_bytes());
}
