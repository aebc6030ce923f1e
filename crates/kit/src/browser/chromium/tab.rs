//! A page of Chromium, and what commands do on it.
//!
//! In: commands. Out: their answers. The time of a command is kept outside: it is dropped when it is over, and then the
//! page is brought back to rest by [`Tab::recover`].

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::time::{sleep, timeout};

use super::{
    Fault,
    connection::Connection,
    pages::{PageState, Progress},
};
use crate::browser::{Answer, Command, WaitUntil};

/// The time without requests after which the network is idle.
const QUIET: Duration = Duration::from_millis(500);
/// The time for which an action waits for the page to which it leads. The action itself is done.
const LEAVE: Duration = Duration::from_secs(5);
/// The time in which a new page is ready. Then another one is tried.
const OPEN: Duration = Duration::from_secs(5);
/// The time in which a page answers that is at rest.
const REST: Duration = Duration::from_millis(500);
/// The time that a page has after a command that was given up. Then it is replaced.
const RECOVERY: Duration = Duration::from_secs(3);

/// A page.
pub(super) struct Tab {
    pub(super) connection: Arc<Connection>,
    target: String,
    session: String,
    /// The URL where it was before its command.
    origin: OnceLock<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    target_id: String,
}

#[derive(Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
struct Navigated {
    loader_id: Option<String>,
    error_text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    target_info: TargetInfo,
}

#[derive(Deserialize)]
struct TargetInfo {
    url: String,
}

/// The outcome of JavaScript.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Evaluated {
    result: RemoteObject,
    exception_details: Option<ExceptionDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RemoteObject {
    value: Json,
    description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExceptionDetails {
    text: String,
    exception: RemoteObject,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct World {
    execution_context_id: i64,
}

impl Tab {
    /// The newest page, if there is one.
    pub(super) fn newest(connection: &Arc<Connection>) -> Option<Self> {
        connection.pages(|pages| Some(Self::of(connection, pages.newest()?)))
    }

    /// A new page. One whose process ends meanwhile never gets ready, and is replaced.
    pub(super) async fn open(connection: &Arc<Connection>) -> Result<Self, Fault> {
        // A navigation that begins before the first document is there is aborted by it.
        let is_ready = |page: &&PageState| page.has_come_to(WaitUntil::Load) == Progress::Done;
        loop {
            let blank = json!({ "url": "about:blank" });
            let created = connection.call(None, "Target.createTarget", blank).await?;
            let Created { target_id } = read(created.get())?;
            let opened = connection.until(|pages| {
                let page = pages.of_target(&target_id).filter(is_ready)?;
                Some(Self::of(connection, page))
            });
            match timeout(OPEN, opened).await {
                Ok(opened) => return opened,
                Err(_) => give_up(connection, &target_id),
            }
        }
    }

    fn of(connection: &Arc<Connection>, page: &PageState) -> Self {
        let (target, session) = (page.target.clone(), page.session.clone());
        Self { connection: Arc::clone(connection), target, session, origin: OnceLock::new() }
    }

    /// Whether the browser has it. One that it has not is forgotten.
    pub(super) async fn is_there(&self) -> Result<bool, Fault> {
        match self.url().await {
            Ok(url) => {
                self.origin.get_or_init(|| url);
                Ok(true)
            }
            Err(Fault::Refused(_)) => {
                self.connection.pages(|pages| pages.forget(&self.target));
                Ok(false)
            }
            Err(fault) => Err(fault),
        }
    }

    pub(super) async fn perform(&self, command: &Command) -> Result<Answer, Fault> {
        match command {
            Command::Navigate { url, wait_until } => self.navigate(url, *wait_until).await,
            Command::Screenshot { selector: Some(selector), .. } => {
                self.screenshot_of(selector).await
            }
            Command::Screenshot { selector: None, full_page } => self.screenshot(*full_page).await,
            Command::Click { selector } => self.click(selector).await,
            Command::Type { selector, text, clear_first } => {
                self.type_into(selector, text, *clear_first).await
            }
            Command::Read { selector, property, most_units } => {
                self.read(selector, *property, *most_units).await
            }
            Command::Evaluate { expression } => self.evaluate(expression).await.map(Answer::Text),
            Command::Halt => self.halt().await,
            Command::Close => self.close().await,
        }
    }

    async fn halt(&self) -> Result<Answer, Fault> {
        self.call("Page.stopLoading", json!({})).await?;
        Ok(Answer::Arrived { url: self.url().await?, title: String::new(), status: 0 })
    }

    async fn navigate(&self, url: &str, wait_until: WaitUntil) -> Result<Answer, Fault> {
        let navigated = self.call("Page.navigate", json!({ "url": url })).await?;
        let Navigated { loader_id, error_text } = read(&navigated)?;
        if !error_text.is_empty() {
            return Err(Fault::Failed(error_text));
        }
        // Without a document the page has only gone to another place of the one that it shows.
        let status = match loader_id {
            None => 0,
            Some(document) => {
                self.come_to(&document, wait_until).await?;
                self.page(|page| page.status_of(&document))?
            }
        };
        // A page may go on at any time; its title is then that of the next document.
        let title =
            self.in_world("function () { return document.title.toWellFormed(); }", json!([]));
        let title = match title.await {
            Ok(title) => title.as_str().unwrap_or_default().to_owned(),
            Err(Fault::Refused(_)) => String::new(),
            Err(fault) => return Err(fault),
        };
        Ok(Answer::Arrived { url: self.url().await?, title, status })
    }

    /// Waits until the page has shown that document, and the one that it shows now has come so far.
    async fn come_to(&self, document: &str, event: WaitUntil) -> Result<(), Fault> {
        loop {
            let progress = self.page(|page| page.progress_of(document, event))?;
            match progress {
                Progress::Done => return Ok(()),
                Progress::QuietSince(since) if since.elapsed() >= QUIET => return Ok(()),
                Progress::QuietSince(since) => {
                    sleep(QUIET.saturating_sub(since.elapsed())).await;
                }
                Progress::Waits => {
                    let seen = self.connection.until(|pages| {
                        let Some(page) = pages.of_session(&self.session) else { return Some(()) };
                        let progress = page.progress_of(document, event);
                        (progress != Progress::Waits).then_some(())
                    });
                    seen.await?;
                }
            }
        }
    }

    /// The URL where it is, as the browser and not the page has it.
    async fn url(&self) -> Result<String, Fault> {
        let params = json!({ "targetId": self.target });
        let described = self.connection.call(None, "Target.getTargetInfo", params).await?;
        Ok(read::<Described>(described.get())?.target_info.url)
    }

    /// Evaluates an expression in the page's own world, and awaits it.
    async fn evaluate(&self, expression: &str) -> Result<String, Fault> {
        let params = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
        });
        match value(&self.call("Runtime.evaluate", params).await?)? {
            Json::String(text) => Ok(text),
            other => Ok(other.to_string()),
        }
    }

    /// Calls a function in a world that sees the page's document and not its variables.
    pub(super) async fn in_world(&self, function: &str, args: Json) -> Result<Json, Fault> {
        let frame = self.page(|page| page.frame.clone())?;
        let params = json!({ "frameId": frame, "worldName": "isolane" });
        let World { execution_context_id } =
            read(&self.call("Page.createIsolatedWorld", params).await?)?;
        let params = json!({
            "functionDeclaration": function, "executionContextId": execution_context_id,
            "arguments": args, "returnByValue": true,
        });
        value(&self.call("Runtime.callFunctionOn", params).await?)
    }

    pub(super) async fn call(&self, method: &str, params: Json) -> Result<String, Fault> {
        let answer = self.connection.call(Some(&self.session), method, params).await?;
        Ok(Box::<str>::from(answer).into())
    }

    /// Calls a method several times, the next one before the answer to the one before.
    pub(super) async fn call_all(
        &self,
        calls: impl IntoIterator<Item = (&'static str, Json)>,
    ) -> Result<(), Fault> {
        let begin = |(method, params)| self.connection.begin(Some(&self.session), method, &params);
        let begun: Vec<_> = calls.into_iter().map(begin).collect::<Result<_, _>>()?;
        for call in begun {
            call.answer().await?;
        }
        Ok(())
    }

    /// Waits until the page to which an action leads is there.
    pub(super) async fn settle(&self) -> Result<(), Fault> {
        // The page answers once it has heard of the action.
        let heard = self.call("Runtime.evaluate", json!({ "expression": "0" })).await;
        if matches!(heard, Err(Fault::Lost(_))) {
            // The action has closed the page, or the browser is gone, as the next command will see.
            return Ok(());
        }
        let there = self.connection.until(|pages| {
            let is_leaving = pages.of_session(&self.session).is_some_and(|page| page.is_leaving);
            (!is_leaving).then_some(())
        });
        match timeout(LEAVE, there).await {
            Ok(Err(fault)) => Err(fault),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    async fn close(&self) -> Result<Answer, Fault> {
        let params = json!({ "targetId": self.target });
        self.connection.call(None, "Target.closeTarget", params).await?;
        let closed =
            |pages: &mut super::Pages| pages.of_target(&self.target).is_none().then_some(());
        self.connection.until(closed).await?;
        Ok(Answer::Nothing)
    }

    fn page<T>(&self, read: impl FnOnce(&PageState) -> T) -> Result<T, Fault> {
        let found = self.connection.pages(|pages| pages.of_session(&self.session).map(read));
        found.ok_or(if self.connection.is_gone() {
            Fault::GONE
        } else {
            Fault::Lost("the page was closed")
        })
    }

    /// Brings the page to rest after a command that was given up: it stops what it does, and is not where it was not told
    /// to go. A page that cannot is replaced.
    pub(super) async fn recover(self, command: &Command) {
        let is_closing = *command == Command::Close;
        let is_at_rest = async {
            if is_closing {
                return Ok::<_, Fault>(false);
            }
            if let Command::Navigate { .. } = command {
                self.call("Page.stopLoading", json!({})).await?;
            }
            let answers =
                || timeout(REST, self.call("Runtime.evaluate", json!({ "expression": "0" })));
            if answers().await.is_err() {
                self.call("Runtime.terminateExecution", json!({})).await?;
                if answers().await.is_err() {
                    return Ok(false);
                }
            }
            if let Command::Navigate { url, .. } = command {
                let now = self.url().await?;
                return Ok(now == *url || self.origin.get() == Some(&now));
            }
            Ok(true)
        };
        if let Ok(Ok(true)) = timeout(RECOVERY, is_at_rest).await {
            return;
        }
        give_up(&self.connection, &self.target);
    }
}

/// Forgets a page and has it closed, whenever that may be.
fn give_up(connection: &Connection, target: &str) {
    connection.pages(|pages| pages.forget(target));
    connection.tell("Target.closeTarget", &json!({ "targetId": target }));
}

/// Reads an answer of the browser.
pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|_| Fault::Refused("the browser gave no answer".to_owned()))
}

/// The value of an evaluation.
fn value(text: &str) -> Result<Json, Fault> {
    let Evaluated { result, exception_details } = read(text)?;
    let Some(ExceptionDetails { text, exception }) = exception_details else {
        return Ok(result.value);
    };
    let thrown = match exception.value {
        Json::Null => None,
        Json::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    Err(Fault::Failed(exception.description.or(thrown).unwrap_or(text)))
}
