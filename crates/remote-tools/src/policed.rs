//! A tool behind the policy, in the runtime of its server.
//!
//! In: calls. Out: the tool's answers, once somebody has approved each call of a tool that is asked about.

use std::sync::Arc;

use async_trait::async_trait;
use isolane_environment::{ToolContext, ToolError, ToolHandler};
use serde_json::Value;
use tokio::runtime::Handle;

/// A call that somebody is asked about.
#[derive(Clone, Debug)]
pub struct Approval {
    /// The full name of the tool: `github.delete_repo`.
    pub tool: String,
    /// Its name in the code: `github.deleteRepo`.
    pub shown_name: String,
    /// The arguments of the call.
    pub args: Value,
    /// The number of the execution that calls.
    pub eid: u64,
}

/// Asks somebody about calls. One that is dropped needs no answer any more.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Whether a call may be made; `None` if there is nobody to ask.
    async fn approve(&self, call: &Approval) -> Option<bool>;
}

/// A tool that is called in the runtime in which its server lives, whichever runtime its caller has.
pub(crate) struct AtHome {
    pub(crate) home: Handle,
    pub(crate) shown_name: String,
    pub(crate) handler: Arc<dyn ToolHandler>,
}

#[async_trait]
impl ToolHandler for AtHome {
    async fn call(&self, args: Value, context: ToolContext) -> Result<Value, ToolError> {
        let handler = Arc::clone(&self.handler);
        // The signal of the context ends it.
        let called = self.home.spawn(async move { handler.call(args, context).await });
        called.await.unwrap_or_else(|_| {
            let message = format!("{}: the tool is closed", self.shown_name);
            Err(ToolError::new("Error", message))
        })
    }
}

/// A tool whose calls somebody must approve.
pub(crate) struct Asked {
    pub(crate) tool: String,
    pub(crate) shown_name: String,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) handler: Arc<dyn ToolHandler>,
}

#[async_trait]
impl ToolHandler for Asked {
    async fn call(&self, args: Value, context: ToolContext) -> Result<Value, ToolError> {
        let Self { tool, shown_name, .. } = self;
        let approval = Approval {
            tool: tool.clone(),
            shown_name: shown_name.clone(),
            args: args.clone(),
            eid: context.eid,
        };
        let answer = async {
            match &self.approver {
                Some(approver) => approver.approve(&approval).await,
                None => None,
            }
        };
        let answer = tokio::select! {
            () = context.signal.cancelled() => Some(false),
            answer = answer => answer,
        };
        let message = match answer {
            Some(true) => return self.handler.call(args, context).await,
            Some(false) => format!("{shown_name}: the call was declined"),
            None => format!(
                "{shown_name}: a call needs an approval, and there is nobody to ask; the policy \
                 {{ \"{tool}\": \"allow\" }} allows it"
            ),
        };
        Err(ToolError::new("Error", message))
    }
}
