//! `browser` on pages of Chromium, and the proxy of the kit in front of them. Built as a test of `isolane-worker` it has
//! the code in processes.

mod elements;
mod hostile;
// They are looked for in /proc.
#[cfg(target_os = "linux")]
mod processes;
mod server;
mod support;

use std::{env, fs, net::UdpSocket, os::unix::fs::MetadataExt, path::PathBuf};

use futures::executor::block_on;
use isolane::Status;
use isolane_kit::{
    AllowOption, Kit, KitOptions, ToolOptions,
    browser::{BrowserLimits, Chromium, ChromiumOptions, Network, Sandbox},
    fetch::allow::AllowEntry,
    secrets::SecretOptions,
};
use serde_json::{Value as Json, json};

use self::{
    server::Server,
    support::{CEILING, Closes, Test, chromium, options, until, value},
};

#[test]
fn code_uses_a_page() {
    let Some(test) = Test::new() else { return };
    let tool = "
      const arrived = await browser.navigate(args.url);
      await browser.click('button');
      await browser.type('input', ' after');
      const added = await browser.evaluate(\"document.querySelector('input').value\");
      await browser.type('input', 'anew', { clear_first: true });
      const shot = await browser.screenshot();
      return {
        arrived, added,
        anew: await browser.evaluate(\"return document.querySelector('input').value\"),
        shared: await browser.evaluate('() => window.shared'),
        text: await browser.extractText('p'),
        body: (await browser.extractText()).includes('clicked'),
        html: await browser.extractHtml('p'), outer: await browser.extractHtml('p', { outer: true }),
        shot: [shot.image.startsWith('iVBORw0KGgo'), shot.width, shot.height],
        part: (await browser.screenshot({ selector: 'button' })).width < shot.width,
        missing: (await browser.navigate(args.url + 'missing')).status,
      }";
    let expected = json!({
        "arrived": { "url": test.server.at("/"), "title": "a page", "status": 200 },
        "added": "before after",
        "anew": "anew",
        "shared": { "day": "1970-01-01T00:00:00.000Z", "list": [1, 2] },
        "text": "one",
        "body": true,
        "html": "one",
        "outer": "<p>one</p>",
        "shot": [true, 1280, 720],
        "part": true,
        "missing": 404,
    });
    assert_eq!(test.value(tool), expected);
}

#[test]
fn a_page_that_was_closed_is_followed_by_another_one() {
    let Some(test) = Test::new() else { return };
    let tool = "await browser.close(); await browser.navigate(args.url); await browser.close();
        const text = await browser.extractText();
        return [text, (await browser.navigate(args.url)).status]";
    assert_eq!(test.value(tool), json!(["", 200]));
}

#[test]
fn navigation_obeys_the_rules_also_where_it_arrives() {
    let amend = |server: &Server, options: &mut KitOptions| {
        let allow = [AllowEntry::from(server.at("/away").as_str())];
        options.browser.as_mut().expect("a browser").allow = Some(AllowOption::List(allow.into()));
    };
    let Some(chromium) = chromium(|_| {}).map(Closes) else { return };
    let server = Server::new();
    let mut options = options(&chromium.0, &server);
    amend(&server, &mut options);
    let kit = Kit::new(options).expect("a kit");
    let tool = "return [await fails(browser.navigate(args.other)), (await fails(browser.navigate(args.away)))[0],
        await browser.evaluate('location.href')]";
    let args = json!({ "other": format!("http://localhost:{}/", server.port), "away": server.at("/away") });
    let value = value(&kit, tool, args);
    assert_eq!(value[0][0], "BrowserBlocked");
    assert_eq!(value[1], "BrowserBlocked");
    assert_eq!(value[2], "about:blank");
    let requests = server.requests();
    assert!(
        requests.starts_with(&["127.0.0.1/away", "127.0.0.1/forbidden"].map(str::to_owned)),
        "{requests:?}"
    );
}

#[test]
fn a_page_that_never_rests_is_brought_to_rest() {
    let calls = |never: &str| {
        [
            "browser.click('#none')".to_owned(),
            "browser.evaluate('for (;;) ;')".to_owned(),
            "browser.evaluate('new Promise(() => {})')".to_owned(),
            format!("browser.navigate('{never}')"),
        ]
    };
    for number in 0..4 {
        Test::within_limits(|test, limit_ms| {
            let call = &calls(&test.server.at("/never"))[number];
            let tool = format!(
                "await browser.navigate(args.url); return [await fails({call}), await browser.extractText('p')]"
            );
            let over = format!("the browser took longer than {limit_ms} ms");
            (test.result(&tool), json!([["BrowserTimeout", over], "one"]))
        });
    }
}

#[test]
fn a_slow_page_to_which_nobody_was_sent_is_left() {
    // It goes elsewhere, where it is never loaded.
    let show = |test: &Test| {
        test.server.show("/elsewhere", "<p>elsewhere</p><img src='/never'>");
        test.server.show("/leads", "<script>location.replace('/elsewhere')</script>")
    };
    Test::within_limits(|test, _| {
        let tool = "const failed = await fails(browser.navigate(args.url)); return [failed[0], await browser.extractText()]";
        (test.result_at(&show(test), tool), json!(["BrowserTimeout", ""]))
    });
    // One that is where it was told to go stays, as far as it came.
    Test::within_limits(|test, _| {
        show(test);
        let tool = "const failed = await fails(browser.navigate(args.url)); return [failed[0], await browser.extractText('p')]";
        let seen = test.result_at(&test.server.at("/elsewhere"), tool);
        (seen, json!(["BrowserTimeout", "elsewhere"]))
    });
}

#[test]
fn a_run_that_ends_gives_the_page_back() {
    // A command that went on would take the page for longer than a run may last.
    let limits = BrowserLimits { timeout_ms: 1_000_000, ..BrowserLimits::default() };
    let Some(test) = Test::limited(limits) else { return };
    test.value("await browser.extractText()");
    for call in ["browser.click('#none')", "browser.evaluate('for (;;) ;')"] {
        let options = ToolOptions { timeout_ms: Some(300), ..ToolOptions::default() };
        let ended = test.kit.run_tool(format!("await {call}"), options).wait().expect("a run");
        assert_eq!(ended.status, Status::Terminated);
        assert_eq!(
            test.value("await browser.navigate(args.url); return await browser.extractText('p')"),
            "one"
        );
    }
}

#[test]
fn secrets_do_not_reach_a_page_and_do_not_come_back_from_one() {
    let Some(test) = Test::with(
        |_| {},
        |options| {
            let hosts = vec!["public.test".to_owned()];
            let value = "hunter2-hunter2".to_owned().into();
            let secret = SecretOptions { value, hosts, ..SecretOptions::default() };
            options.secrets = Some([("KEY".to_owned(), secret)].into());
        },
    ) else {
        return;
    };
    let tool = "await browser.navigate(args.url + 'hello');
      return [await browser.extractText() === 'the value is ' + secrets.KEY, await fails(browser.type('input', secrets.KEY)),
        await browser.evaluate('document.body.innerText.length')]";
    let refused = json!(["BrowserBlocked", "secret 'KEY' is not for the browser"]);
    assert_eq!(test.value(tool), json!([true, refused, "the value is hunter2-hunter2".len()]));
}

#[test]
fn cells_use_the_page() {
    let Some(test) = Test::new() else { return };
    let session = test.kit.session(isolane::SessionOptions::default()).expect("a session");
    let cell =
        |source: &str| session.run(source, isolane::CellOptions::default()).wait().expect("a cell");
    cell(&format!("const arrived = await browser.navigate('{}')", test.server.at("/")));
    let done = cell("[arrived.title, await browser.extractText('p')]");
    let value: Json = done.result.as_ref().expect("a value").deserialize().expect("plain data");
    assert_eq!(value, json!(["a page", "one"]));
}

/// A page that tries to reach an address that is not allowed, in all ways that pages have.
fn probe(server: &Server, datagrams: &UdpSocket) -> String {
    let (port, udp) = (server.port, datagrams.local_addr().expect("an address").port());
    format!(
        "<title>probe</title><link rel=preconnect href='http://127.0.0.2:{port}/'>
        <img src='http://127.0.0.2:{port}/private'><img src='http://127.0.0.1:{port}/picture'>
        <iframe src='http://127.0.0.2:{port}/frame'></iframe>
        <script>
          fetch('http://127.0.0.2:{port}/fetched', {{ mode: 'no-cors' }}).catch(() => {{}});
          navigator.sendBeacon('http://127.0.0.2:{port}/beacon', 'x');
          new WebSocket('ws://127.0.0.2:{port}/socket');
          new Worker(URL.createObjectURL(new Blob([`fetch('http://127.0.0.2:{port}/worker', {{ mode: 'no-cors' }})`])));
          const peer = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:127.0.0.2:{udp}' }}] }});
          peer.createDataChannel('x');
          peer.createOffer().then((offer) => peer.setLocalDescription(offer));
          window.gathered = new Promise((done) => {{
            peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && done(1);
            setTimeout(done, 3000);
          }});
        </script>"
    )
}

#[test]
fn behind_the_proxy_a_page_reaches_only_what_is_allowed() {
    let Some(test) = Test::with(|options| options.network = Network::AwaitProxy, |_| {}) else {
        return;
    };
    let early = test.value("return await fails(browser.navigate(args.url))");
    assert_eq!(early, json!(["BrowserError", "the browser has no proxy yet"]));
    let proxy = block_on(test.kit.proxy()).expect("a proxy");
    test.chromium.0.set_proxy(proxy);
    let datagrams = UdpSocket::bind("0.0.0.0:0").expect("a port");
    let url = test.server.show("/probe", &probe(&test.server, &datagrams));
    let arrived = "const arrived = await browser.navigate(args.url, { wait_until: 'networkidle' });
        await browser.evaluate('gathered'); return arrived";
    let result = value(&test.kit, arrived, json!({ "url": url }));
    assert_eq!(result, json!({ "url": url, "title": "probe", "status": 200 }));
    let requests = test.server.requests();
    assert!(requests.contains(&"127.0.0.1/picture".to_owned()), "{requests:?}");
    assert!(!requests.iter().any(|request| request.starts_with("127.0.0.2")), "{requests:?}");
    datagrams.set_nonblocking(true).expect("a socket");
    assert!(datagrams.recv(&mut [0; 64]).is_err(), "a datagram passed by the proxy");
    // The password of the proxy is for the proxy alone.
    let tool = "return [(await browser.navigate(args.url + 'locked')).status, await browser.extractText()]";
    assert_eq!(test.value(tool), json!([401, "locked"]));
}

#[test]
fn without_the_proxy_it_is_the_affair_of_the_browser() {
    let Some(test) = Test::new() else { return };
    let datagrams = UdpSocket::bind("0.0.0.0:0").expect("a port");
    let url = test.server.show("/probe", &probe(&test.server, &datagrams));
    let tool = "await browser.navigate(args.url, { wait_until: 'networkidle' }); await browser.evaluate('gathered')";
    value(&test.kit, tool, json!({ "url": url }));
    for path in ["private", "frame", "fetched", "beacon", "worker", "socket"] {
        let request = format!("127.0.0.2/{path}");
        until(&request, || test.server.requests().contains(&request));
    }
    datagrams.set_read_timeout(Some(CEILING)).expect("a socket");
    assert!(
        datagrams.recv(&mut [0; 64]).is_ok(),
        "the page sends no datagrams: the test proves nothing"
    );
}

type Amend = fn(&mut ChromiumOptions);

#[test]
fn misuse_is_said_at_once() {
    if chromium(|_| {}).is_none() {
        return;
    }
    let failure = |amend: Amend| {
        let executable = env::var_os("ISOLANE_CHROMIUM").map(PathBuf::from);
        let mut options = ChromiumOptions { executable, ..ChromiumOptions::default() };
        amend(&mut options);
        Chromium::new(options).expect_err("misuse").message().to_owned()
    };
    let port = failure(|options| options.args = vec!["--remote-debugging-port=0".to_owned()]);
    assert_eq!(
        port,
        "args must be switches that Chromium is not given already, got \"--remote-debugging-port\""
    );
    failure(|options| options.args = vec!["--no-proxy-server".to_owned()]);
    failure(|options| options.args = vec!["https://x.org".to_owned()]);
    failure(|options| options.max_message_bytes = 0);
    let missing = failure(|options| options.executable = Some("/nowhere/chromium".into()));
    assert_eq!(missing, "executable must be a file that can be run, got /nowhere/chromium");
    // A program that does not start says so, without a path.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    let of_root: Option<Amend> = is_root.then_some(|options| options.sandbox = Sandbox::Always);
    let of_all: Amend = |options| options.executable = Some("/bin/false".into());
    for amend in [of_all].into_iter().chain(of_root) {
        let test = Test::with(amend, |_| {}).expect("there is a Chromium");
        let value = test.value("return await fails(browser.extractText())");
        assert_eq!(value, json!(["BrowserError", "the browser did not start"]));
    }
}
