//! Checks of the demo's results.
//!
//! The host computes the agent's numbers again from the CSV itself, in another way than the agent and without its code
//! or that of the tools. Positions are looked up in the sources.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::{Debug, Display},
    fs, io,
    path::Path,
};

use isolane::{ExecutionResult, Status};

use crate::{Answer, Sources};

/// The expected end of a failing program. Its position must lie in that text of that file.
pub(crate) struct Expected {
    pub(crate) status: Status,
    pub(crate) name: Option<&'static str>,
    pub(crate) at: Option<(&'static str, &'static str)>,
}

/// The differences between the agent's answer and the host's own; empty if there are none.
pub(crate) fn differences(answer: &Answer, top: usize, data: &Path) -> io::Result<Vec<String>> {
    let own = Own::compute(data)?;
    let mut wrong = Wrong::default();
    wrong.unless_same("rows", &answer.rows, &own.rows);
    wrong.unless_same("used", &answer.used, &own.used);
    wrong.unless_same("flaws", &answer.flaws, &own.flaws);
    wrong.unless_near("refunded", answer.refunded, own.refunded);
    wrong.unless_near("latest", answer.latest, own.latest * 60_000.0);
    let mut categories: Vec<_> = own.categories.iter().collect();
    categories.sort_by(|(_, a), (_, b)| b.refunded.total_cmp(&a.refunded));
    categories.truncate(top);
    wrong.unless_same("lines", &answer.lines.len(), &categories.len());
    for (line, (name, category)) in answer.lines.iter().zip(categories) {
        wrong.unless_same(name, &line.category, name);
        wrong.unless_same(format!("{name}.tickets"), &line.tickets, &category.tickets);
        wrong.unless_same(format!("{name}.open"), &line.open, &category.open);
        wrong.unless_near(format!("{name}.hours"), line.median_hours, category.middle());
        wrong.unless_near(format!("{name}.refunded"), line.refunded, category.refunded);
        let businesses = category.from_businesses;
        wrong.unless_near(format!("{name}.businesses"), line.from_businesses, businesses);
    }
    Ok(wrong.0)
}

/// The differences between a failed run and its expected outcome.
pub(crate) fn outcome_differences(
    result: &ExecutionResult,
    expected: &Expected,
    sources: &Sources,
) -> Vec<String> {
    let mut wrong = Wrong::default();
    let error = result.error.clone().unwrap_or_default();
    wrong.unless_same("status", &result.status, &expected.status);
    if let Some(name) = expected.name {
        wrong.unless_same("error.name", error.name.as_str(), name);
    }
    if result.result.is_some() {
        wrong.0.push("there is a result".to_owned());
    }
    if let Some((file, text)) = expected.at {
        let (line, column) = (error.line.unwrap_or(0), error.column.unwrap_or(0));
        wrong.unless_same("error.filename", &error.filename.as_deref(), &Some(file));
        if !is_within(&sources[file], line, column, text) {
            wrong.0.push(format!("position: {line}:{column} is not in {text:?}"));
        }
    }
    wrong.0
}

/// Whether a position, in UTF-16 units from 1, lies in the first such text of its line.
fn is_within(source: &str, line: u32, column: u32, text: &str) -> bool {
    let units = |text: &str| text.encode_utf16().count();
    let line = source.split('\n').nth(line.wrapping_sub(1) as usize).unwrap_or_default();
    line.split_once(text).is_some_and(|(before, _)| {
        let place = units(before)..units(before) + units(text);
        place.contains(&(column.wrapping_sub(1) as usize))
    })
}

#[derive(Default)]
struct Wrong(Vec<String>);

impl Wrong {
    fn unless_same<T: PartialEq + Debug + ?Sized>(
        &mut self,
        what: impl Display,
        got: &T,
        wanted: &T,
    ) {
        if got != wanted {
            self.0.push(format!("{what}: {got:?} instead of {wanted:?}"));
        }
    }

    /// Reports a difference of a cent or more, or of a hundredth of another unit.
    fn unless_near(&mut self, what: impl Display, got: f64, wanted: f64) {
        let near = (got - wanted).abs() < 0.01;
        if !near {
            self.0.push(format!("{what}: {got} instead of {wanted}"));
        }
    }
}

/// The host's own answer.
#[derive(Default)]
struct Own {
    rows: usize,
    used: usize,
    flaws: BTreeMap<String, usize>,
    categories: BTreeMap<String, Category>,
    refunded: f64,
    /// Minutes since 1970.
    latest: f64,
}

#[derive(Default)]
struct Category {
    tickets: usize,
    open: usize,
    hours: Vec<f64>,
    refunded: f64,
    from_businesses: f64,
}

impl Own {
    fn compute(data: &Path) -> io::Result<Self> {
        let customers = records(&data.join("customers.csv"))?;
        let segments: HashMap<_, _> =
            customers.iter().map(|fields| (fields[0].as_str(), fields[1].as_str())).collect();
        let mut own = Self::default();
        let mut seen = HashSet::new();
        for fields in records(&data.join("tickets.csv"))? {
            own.rows += 1;
            let twice = !seen.insert(fields[0].clone());
            match flaw(&fields, twice, &segments) {
                Some(flaw) => *own.flaws.entry(flaw.to_owned()).or_default() += 1,
                None => own.count(&fields, segments[fields[3].as_str()]),
            }
        }
        Ok(own)
    }

    /// Counts a row without a flaw.
    fn count(&mut self, fields: &[String], segment: &str) {
        let entry = self.categories.entry(fields[4].to_lowercase().trim().to_owned()).or_default();
        let amount = fields[7].replace(',', "").parse().unwrap_or(0.0);
        let euros: f64 = amount * euros(&fields[8]).unwrap_or(0.0);
        let opened = minutes(&fields[1]).unwrap_or(f64::NAN);
        self.used += 1;
        self.refunded += euros;
        self.latest = self.latest.max(opened);
        entry.tickets += 1;
        entry.refunded += euros;
        if segment != "consumer" {
            entry.from_businesses += euros;
        }
        match minutes(&fields[2]) {
            Some(closed) => entry.hours.push((closed - opened) / 60.0),
            None => entry.open += 1,
        }
    }
}

impl Category {
    fn middle(&self) -> f64 {
        let mut hours = self.hours.clone();
        hours.sort_by(f64::total_cmp);
        let last = hours.len().saturating_sub(1);
        let at = |index: usize| hours.get(index).copied().unwrap_or(f64::NAN);
        f64::midpoint(at(last / 2), at(last.div_ceil(2)))
    }
}

/// The flaw of a row, if it has one.
fn flaw(fields: &[String], twice: bool, segments: &HashMap<&str, &str>) -> Option<&'static str> {
    let [_, opened, closed, customer, _, _, _, amount, currency, ..] = fields else {
        return Some("too short");
    };
    if twice {
        Some("twice")
    } else if opened.contains('/') || (!closed.is_empty() && closed < opened) {
        Some("odd date")
    } else if ["n/a", "pending", "12,50"].contains(&amount.as_str()) {
        Some("no amount")
    } else if !segments.contains_key(customer.as_str()) {
        Some("no such customer")
    } else if !amount.is_empty() && euros(currency).is_none() {
        Some("no such currency")
    } else {
        None
    }
}

fn euros(currency: &str) -> Option<f64> {
    Some(match currency {
        "EUR" => 1.0,
        "USD" => 0.92,
        "GBP" => 1.18,
        "SEK" => 0.089,
        "PLN" => 0.23,
        "JPY" => 0.0062,
        _ => return None,
    })
}

/// Minutes from 1970 to a moment such as `2025-01-31T09:05Z`; `None` for any other text.
fn minutes(text: &str) -> Option<f64> {
    let mut numbers = text.split(['-', 'T', ':', 'Z']).map(|part| part.parse::<u16>().ok());
    let mut next = || numbers.next().flatten();
    let (year, month, day, hour, minute) = (next()?, next()?, next()?, next()?, next()?);
    let leap = |year: u16| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: u32 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let before: u32 = months.iter().take(usize::from(month) - 1).sum();
    let days = years + before + u32::from(day) - 1;
    Some(f64::from((days * 24 + u32::from(hour)) * 60 + u32::from(minute)))
}

/// The fields of each line except the first, read character by character.
fn records(file: &Path) -> io::Result<Vec<Vec<String>>> {
    let text = fs::read_to_string(file)?;
    Ok(text.trim_end().lines().skip(1).map(fields).collect())
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut inside = false;
    for char in line.chars() {
        match char {
            '"' => inside = !inside,
            ',' if !inside => fields.push(String::new()),
            _ => fields.last_mut().expect("there is a first one").push(char),
        }
    }
    fields
}
