//! The demo: programs as a model writes them, run with exactly the tools that the host hands over.
//!
//! The first program works through a year of support tickets. Six others fail, each in another way. Exits with a
//! non-zero code if a result differs from the intended one.
//!
//! `cargo run --release -p isolane --example agent`

mod check;
mod show;
mod tools;

use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::StreamExt;
use isolane::{
    Execute, Execution, ExecutionOptions, ExecutionResult, Report, Status, Value, run_code,
};
use serde::{Deserialize, Serialize};

use crate::{check::Expected, tools::Data};

const MEMORY: u64 = 64 << 20;
const TOP: usize = 7;

/// The agent's argument.
#[derive(Serialize)]
struct Task {
    top: usize,
}

/// A report of the agent's progress.
#[derive(Deserialize)]
#[serde(tag = "step", rename_all = "lowercase")]
enum Progress {
    Read { done: u32, of: u32 },
    Customers { done: u32 },
    Counted { category: String, refunded: f64 },
}

/// The agent's answer.
#[derive(Deserialize)]
struct Answer {
    rows: usize,
    used: usize,
    /// A `Map` in the sandbox, from each flaw to the number of rows that have it.
    flaws: BTreeMap<String, usize>,
    lines: Vec<Line>,
    refunded: f64,
    /// A `Date` in the sandbox: epoch milliseconds.
    latest: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    category: String,
    tickets: usize,
    open: usize,
    median_hours: f64,
    refunded: f64,
    from_businesses: f64,
    article: String,
}

/// A program that fails, and its expected failure.
struct Failing {
    title: &'static str,
    file: &'static str,
    modules: &'static [&'static str],
    budget: Duration,
    expected: Expected,
}

/// Sources that the model wrote, by path.
type Sources = BTreeMap<String, String>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let data = Arc::new(Data::read(&folder("data"))?);
    let mut failures = usize::from(!agent(&data).await?);
    for failing in failing_programs() {
        failures += usize::from(!fail(&failing, &data).await?);
    }
    if failures == 0 {
        show::heading("Everything came out as intended.");
        Ok(ExitCode::SUCCESS)
    } else {
        show::heading(&format!("{failures} came out otherwise than intended."));
        Ok(ExitCode::FAILURE)
    }
}

/// The agent at work: shows reports while it runs. Returns whether the result is as intended.
async fn agent(data: &Arc<Data>) -> Result<bool, Box<dyn Error>> {
    show::heading("An agent program over 4,000 support tickets");
    let modules = ["lib/clean.ts", "lib/stats.ts"];
    let sources = read("", "triage.ts", &modules)?;
    let begun = Instant::now();
    let run = run_code(
        &sources["triage.ts"],
        ExecutionOptions {
            execute: Execute::function("triage").arg(Task { top: TOP }),
            report: Report::On,
            ..options("triage.ts", &modules, &sources, data)
        },
    );
    let mut live = Vec::new();
    let mut reports = run.report_stream();
    let watch = async {
        while let Some(report) = reports.next().await {
            show::progress(begun.elapsed(), &report.deserialize()?);
            live.push((begun.elapsed(), report));
        }
        Ok::<(), isolane::Error>(())
    };
    let settle = async {
        let result = within(Duration::from_secs(30), run).await;
        (begun.elapsed(), result)
    };
    let ((settled, result), watched) = futures::join!(settle, watch);
    watched?;
    Ok(conclude(&judge(result?, &live, settled, &sources)?))
}

/// Shows the agent's result. Returns its differences from the intended one.
fn judge(
    result: ExecutionResult,
    live: &[(Duration, Value)],
    settled: Duration,
    sources: &Sources,
) -> Result<Vec<String>, Box<dyn Error>> {
    let cost = show::cost(&result);
    let (logs, reports) = (result.logs.clone(), result.reports.clone());
    let answer: Answer = match result.into_value() {
        Ok(value) => value.deserialize()?,
        Err(error) => {
            show::failure(error.result(), sources);
            return Ok(vec![error.to_string()]);
        }
    };
    show::heading("Its answer");
    show::lines(&answer.lines);
    show::note(&format!(
        "{} of {} rows used, € {} refunded, the last opened on {}",
        show::whole(answer.used),
        show::whole(answer.rows),
        show::cents(answer.refunded),
        show::date(answer.latest),
    ));
    let flaws: Vec<_> =
        answer.flaws.iter().map(|(flaw, count)| format!("{count} {flaw}")).collect();
    show::note(&format!("left out: {}", flaws.join(", ")));
    show::heading("Its console");
    show::logs(&logs);
    show::note(&cost);

    let mut wrong = check::differences(&answer, TOP, &folder("data"))?;
    if !live.iter().map(|(_, report)| report).eq(&reports) {
        wrong.push(format!("{} of {} reports came", live.len(), reports.len()));
    }
    if live.first().is_none_or(|(at, _)| *at >= settled) {
        wrong.push("no report came while it ran".to_owned());
    }
    Ok(wrong)
}

/// A program that fails, with the same tools and limits.
async fn fail(failing: &Failing, data: &Arc<Data>) -> Result<bool, Box<dyn Error>> {
    let Failing { title, file, modules, budget, expected } = failing;
    show::heading(title);
    let sources = read("failing", file, modules)?;
    let run = run_code(&sources[*file], options(file, modules, &sources, data));
    let result = within(*budget, run).await?;
    show::failure(&result, &sources);
    show::note(&show::cost(&result));
    Ok(conclude(&check::outcome_differences(&result, expected, &sources)))
}

/// Awaits a run and terminates it when its budget is over.
async fn within(budget: Duration, mut run: Execution) -> Result<ExecutionResult, isolane::Error> {
    tokio::select! {
        result = &mut run => return result,
        () = tokio::time::sleep(budget) => {}
    }
    run.terminate(Some(&format!("{} ms budget", budget.as_millis())));
    run.await
}

/// The options of every program: its modules, the tools, and a memory limit.
fn options(file: &str, modules: &[&str], sources: &Sources, data: &Arc<Data>) -> ExecutionOptions {
    let module = |path: &&str| (format!("./{path}"), sources[*path].clone());
    ExecutionOptions {
        filename: Some(file.to_owned()),
        modules: modules.iter().map(module).collect(),
        imports: tools::open(data),
        memory_limit_bytes: Some(MEMORY),
        ..ExecutionOptions::default()
    }
}

fn failing_programs() -> [Failing; 6] {
    let failing = |title, file, status, name, at| Failing {
        title,
        file,
        modules: &[],
        budget: Duration::from_secs(10),
        expected: Expected { status, name, at },
    };
    let linking = Status::LinkError;
    [
        failing(
            "A syntax error",
            "syntax-error.ts",
            linking,
            Some("SyntaxError"),
            Some(("syntax-error.ts", "open;")),
        ),
        failing(
            "An import that nobody handed over",
            "missing-import.ts",
            linking,
            None,
            Some(("missing-import.ts", "'lodash'")),
        ),
        failing(
            "A tool that does not exist",
            "missing-export.ts",
            linking,
            None,
            Some(("missing-export.ts", "close")),
        ),
        Failing {
            modules: &["lib/review.ts", "lib/policy.ts", "lib/limits.ts"],
            ..failing(
                "An error thrown three modules down",
                "thrown-error.ts",
                Status::Error,
                Some("RangeError"),
                Some(("lib/limits.ts", "RangeError")),
            )
        },
        failing(
            "More memory than the limit of 64 MiB",
            "memory-bomb.ts",
            Status::Memory,
            None,
            None,
        ),
        Failing {
            budget: Duration::from_millis(200),
            ..failing(
                "A loop without end and a budget of 200 ms",
                "endless-loop.ts",
                Status::Terminated,
                Some("Terminated"),
                None,
            )
        },
    ]
}

fn read(under: &str, file: &str, modules: &[&str]) -> Result<Sources, std::io::Error> {
    let programs = folder("programs").join(under);
    let source = |path: &&str| Ok(((*path).to_owned(), fs::read_to_string(programs.join(path))?));
    [&file].into_iter().chain(modules).map(source).collect()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/agent").join(name)
}

/// Shows the differences. Returns whether there are none.
fn conclude(wrong: &[String]) -> bool {
    show::verdict(wrong);
    wrong.is_empty()
}
