//! `browser` as code sees it, on a page that a test plays.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use isolane::{ExecutionOptions, HostFunction, Inputs, NativeRun, Report, Status, run_code};
use isolane_kit::{
    browser::{
        Answer, Browser, BrowserFunctions, BrowserOptions, BrowserRecord, Command, DrivenBrowser,
        Failure, Page, Performed, Task,
    },
    fetch::{Resolved, Resolver, allow::Allow},
    secrets::{SecretOptions, Secrets},
};
use serde_json::{Value as Json, json};

/// How long anything may take that is not meant to wait.
const CEILING: Duration = Duration::from_mins(2);

/// Answers of a page by the kinds of commands.
type Script = dyn Fn(&Command) -> Result<Answer, Failure> + Send + Sync;

/// A page that a script plays, and what it was told.
struct Played {
    script: Box<Script>,
    told: Arc<Mutex<Vec<Command>>>,
    delay: Duration,
    place: Place,
    ends: Arc<Ends>,
}

/// How many commands have ended, and how many had when each one began.
#[derive(Default)]
struct Ends {
    count: AtomicUsize,
    before: Mutex<Vec<usize>>,
}

/// The URL of the page, if it tells.
type Place = Arc<Mutex<Option<&'static str>>>;

impl Browser for Played {
    fn perform(&self, command: Command, time: Duration, _: &NativeRun) -> Performed {
        let ended = self.ends.count.load(Ordering::SeqCst);
        self.ends.before.lock().expect("the counts").push(ended);
        self.told.lock().expect("the commands").push(command.clone());
        let ends = Arc::clone(&self.ends);
        let answer = (self.script)(&command);
        let (delay, place) = (self.delay, *self.place.lock().expect("the place"));
        Box::pin(async move {
            let in_time = tokio::time::timeout(time, tokio::time::sleep(delay)).await.is_ok();
            ends.count.fetch_add(1, Ordering::SeqCst);
            match command {
                _ if !in_time => Err(Failure::Timeout),
                // The sandbox itself plays the page's engine.
                Command::Evaluate { expression } => evaluated(&expression).await,
                Command::Halt => match place {
                    Some("") => Ok(Answer::Nothing),
                    Some(url) => {
                        Ok(Answer::Arrived { url: url.to_owned(), title: String::new(), status: 0 })
                    }
                    None => Err(Failure::Timeout),
                },
                _ => answer,
            }
        })
    }
}

async fn evaluated(expression: &str) -> Result<Answer, Failure> {
    // There is no `eval` here: the function stands in its place.
    let (writer, rest) = expression.rsplit_once("\n)(\"").expect("two arguments");
    let (function, most) = rest.rsplit_once("\", ").expect("two arguments");
    let function: String = serde_json::from_str(&format!("\"{function}\"")).expect("a text");
    let writer = writer.replace("(0, eval)(code)", &function);
    let source = format!("export default await {writer}\n)('', {most}");
    let btoa = HostFunction::native(isolane_kit::function("btoa").expect("it has it"));
    let globals = Inputs::new().with("btoa", btoa);
    let options = ExecutionOptions { globals, ..Default::default() };
    let result = run_code(source, options).await.expect("a run");
    match (result.status, result.result) {
        (Status::Success, Some(value)) => Ok(Answer::Text(value.deserialize().expect("a text"))),
        _ => Err(Failure::Other(format!("{:?}", result.error))),
    }
}

struct Hosts;

impl Resolver for Hosts {
    fn resolve(&self, host: &str) -> Resolved {
        let addresses: HashMap<_, &[&str]> = HashMap::from([
            ("public.test", &["93.184.216.34"][..]),
            ("inner.test", &["10.0.0.7"]),
            ("mixed.test", &["93.184.216.34", "127.0.0.1"]),
        ]);
        let found = addresses.get(host).ok_or_else(|| io::Error::other("no such name"));
        let found = found.map(|all| {
            all.iter().map(|text| text.parse::<IpAddr>().expect("an address")).collect()
        });
        Box::pin(async move { found })
    }
}

/// A page with a script, and rules.
struct Test {
    page: Page,
    told: Arc<Mutex<Vec<Command>>>,
    records: Arc<Mutex<Vec<BrowserRecord>>>,
    secrets: Arc<Secrets>,
    place: Place,
    ends: Arc<Ends>,
}

impl Test {
    fn new(script: impl Fn(&Command) -> Result<Answer, Failure> + Send + Sync + 'static) -> Self {
        Self::with(script, |_| {}, Duration::ZERO)
    }

    fn with(
        script: impl Fn(&Command) -> Result<Answer, Failure> + Send + Sync + 'static,
        amend: impl FnOnce(&mut BrowserOptions),
        delay: Duration,
    ) -> Self {
        let told = Arc::default();
        let place = Place::default();
        let ends = Arc::<Ends>::default();
        let browser = Played {
            script: Box::new(script),
            told: Arc::clone(&told),
            delay,
            place: Arc::clone(&place),
            ends: Arc::clone(&ends),
        };
        let mut options = BrowserOptions::new(Allow::public());
        options.resolver = Arc::new(Hosts);
        amend(&mut options);
        let secrets = Arc::new(Secrets::new());
        let page = Page::new(Arc::new(browser), options, Arc::clone(&secrets));
        Self { page, told, records: Arc::default(), secrets, place, ends }
    }

    fn start(&self, source: &str) -> isolane::Execution {
        let records = Arc::clone(&self.records);
        let keep =
            move |record| records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        let functions = BrowserFunctions::new(self.page.clone(), keep).functions();
        let browser = functions.into_iter().fold(Inputs::new(), |all, (name, function)| {
            all.with(name, HostFunction::native(function))
        });
        let names: Vec<_> = browser_names().collect();
        let prelude = format!("const browser = {{ {} }};", names.join(", "));
        let fails = "const fails = async (call) => { try { return await call } catch (e) { return [e.name, e.message] } };";
        let source = format!("{prelude} {fails} {source}");
        let options =
            ExecutionOptions { globals: browser, report: Report::On, ..Default::default() };
        run_code(source, options)
    }

    fn run(&self, source: &str) -> Json {
        let value = self.start(source).wait().expect("a run").into_value().expect("a success");
        value.deserialize().expect("plain data")
    }

    fn told(&self) -> Vec<Command> {
        std::mem::take(&mut self.told.lock().expect("the commands"))
    }

    fn records(&self) -> Vec<(&'static str, String, Option<&'static str>)> {
        let records = std::mem::take(&mut *self.records.lock().expect("the records"));
        records.into_iter().map(|record| (record.name, record.summary, record.error)).collect()
    }
}

/// A page that the test drives.
struct Driver {
    browser: Arc<DrivenBrowser>,
    news: Mutex<std::sync::mpsc::Receiver<()>>,
    page: Page,
}

impl Driver {
    fn new() -> Self {
        let (tell, news) = std::sync::mpsc::channel();
        let browser = Arc::new(DrivenBrowser::new(move |_| {
            // Nobody may hear any more.
            let _ = tell.send(());
        }));
        let mut options = BrowserOptions::new(Allow::public());
        options.resolver = Arc::new(Hosts);
        let page = Page::new(Arc::clone(&browser) as _, options, Arc::default());
        Self { browser, news: Mutex::new(news), page }
    }

    fn start(&self, source: &str) -> isolane::Execution {
        let functions = BrowserFunctions::new(self.page.clone(), |_| {}).functions();
        let globals = functions.into_iter().fold(Inputs::new(), |all, (name, function)| {
            all.with(name, HostFunction::native(function))
        });
        run_code(source, ExecutionOptions { globals, ..Default::default() })
    }

    /// Waits until the driver finds something among its news.
    fn until<T>(&self, mut find: impl FnMut(&DrivenBrowser) -> Option<T>) -> T {
        let news = self.news.lock().expect("the news");
        loop {
            if let Some(found) = find(&self.browser) {
                return found;
            }
            news.recv_timeout(CEILING).expect("news");
        }
    }

    fn next(&self) -> Task {
        self.until(DrivenBrowser::take)
    }
}

#[test]
fn a_command_of_a_run_that_ended_is_given_up_and_the_page_is_free() {
    let driver = Driver::new();
    let run = driver.start("await navigate('https://public.test/')");
    let Task { number, command, .. } = driver.next();
    assert!(matches!(command, Command::Navigate { .. }), "{command:?}");
    assert!(driver.browser.is_awaited(number));
    run.terminate(None);
    driver.until(|browser| (!browser.is_awaited(number)).then_some(()));
    assert_eq!(run.wait().expect("a run").status, Status::Terminated);
    let next = driver.start("export default await extractText()");
    // The driver says where the page is, which needs no other command.
    driver.browser.answer(number, Err(Failure::Stopped("https://public.test/".to_owned())));
    let Task { number, command, .. } = driver.next();
    assert!(matches!(command, Command::Read { .. }), "{command:?}");
    driver.browser.answer(number, Ok(Answer::Text("a text".to_owned())));
    let value = next.wait().expect("a run").into_value().expect("a success");
    assert_eq!(value.deserialize::<String>().expect("a text"), "a text");
}

#[test]
fn a_page_that_was_stopped_elsewhere_is_left_after_the_end_of_its_run() {
    let driver = Driver::new();
    let run = driver.start("await navigate('https://public.test/')");
    let Task { number, .. } = driver.next();
    run.terminate(None);
    driver.until(|browser| (!browser.is_awaited(number)).then_some(()));
    driver.browser.answer(number, Err(Failure::Stopped("file:///etc/passwd".to_owned())));
    let Task { number, command, .. } = driver.next();
    assert!(
        matches!(&command, Command::Navigate { url, .. } if url == "about:blank"),
        "{command:?}"
    );
    // Its run is over, and the command is awaited all the same.
    assert!(driver.browser.is_awaited(number));
    driver.browser.answer(number, Ok(arrived("about:blank")));
    let next = driver.start("export default await extractText()");
    let Task { number, command, .. } = driver.next();
    assert!(matches!(command, Command::Read { .. }), "{command:?}");
    driver.browser.answer(number, Ok(Answer::Text("a text".to_owned())));
    assert_eq!(next.wait().expect("a run").status, Status::Success);
}

fn browser_names() -> impl Iterator<Item = &'static str> {
    ["navigate", "screenshot", "click", "type", "extractText", "extractHtml", "evaluate", "close"]
        .into_iter()
}

fn arrived(url: &str) -> Answer {
    Answer::Arrived { url: url.to_owned(), title: "a title".to_owned(), status: 200 }
}

/// A page that is wherever it is sent.
#[expect(clippy::unnecessary_wraps, reason = "a script may fail")]
fn obedient(command: &Command) -> Result<Answer, Failure> {
    Ok(match command {
        Command::Navigate { url, .. } => arrived(url),
        Command::Read { selector, property, .. } => {
            Answer::Text(format!("{} of {selector}", property.name()))
        }
        Command::Screenshot { .. } => {
            let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
            png.extend([0, 0, 5, 0, 0, 0, 2, 208, 8]);
            Answer::Bytes(png)
        }
        _ => Answer::Nothing,
    })
}

#[test]
fn each_method_does_its_command() {
    let test = Test::new(obedient);
    let value = test.run(
        "export default [
            await navigate('https://public.test/a?q#f'),
            await navigate('http://public.test', { wait_until: 'networkidle' }),
            await click('#a'), await type('#b', 'text'), await type('#b', 'text', { clear_first: true }),
            await extractText(), await extractText('p'), await extractHtml(), await extractHtml('p', { outer: true }),
            (({ image, ...size }) => [image.length, size])(await screenshot()),
            (await screenshot({ selector: 'p', full_page: true })).width, await close()]",
    );
    let page = |url: &str| json!({ "url": url, "title": "a title", "status": 200 });
    let expected = json!([
        page("https://public.test/a?q#f"),
        page("http://public.test/"),
        null,
        null,
        null,
        "innerText of body",
        "innerText of p",
        "innerHTML of html",
        "outerHTML of p",
        [36, { "width": 1280, "height": 720 }],
        1280,
        null
    ]);
    assert_eq!(value, expected);
    let told = test.told();
    assert_eq!(told.len(), 12);
    assert!(matches!(&told[4], Command::Type { clear_first: true, .. }), "{:?}", told[4]);
    assert!(matches!(&told[10], Command::Screenshot { full_page: true, selector: Some(_) }));
    let records = test.records();
    assert_eq!(records[0], ("browser.navigate", "https://public.test/a".to_owned(), None));
    assert_eq!(records[3], ("browser.type", "#b".to_owned(), None));
    assert_eq!(records[11], ("browser.close", String::new(), None));
}

#[test]
fn wrong_arguments_are_a_type_error_that_says_what_is_taken() {
    let test = Test::new(obedient);
    let calls = "navigate() navigate(1) navigate('x') navigate('https://u@public.test') navigate('https://a.test',{wait_until:'now'})
        navigate('https://a.test', 1) click() click(1) type('a') type('a',1) type('a','b',{clear_first:1}) extractText(1)
        extractHtml('a',{outer:1}) evaluate() evaluate({}) screenshot(1) screenshot({selector:1}) screenshot({full_page:'x'})";
    for call in calls.split_whitespace().collect::<Vec<_>>().join(" ").replace(", ", ",").split(' ')
    {
        let value = test.run(&format!("export default await fails({call})"));
        let method = call.split('(').next().unwrap_or_default();
        assert_eq!(value[0], "TypeError", "{call}: {value}");
        let begins = format!("browser.{method} takes ");
        assert!(value[1].as_str().is_some_and(|text| text.starts_with(&begins)), "{call}: {value}");
    }
    assert_eq!(test.told(), []);
}

#[test]
fn navigation_is_judged_before_anything_is_told() {
    let test = Test::with(
        obedient,
        |options| {
            let entries =
                ["http://*.test:*", "http://[::1]", "http://10.0.0.7", "http://127.0.0.1"];
            options.allow = Allow::list(entries.map(Into::into), "allow").expect("patterns");
        },
        Duration::ZERO,
    );
    let blocked = [
        ("https://public.test/", "scheme 'https:' is not allowed"),
        ("file:///etc/passwd", "scheme 'file:' is not allowed"),
        ("javascript:alert(1)", "scheme 'javascript:' is not allowed"),
        ("data:text/html,x", "scheme 'data:' is not allowed"),
        ("about:blank", "scheme 'about:' is not allowed"),
        ("http://inner.test/", "'inner.test' has no address that may be reached"),
        ("http://mixed.test/", "'mixed.test' has no address that may be reached"),
        ("http://10.0.0.7/", "'10.0.0.7' has no address that may be reached"),
        ("http://0x7f.1/", "'127.0.0.1' has no address that may be reached"),
        ("http://[::1]/", "'[::1]' has no address that may be reached"),
    ];
    for (url, message) in blocked {
        let value = test.run(&format!("export default await fails(navigate('{url}'))"));
        assert_eq!(value, json!(["BrowserBlocked", message]), "{url}");
    }
    let value = test.run("export default await fails(navigate('http://nowhere.test/'))");
    assert_eq!(value, json!(["BrowserError", "cannot find 'nowhere.test'"]));
    assert_eq!(test.told(), []);
}

#[test]
fn a_page_that_arrives_elsewhere_is_left() {
    let elsewhere = |command: &Command| match command {
        Command::Navigate { url, .. } if url == "about:blank" => Ok(arrived(url)),
        Command::Navigate { .. } => Ok(arrived("https://evil.test/taken?x")),
        other => obedient(other),
    };
    let test = Test::with(
        elsewhere,
        |options| {
            options.allow = Allow::list(["https://public.test".into()], "allow").expect("patterns");
        },
        Duration::ZERO,
    );
    let value = test.run("export default await fails(navigate('https://public.test/'))");
    let message = "'evil.test' is not allowed; allowed: 'https://public.test'";
    assert_eq!(value, json!(["BrowserBlocked", message]));
    let told = test.told();
    assert!(matches!(&told[1], Command::Navigate { url, .. } if url == "about:blank"), "{told:?}");
    assert_eq!(told.len(), 2);
}

#[test]
fn a_navigation_that_fails_is_stopped_and_judged_where_it_came_to() {
    let fails = |command: &Command| match command {
        Command::Navigate { url, .. } if url == "about:blank" => Ok(arrived(url)),
        Command::Navigate { url, .. } if url.ends_with("late") => Err(Failure::Timeout),
        Command::Navigate { .. } => Err(Failure::Other("net::ERR_CONNECTION_REFUSED".to_owned())),
        other => obedient(other),
    };
    let test = Test::new(fails);
    let cases = [
        (Some("https://public.test/shown"), false),
        (Some("about:blank"), false),
        (Some(""), false),
        (Some("http://10.0.0.7/taken"), false),
        (Some("file:///etc/passwd"), true),
        (Some("chrome-error://chromewebdata/"), true),
        (Some("nowhere"), true),
        (None, true),
    ];
    for (place, is_left) in cases {
        *test.place.lock().expect("the place") = place;
        for (path, expected) in [
            ("late", ["BrowserTimeout", "the browser took longer than 30000 ms"]),
            ("refused", ["BrowserError", "net::ERR_CONNECTION_REFUSED"]),
        ] {
            let source =
                format!("export default await fails(navigate('https://public.test/{path}'))");
            assert_eq!(test.run(&source), json!(expected), "{place:?}");
            let told = test.told();
            assert_eq!(told[1], Command::Halt, "{told:?}");
            let left = told.get(2).map(
                |command| matches!(command, Command::Navigate { url, .. } if url == "about:blank"),
            );
            assert_eq!(left, is_left.then_some(true), "{place:?}: {told:?}");
            assert!(told.len() <= 3, "{told:?}");
        }
    }
}

#[test]
fn a_page_that_cannot_be_left_shows_nothing() {
    let stays = Arc::new(AtomicBool::new(true));
    let is_stuck = Arc::clone(&stays);
    let test = Test::new(move |command| match command {
        Command::Navigate { url, .. } if url == "about:blank" => {
            if is_stuck.load(Ordering::SeqCst) { Err(Failure::Timeout) } else { Ok(arrived(url)) }
        }
        Command::Navigate { .. } => Err(Failure::Timeout),
        Command::Read { .. } => Ok(Answer::Text("a text".to_owned())),
        other => obedient(other),
    });
    *test.place.lock().expect("the place") = Some("file:///etc/passwd");
    let late = json!(["BrowserTimeout", "the browser took longer than 30000 ms"]);
    assert_eq!(test.run("export default await fails(navigate('https://public.test/'))"), late);
    assert_eq!(test.run("export default await fails(extractText())"), late);
    assert!(!test.told().iter().any(|command| matches!(command, Command::Read { .. })));
    stays.store(false, Ordering::SeqCst);
    assert_eq!(test.run("export default await extractText()"), json!("a text"));
    test.told();
    // It was judged once.
    assert_eq!(test.run("export default await extractText()"), json!("a text"));
    assert_eq!(test.told().len(), 1);
}

#[test]
fn evaluation_takes_expressions_bodies_and_functions_and_gives_json() {
    let test = Test::new(obedient);
    let cases = [
        ("1 + 1", json!(2)),
        ("({ a: [1, null, undefined] })", json!({ "a": [1, null, null] })),
        ("{ a: 1 }", json!({ "a": 1 })),
        ("const x = 20; return x + 1", json!(21)),
        ("return", json!(null)),
        ("", json!(null)),
        ("() => 'called'", json!("called")),
        ("async () => { return 'later' }", json!("later")),
        ("function f() { return 3 }", json!(3)),
        ("Promise.resolve('awaited')", json!("awaited")),
        ("1 // with a comment", json!(1)),
        ("return 2 // with a comment", json!(2)),
        ("[10n, 2n ** 60n]", json!([10, "1152921504606846976"])),
        ("new Map([['a', 1]])", json!({ "a": 1 })),
        ("new Map([[1, 2]])", json!([[1, 2]])),
        ("new Set([1, 'b'])", json!([1, "b"])),
        ("new Uint8Array([104, 105])", json!("aGk=")),
        ("new TypeError('no')", json!({ "name": "TypeError", "message": "no" })),
        ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("[() => 1, Symbol(), undefined]", json!([null, null, null])),
        ("'</script>\\u2028'", json!("</script>\u{2028}")),
    ];
    for (code, expected) in cases {
        let source = format!("export default await fails(evaluate({}))", json!(code));
        assert_eq!(test.run(&source), expected, "{code}");
    }
    let failures = [
        ("throw new RangeError('x')", "BrowserError", "RangeError: x"),
        ("(() => { throw 'plain' })()", "BrowserError", "plain"),
        (
            "const a = {}; a.b = [a]; return a",
            "SerializationError",
            "result.b[0]: a cycle cannot be written as JSON",
        ),
        (
            "({ p: Promise.resolve() })",
            "SerializationError",
            "result.p: a promise cannot be written as JSON",
        ),
    ];
    for (code, name, message) in failures {
        let source = format!("export default await fails(evaluate({}))", json!(code));
        assert_eq!(test.run(&source), json!([name, message]), "{code}");
    }
    let value = test.run("export default await fails(evaluate('return )('))");
    assert_eq!(value[0], "BrowserError");
    assert!(test.records().iter().all(|(_, summary, _)| summary.is_empty()));
}

#[test]
fn code_that_throws_is_not_evaluated_again() {
    let test = Test::new(obedient);
    // A SyntaxError at run time is no reason to read the code as a body.
    let value = test.run("export default await fails(evaluate('JSON.parse(\"{\")'))");
    assert_eq!(value[0], "BrowserError");
    assert!(value[1].as_str().is_some_and(|text| text.starts_with("SyntaxError: ")), "{value}");
    let evaluated = test.told().len();
    assert_eq!(evaluated, 1, "it is asked once");
}

#[test]
fn secrets_reach_no_page_and_come_back_as_placeholders() {
    let leaks = |command: &Command| match command {
        Command::Read { .. } => Ok(Answer::Text("key=hunter2hunter2.".to_owned())),
        Command::Click { .. } => {
            Err(Failure::Other("no hunter2hunter2 here\nat hidden".to_owned()))
        }
        other => obedient(other),
    };
    let test = Test::new(leaks);
    let hosts = vec!["public.test".to_owned()];
    let options =
        SecretOptions { value: "hunter2hunter2".to_owned().into(), hosts, ..Default::default() };
    test.secrets.set("KEY", options).expect("a secret");
    let number = SecretOptions {
        value: "1234567890".to_owned().into(),
        hosts: vec!["public.test".to_owned()],
        ..Default::default()
    };
    test.secrets.set("PIN", number).expect("a secret");
    let sealed = test.secrets.seen()[0].1.to_string();
    let calls = [
        format!("navigate('https://public.test/?k={sealed}')"),
        format!("type('#a', 'x {sealed} y')"),
        format!("click('{sealed}')"),
        format!("evaluate('return \"{sealed}\"')"),
        format!("screenshot({{ selector: '{sealed}' }})"),
        format!("extractHtml('{sealed}')"),
    ];
    for call in calls {
        let value = test.run(&format!("export default await fails({call})"));
        assert_eq!(
            value,
            json!(["BrowserBlocked", "secret 'KEY' is not for the browser"]),
            "{call}"
        );
    }
    assert_eq!(test.told(), []);
    let value = test.run("export default [await extractText(), await fails(click('a'))]");
    let expected = json!([format!("key={sealed}."), ["BrowserError", format!("no {sealed} here")]]);
    assert_eq!(value, expected);
    let code = json!(
        "({ hunter2hunter2: 'hunter' + '2hunter2', n: 1234567890, b: btoa('hunter2hunter2') })"
    );
    let value = test.run(&format!("export default await evaluate({code})"));
    let text = value.to_string();
    assert!(!text.contains("hunter2hunter2") && !text.contains("1234567890"), "{text}");
    assert_eq!(value[&sealed], sealed.as_str());
    assert!(value["n"].as_str().is_some_and(|text| text.starts_with("sealed_PIN_")), "{text}");
}

#[test]
fn calls_end_after_their_time_and_bytes() {
    let large = |command: &Command| match command {
        Command::Read { property, .. } if property.name() == "innerText" => Ok(Answer::TooLarge),
        Command::Read { .. } => Ok(Answer::Text("x".repeat(2_000))),
        other => obedient(other),
    };
    let test = Test::with(large, |options| options.limits.max_result_bytes = 1_000, Duration::ZERO);
    let value = test.run(
        "export default [await fails(extractText()), await fails(extractHtml()), await fails(evaluate('\"x\".repeat(1e6)'))]",
    );
    let expected = json!(["BrowserLimit", "the answer is larger than 1000 bytes"]);
    assert_eq!(value, json!([expected, expected, expected]));
    let slow =
        Test::with(obedient, |options| options.limits.timeout_ms = 50, Duration::from_hours(1));
    let value =
        slow.run("export default await Promise.all([fails(click('a')), fails(click('b'))])");
    let expected = json!(["BrowserTimeout", "the browser took longer than 50 ms"]);
    assert_eq!(value, json!([expected, expected]));
    // The second one waited for its turn, and had its own time after that.
    assert_eq!(slow.told().len(), 2);
}

#[test]
fn one_call_at_a_time_uses_the_page_also_after_the_end_of_a_run() {
    let slow = Duration::from_millis(200);
    let test = Test::with(obedient, |_| {}, slow);
    let run = test.start("click('a'); click('b'); report(1); await new Promise(() => {})");
    let started = Instant::now();
    while run.reports().is_empty() || test.told.lock().expect("the commands").is_empty() {
        assert!(started.elapsed() < CEILING, "it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.terminate(None);
    assert_eq!(run.wait().expect("a run").status, Status::Terminated);
    // The first one goes on in the browser; the second one never begins.
    test.run("export default await click('c')");
    assert_eq!(*test.ends.before.lock().expect("the counts"), [0, 1]);
    let told = test.told();
    assert_eq!(told.len(), 2, "{told:?}");
    let aborted = test.records().into_iter().filter(|(_, _, error)| *error == Some("Aborted"));
    assert_eq!(aborted.count(), 2);
}
