//! Tools that a model wrote, with a kit: an import, a conversion at a rate from a server, a wait, and a theft. Each shows
//! what came of its calls.

use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use futures::executor::block_on;
use isolane::Input;
use isolane_kit::{
    AllowOption, DbOptions, FetchSettings, Kit, KitOptions, KitResult, LibraryOptions, ToolOptions,
    kit::LibrarySource, secrets::SecretOptions, store::StateLimits,
};
use serde_json::{Value as Json, json};

const KEY: &str = "rk-4f0c7a5de1";
const CSV: &str = include_str!("orders.csv");
const MONEY: &str = include_str!("tools/money.ts");
const TOOLS: [(&str, &str); 4] = [
    ("import", include_str!("tools/import.ts")),
    ("convert", include_str!("tools/convert.ts")),
    ("wait", include_str!("tools/wait.ts")),
    ("steal", include_str!("tools/steal.ts")),
];

fn main() -> Result<(), Box<dyn Error>> {
    let origin = serve()?;
    let fetch = FetchSettings {
        allow: AllowOption::List(vec![format!("{origin}/*").as_str().into()]),
        // The server is on this machine, which is not allowed otherwise.
        allow_addresses: vec!["127.0.0.1".into()],
        ..FetchSettings::default()
    };
    let key = SecretOptions {
        value: KEY.to_owned().into(),
        hosts: vec![format!("{origin}/rates")],
        parts: Some(vec!["header".into()]),
        ..SecretOptions::default()
    };
    let kit = Kit::new(KitOptions {
        state: Some(StateLimits::default()),
        db: Some(DbOptions::default()),
        libraries: Some(LibraryOptions::default()),
        fetch: Some(fetch),
        secrets: Some([("RATES_KEY".into(), key)].into()),
        ..KitOptions::default()
    })?;
    let description = "round(amount): cents".into();
    let money = LibrarySource { source: MONEY.into(), description, ..Default::default() };
    block_on(kit.libraries()?.create("money", money))?;

    let described = block_on(kit.describe())?;
    for line in described.lines().filter(|line| line.contains("RATES_KEY")) {
        println!("{}", line.trim());
    }
    let rates = json!({ "to": "NOK", "server": origin });
    show(&kit, "import", &json!({ "csv": CSV }), &origin)?;
    let converted = show(&kit, "convert", &rates, &origin)?;
    show(&kit, "convert", &rates, &origin)?;
    show(&kit, "wait", &json!({ "server": origin }), &origin)?;
    let stolen = show(&kit, "steal", &json!({ "server": origin }), &origin)?;

    let sums: Json = serde_json::from_str(converted.json.as_deref().unwrap_or_default())?;
    assert_eq!(sums["Oslo"], 1615.64);
    assert!(!format!("{:?} {:?}", stolen.json, stolen.calls).contains(KEY));
    Ok(())
}

/// Runs a tool and shows its result and its calls.
fn show(kit: &Kit, name: &str, args: &Json, origin: &str) -> Result<KitResult, Box<dyn Error>> {
    let source = TOOLS.iter().find(|(known, _)| *known == name).ok_or("no such tool")?.1;
    let filename = Some(format!("{name}.ts"));
    let options = ToolOptions { args: Some(Input::new(args)), filename, ..ToolOptions::default() };
    let done = kit.run_tool(source, options).wait()?;
    match (&done.json, &done.error) {
        (Some(json), _) => println!("\n{name}: {json}"),
        (None, error) => println!("\n{name}: {error:?}"),
    }
    for call in &done.calls {
        let shown: String = call.summary.replace(origin, "").chars().take(60).collect();
        let failed = call.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        println!("  {} {} {shown}{failed}", if call.ok { '✓' } else { '✗' }, call.name);
    }
    Ok(done)
}

/// Starts a server that knows the rates, for those who have the key, and where the parcel is.
fn serve() -> Result<String, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let origin = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        let mut asked = 0;
        for socket in listener.incoming().flatten() {
            // A client that breaks off is of no interest.
            let _ = answer(&socket, &mut asked);
        }
    });
    Ok(origin)
}

fn answer(mut socket: &TcpStream, asked: &mut u32) -> std::io::Result<()> {
    let mut lines = BufReader::new(socket).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut has_key = false;
    while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
        has_key |= line.eq_ignore_ascii_case(&format!("authorization: Bearer {KEY}"));
    }
    let (status, body) = if request.starts_with("GET /parcel") {
        *asked += 1;
        ("200 OK", json!({ "parcel": if *asked < 3 { "under way" } else { "arrived" } }))
    } else if request.starts_with("GET /rates") && has_key {
        ("200 OK", json!({ "rate": 11.5 }))
    } else {
        ("401 Unauthorized", json!(null))
    };
    let body = body.to_string();
    let length = body.len();
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
