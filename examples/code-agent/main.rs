//! A model that writes a program, sees it fail, mends it, and answers. The model is scripted; put your own in its place.
//!
//! `cargo run -p isolane-executors --example code-agent`

use std::{error::Error, sync::Arc};

use futures::{StreamExt as _, executor::block_on};
use isolane_executors::{
    CodeLoop, ExecFile, IsolateCodeExecutor, LoopEvent, OutputStream, Part, Reason, ScriptedModel,
};

const ORDERS: &str = "city,euros\nOslo,120\nLima,80\nOslo,n/a\nBern,45\n";

const FIRST: &str = "The file has the columns `city` and `euros`. I sum them up.
```ts
import { readText } from 'files';

const [, ...rows] = readText('orders.csv').trim().split('\\n').map((line) => line.split(','));
const total = rows.reduce((sum, [, euros]) => sum + BigInt(euros), 0n);
console.log('total', total);
```
The total is 1,000 euros.";

const SECOND: &str = "One row has no amount. I leave it out, and say so.
```ts
import { readText, write } from 'files';

const [, ...rows] = readText('orders.csv').trim().split('\\n').map((line) => line.split(','));
const valid = rows.filter(([, euros]) => /^\\d+$/.test(euros));
console.warn(`${rows.length - valid.length} of ${rows.length} rows left out`);
const totals = new Map<string, number>();
for (const [city, euros] of valid) totals.set(city, (totals.get(city) ?? 0) + Number(euros));
write('totals.json', JSON.stringify(Object.fromEntries(totals)));
totals
```";

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let model = ScriptedModel::new();
    // In pieces, as models stream. The model invents the text behind the code, and nobody sees it.
    model.push_stream(FIRST.split_inclusive(' ').map(Part::text).collect());
    model.push_text(SECOND);
    model.push_text("Oslo spent 120 euros, Lima 80 and Bern 45. One order of Oslo has no amount.");

    let orders = ExecFile {
        name: "orders.csv".to_owned(),
        content: ORDERS.into(),
        mime_type: Some("text/csv".to_owned()),
    };
    let code_loop = CodeLoop::builder()
        .model(Arc::new(model))
        // For code of strangers: `.with_isolation(Isolation::Process)`, and the program `isolane-worker`.
        .executor(Arc::new(IsolateCodeExecutor::new()))
        .instruction("Solve problems by writing and running TypeScript.")
        .files(vec![orders])
        .build()?;

    let mut stream = code_loop.stream("How much did each city spend?");
    block_on(async {
        while let Some(event) = stream.next().await {
            show(&event?);
        }
        Ok::<(), Box<dyn Error + Send + Sync>>(())
    })?;

    let result = stream.into_result().ok_or("the run is not over")?;
    let totals = result.files.first().ok_or("there is no file")?;
    println!("\n{}: {}", totals.name, String::from_utf8_lossy(&totals.content));
    assert_eq!((result.reason, result.turns), (Reason::Answered, 3));
    assert_eq!(totals.content, br#"{"Oslo":120,"Lima":80,"Bern":45}"#);
    let said = serde_json::to_string(&result.contents)?;
    assert!(!said.contains("1,000") && said.contains("invalid BigInt literal"), "{said}");
    Ok(())
}

fn show(event: &LoopEvent) {
    match event {
        LoopEvent::Turn { turn } => println!("\n=== turn {turn}"),
        LoopEvent::Text { text, .. }
        | LoopEvent::Output { stream: OutputStream::Stdout, text, .. } => print!("{text}"),
        LoopEvent::Code { language, .. } => println!("\n--- a program in {language}"),
        LoopEvent::Output { stream: OutputStream::Stderr, text, .. } => print!("! {text}"),
        LoopEvent::Retry { error, .. } => println!("--- again: {error}"),
        LoopEvent::Result { outcome, duration_ms, .. } => {
            println!("--- {outcome:?} in {duration_ms:.1} ms");
        }
        LoopEvent::Finish { reason, .. } => println!("\n=== {reason:?}"),
        _ => {}
    }
}
