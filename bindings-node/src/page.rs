//! The pages of kits, which JavaScript drives.
//!
//! In: tasks of runs, on any thread. Out: an event for JavaScript, which takes the tasks and answers them.

use std::sync::{Arc, Weak};

use isolane_kit::browser::{Answer, Command, DrivenBrowser, Failure, Task};
use napi::{Result, bindgen_prelude::Uint8Array};
use napi_derive::napi;

use crate::{bridge::with_bridge, kit::NativeKit};

/// A page with that number; an event says that it has a task.
pub(crate) fn open_page(bridge: u32, number: u32) -> Result<Arc<DrivenBrowser>> {
    with_bridge(bridge, |bridge| {
        let answers = bridge.answers.clone();
        let page = Arc::new(DrivenBrowser::new(move |_| answers.push_empty(number)));
        let mut pages = bridge.pages.borrow_mut();
        pages.retain(|_, page| Weak::strong_count(page) > 0);
        pages.insert(number, Arc::downgrade(&page));
        page
    })
}

/// A task for the page; `lib/page.ts` has its kinds.
#[napi(object)]
#[derive(Default)]
pub struct PageTask {
    pub number: u32,
    pub kind: String,
    pub timeout_ms: f64,
    pub url: Option<String>,
    pub wait_until: Option<String>,
    pub selector: Option<String>,
    pub text: Option<String>,
    pub clear_first: Option<bool>,
    pub full_page: Option<bool>,
    pub property: Option<String>,
    pub most_units: Option<f64>,
    pub expression: Option<String>,
}

impl From<Task> for PageTask {
    fn from(Task { number, command, timeout }: Task) -> Self {
        // Playwright takes 0 for no limit.
        let timeout_ms = (timeout.as_secs_f64() * 1e3).max(1.0);
        let task = |kind: &str| Self { number, timeout_ms, kind: kind.into(), ..Self::default() };
        match command {
            Command::Navigate { url, wait_until } => {
                let wait_until = Some(wait_until.name().to_owned());
                Self { url: Some(url), wait_until, ..task("navigate") }
            }
            Command::Screenshot { selector, full_page } => {
                Self { selector, full_page: Some(full_page), ..task("screenshot") }
            }
            Command::Click { selector } => Self { selector: Some(selector), ..task("click") },
            Command::Type { selector, text, clear_first } => Self {
                selector: Some(selector),
                text: Some(text),
                clear_first: Some(clear_first),
                ..task("type")
            },
            Command::Read { selector, property, most_units } => Self {
                selector: Some(selector),
                property: Some(property.name().to_owned()),
                #[expect(clippy::cast_precision_loss, reason = "a safe integer")]
                most_units: Some(most_units as f64),
                ..task("read")
            },
            Command::Evaluate { expression } => {
                Self { expression: Some(expression), ..task("evaluate") }
            }
            Command::Close => task("close"),
        }
    }
}

/// The answer to a task; `lib/page.ts` has its kinds.
#[napi(object)]
pub struct PageAnswer {
    pub kind: String,
    pub text: Option<String>,
    pub url: Option<String>,
    pub title: Option<String>,
    pub status: Option<u32>,
    pub bytes: Option<Uint8Array>,
}

impl From<PageAnswer> for std::result::Result<Answer, Failure> {
    fn from(answer: PageAnswer) -> Self {
        let PageAnswer { kind, text, url, title, status, bytes } = answer;
        let text = text.unwrap_or_default();
        match kind.as_str() {
            "nothing" => Ok(Answer::Nothing),
            "arrived" => Ok(Answer::Arrived {
                url: url.unwrap_or_default(),
                title: title.unwrap_or_default(),
                status: status.and_then(|status| status.try_into().ok()).unwrap_or_default(),
            }),
            "text" => Ok(Answer::Text(text)),
            "tooLarge" => Ok(Answer::TooLarge),
            "bytes" => Ok(Answer::Bytes(bytes.map(|bytes| bytes.to_vec()).unwrap_or_default())),
            "timeout" => Err(Failure::Timeout),
            _ => Err(Failure::Other(text)),
        }
    }
}

/// The next task of a kit's page, if there is one.
#[napi(catch_unwind)]
#[must_use]
pub fn next_page_task(kit: &NativeKit) -> Option<PageTask> {
    kit.page.as_ref()?.take().map(PageTask::from)
}

/// Answers a task.
#[napi(catch_unwind)]
pub fn answer_page_task(kit: &NativeKit, number: u32, answer: PageAnswer) {
    if let Some(page) = &kit.page {
        page.answer(number, answer.into());
    }
}
