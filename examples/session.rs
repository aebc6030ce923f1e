//! A model at work in steps: a session over a year of support tickets. One step loops for ever and is undone, and at last
//! two forks try two ways, of which the better one is kept.

use std::error::Error;

use isolane::{CellOptions, Inputs, Session, SessionOptions};

const CSV: &str = include_str!("agent/data/tickets.csv");

/// The model's part is played here: each step is what it would write next.
const STEPS: [&str; 5] = [
    "const rows = csv.trim().split('\\n').slice(1);
     const tickets = rows.map((row) => ({ id: row.split(',')[0], customer: row.split(',')[3] }));
     tickets.length",
    "const load = new Map<string, number>();
     for (const { customer } of tickets) load.set(customer, (load.get(customer) ?? 0) + 1);
     load.size",
    "const queue = [...load];
     while (queue.length > 0) load.clear();",
    "Math.max(...load.values())",
    "const teams = Array.from({ length: 7 }, () => ({ tickets: 0, customers: 0 }));
     function give(team: number, tickets: number) {
       teams[team].tickets += tickets;
       teams[team].customers += 1;
     }
     function unfairness() {
       const loads = teams.map((team) => team.tickets);
       return Math.max(...loads) - Math.min(...loads);
     }",
];

const WAYS: [(&str, &str); 2] = [
    (
        "in turn",
        "[...load.values()].forEach((tickets, index) => give(index % teams.length, tickets));
         unfairness()",
    ),
    (
        "largest first",
        "for (const tickets of [...load.values()].sort((a, b) => b - a)) {
           const loads = teams.map((team) => team.tickets);
           give(loads.indexOf(Math.min(...loads)), tickets);
         }
         unfairness()",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let session = Session::new(SessionOptions {
        globals: Inputs::new().with("csv", CSV),
        memory_limit_bytes: Some(64 << 20),
        ..SessionOptions::default()
    })?;
    for code in STEPS {
        step(&session, code)?;
    }
    let mut tried = Vec::new();
    for (way, code) in WAYS {
        let fork = session.fork().wait()?;
        let result = fork.run(code, CellOptions::default()).wait()?;
        let unfairness: u32 = result.into_value()?.deserialize()?;
        println!("{way}: {unfairness} tickets between the teams");
        tried.push((unfairness, way, fork));
    }
    tried.sort_by_key(|(unfairness, ..)| *unfairness);
    let (_, way, better) = &tried[0];
    let team = better.run("teams[0]", CellOptions::default()).wait()?;
    println!("Kept: {way}. {}", team.cell.and_then(|cell| cell.text).unwrap_or_default());
    assert_eq!(*way, "largest first");
    Ok(())
}

/// One step of the model, and what it is told of it.
fn step(session: &Session, code: &str) -> Result<(), isolane::Error> {
    let options = CellOptions { timeout_ms: Some(500), ..CellOptions::default() };
    let result = session.run(code, options).wait()?;
    let Some(cell) = result.cell else { return Ok(()) };
    match result.error {
        None => println!("{}", cell.text.as_deref().unwrap_or("done")),
        Some(error) => {
            let state = cell.session.as_str();
            println!("{}: {} (the session is {state})", error.name, error.message);
        }
    }
    Ok(())
}
