//! Tools of the host: five capabilities over the data in `data/`, and nothing else.
//!
//! Sandbox code may call them any number of times with any values. Serde refuses arguments of the wrong type. Each tool
//! checks the rest itself, and the expensive ones have a budget. They answer after some milliseconds, as services do.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use isolane::{HostError, HostFunction, Inputs};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::time::sleep;

const PAGE_SIZE: usize = 250;
const SEARCHES: usize = 20;

const EUROS: &[(&str, f64)] =
    &[("EUR", 1.0), ("USD", 0.92), ("GBP", 1.18), ("SEK", 0.089), ("PLN", 0.23), ("JPY", 0.0062)];

const ARTICLES: &[Article] = &[
    Article { title: "Where is my parcel?", topics: &["delivery"], views: 12_400 },
    Article { title: "Your parcel was left with a neighbour", topics: &["delivery"], views: 3_100 },
    Article { title: "Sending something back", topics: &["returns", "warranty"], views: 9_800 },
    Article { title: "When refunds arrive", topics: &["returns", "billing"], views: 15_250 },
    Article { title: "Why you were charged twice", topics: &["billing"], views: 2_050 },
    Article { title: "What the warranty covers", topics: &["warranty"], views: 4_700 },
];

/// The data of the tools.
pub(crate) struct Data {
    tickets: Vec<Ticket>,
    customers: HashMap<String, Customer>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Ticket {
    id: String,
    opened_at: String,
    closed_at: String,
    customer_id: String,
    category: String,
    channel: String,
    priority: String,
    refund: String,
    currency: String,
    subject: String,
}

#[derive(Clone, Serialize, Deserialize)]
struct Customer {
    id: String,
    segment: String,
    country: String,
    since: String,
}

#[derive(Serialize)]
struct Article {
    title: &'static str,
    topics: &'static [&'static str],
    views: u32,
}

#[derive(Deserialize)]
struct Query {
    page: usize,
}

#[derive(Serialize)]
struct Listing {
    page: usize,
    pages: usize,
    total: usize,
    rows: Vec<Ticket>,
}

impl Data {
    /// Reads `tickets.csv` and `customers.csv`.
    pub(crate) fn read(folder: &Path) -> Result<Self, csv::Error> {
        let customers: Vec<Customer> = rows(&folder.join("customers.csv"))?;
        Ok(Self {
            tickets: rows(&folder.join("tickets.csv"))?,
            customers: customers.into_iter().map(|known| (known.id.clone(), known)).collect(),
        })
    }

    fn page(&self, page: usize) -> Result<Listing, HostError> {
        let pages = self.tickets.len().div_ceil(PAGE_SIZE);
        let rows =
            page.checked_sub(1).and_then(|before| self.tickets.chunks(PAGE_SIZE).nth(before));
        match rows {
            Some(rows) => {
                Ok(Listing { page, pages, total: self.tickets.len(), rows: rows.to_vec() })
            }
            None => Err(HostError::new(
                "RangeError",
                format!("page must be a whole number from 1 to {pages}"),
            )),
        }
    }
}

/// The bridged modules of a run, by specifier. Each run has its own set, because it has its own budgets.
pub(crate) fn open(data: &Arc<Data>) -> BTreeMap<String, Inputs> {
    let module = |name: &str, export: &str, function: HostFunction| {
        (name.to_owned(), Inputs::new().with(export, function))
    };
    BTreeMap::from([
        module("tickets", "list", list(Arc::clone(data))),
        module("customers", "get", customer(Arc::clone(data))),
        module("rates", "convert", convert()),
        module("kb", "search", search()),
    ])
}

fn list(data: Arc<Data>) -> HostFunction {
    HostFunction::future(move |query: Query| {
        let page = data.page(query.page);
        async move {
            sleep(Duration::from_millis(25)).await;
            page
        }
    })
}

fn customer(data: Arc<Data>) -> HostFunction {
    HostFunction::future(move |id: String| {
        let known = data.customers.get(&id).cloned();
        async move {
            let number = id.strip_prefix('C').filter(|number| number.len() == 4);
            if !number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit())) {
                return Err(HostError::new("TypeError", format!("not a customer id: {id:?}")));
            }
            sleep(Duration::from_millis(5)).await;
            Ok(known)
        }
    })
}

/// A synchronous host function is synchronous in the sandbox: no await needed.
fn convert() -> HostFunction {
    HostFunction::new(|amount: f64, from: String| {
        if !amount.is_finite() {
            return Err(HostError::new("TypeError", "amount must be a finite number"));
        }
        let rate = EUROS.iter().find(|(currency, _)| *currency == from);
        rate.map(|(_, rate)| amount * rate)
            .ok_or_else(|| HostError::new("RangeError", format!("no rate for {from:?}")))
    })
}

fn search() -> HostFunction {
    let searches = Arc::new(AtomicUsize::new(0));
    HostFunction::future(move |query: String| {
        let count = searches.fetch_add(1, Ordering::Relaxed);
        async move {
            if query.len() > 200 {
                return Err(HostError::new("TypeError", "query must be a short text"));
            }
            if count >= SEARCHES {
                return Err(HostError::new(
                    "Error",
                    format!("no more than {SEARCHES} searches a run"),
                ));
            }
            sleep(Duration::from_millis(20)).await;
            if query == "account" {
                let error = HostError::new("Error", "this part of the index is being rebuilt");
                return Err(error.with_code("INDEX_REBUILDING"));
            }
            let found = |article: &&Article| article.topics.contains(&query.as_str());
            Ok(ARTICLES.iter().filter(found).collect::<Vec<_>>())
        }
    })
}

fn rows<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>, csv::Error> {
    csv::Reader::from_path(file)?.into_deserialize().collect()
}
