//! A server that another language opens.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, sync::Arc};

use isolane::{Completion, Error, Host, HostCall, Spelling, Status, Value, start_call};
use isolane_door::{Context, Given, System};
use tokio::{net::TcpStream, sync::watch};

/// The caller's side of a call: it waits for the end.
struct Waiting(watch::Sender<bool>);

impl Host for Waiting {
    fn call(&self, _function: u32, _args: Value, call: HostCall) {
        call.reply(Ok(Value::undefined()));
    }

    fn function_settled(&self, _call: u32, _completion: Completion) {}

    fn promise_settled(&self, _promise: u32, _completion: Completion) {}

    fn settled(&self) {
        self.0.send_replace(true);
    }
}

fn host() -> (Arc<Waiting>, watch::Receiver<bool>) {
    let (sender, settled) = watch::channel(false);
    (Arc::new(Waiting(sender)), settled)
}

/// Opens a system as a face does.
fn open(
    options: Vec<(&str, Given)>,
    open: impl FnOnce(Given, &Context) -> Result<Arc<dyn System>, Error>,
) -> Result<Arc<dyn System>, Error> {
    let entries = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut system = None;
    let begin = |caller: &isolane::Caller| {
        let context = Context {
            spelling: Spelling::Camel,
            runtime: None,
            sessions: None,
            worker_folder: PathBuf::new(),
            caller: caller.clone(),
        };
        system = Some(open(Given::Object(entries), &context)?);
        Ok(async { Ok(Value::undefined()) })
    };
    let internal = |message| Error::new(isolane::ErrorKind::Internal, message);
    start_call(host().0, begin, internal)?;
    system.ok_or_else(|| internal("it did not open"))
}

/// Calls a method, and waits for its end.
async fn call(system: &Arc<dyn System>, method: &str) -> Completion {
    let (host, mut settled) = host();
    let begun = isolane_door::begin(&**system, host, method, Value::undefined());
    let handle = begun.expect("a method").handle;
    settled.wait_for(|is_settled| *is_settled).await.expect("the host lives");
    let result = handle.take_result().expect("settled");
    let value = result.result.expect("a value");
    if result.status == Status::Success { Ok(value) } else { Err(value) }
}

fn thrown(error: &Value) -> String {
    isolane::inspect(error, 1000)
}

#[tokio::test]
async fn a_server_is_opened_listens_and_is_closed() {
    let service = open(Vec::new(), |options, context| {
        isolane_environment::door::open_service(options, context.clone())
    });
    let service = service.expect("a service");
    let number = service.ask("number", Vec::new()).expect("a number").deserialize::<u32>();
    let number = ("service", Given::Number(f64::from(number.expect("a number"))));
    let server = |options: Vec<(&'static str, Given)>| {
        let options = [vec![number.clone()], options].concat();
        open(options, isolane_http::door::open)
    };

    let first = server(vec![("port", Given::Number(0.0)), ("token", Given::Null)]);
    let first = first.expect("a server");
    let listening = call(&first, "listen").await.expect("an address");
    let url = listening.deserialize::<BTreeMap<String, String>>().expect("texts")["url"].clone();
    let address: SocketAddr = url.trim_start_matches("http://").parse().expect("an address");
    assert!(TcpStream::connect(address).await.is_ok());
    let refused = isolane_door::begin(&*first, host().0, "listen", Value::undefined());
    assert_eq!(refused.expect_err("refused").message(), "the server listens already");

    // Misuse is thrown at once, in the words of the caller's language.
    let refused = |options| server(options).err().expect("refused").message().to_owned();
    assert_eq!(
        refused(vec![("maxbodybytes", Given::Number(1.0))]),
        "unknown option 'maxbodybytes'; did you mean 'maxBodyBytes'?"
    );
    assert_eq!(
        refused(vec![("token", Given::Text("short".to_owned()))]),
        "token must have at least 16 characters, got 5"
    );
    // An address that cannot be had rejects.
    let taken = server(vec![("port", Given::Number(address.port().into()))]).expect("a server");
    let error = call(&taken, "listen").await.expect_err("taken");
    let begin = format!("Error: the server cannot listen at 127.0.0.1, port {}: ", address.port());
    assert!(thrown(&error).contains(&begin), "{}", thrown(&error));
    let open_to_all = server(vec![("host", Given::Text("0.0.0.0".to_owned()))]).expect("a server");
    let error = call(&open_to_all, "listen").await.expect_err("no token");
    let message = "TypeError: without a token, host must be a loopback address, got '0.0.0.0'";
    assert!(thrown(&error).contains(message), "{}", thrown(&error));

    let closed = call(&first, "closed");
    let (closed, ()) = tokio::join!(closed, async {
        call(&first, "close").await.expect("closed");
    });
    assert!(closed.is_ok());
    assert!(TcpStream::connect(address).await.is_err());

    drop(service);
    assert_eq!(refused(Vec::new()), "the process service is closed");
}
