//! Tools from elsewhere for code in an isolate: those of MCP servers, and requests over HTTP.
//!
//! In: a configuration, which names servers, requests and a policy. Out: [tools](isolane_environment::ToolHandler) with
//! their descriptions, for a process service or a run. Code sees a tool's arguments and answers, and nothing of how it is
//! reached: no address, header, variable or token.
//!
//! ```no_run
//! # async fn open() -> Result<(), isolane::Error> {
//! use isolane_environment::ToolSet;
//! use isolane_remote_tools::{Config, Opening, RemoteTools};
//!
//! let text = r#"{ "mcpServers": { "github": { "command": "github-mcp", "env": { "TOKEN": "${GITHUB_TOKEN}" } } } }"#;
//! let config = Config::parse(text, |name| std::env::var(name).ok())?;
//! let remote = RemoteTools::open(&config, Opening::default()).await?;
//! let mut tools = ToolSet::default();
//! tools.add(remote.tools())?;
//! println!("{}", tools.types());
//! remote.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod client;
mod config;
mod hidden;
mod http;
mod mcp;
mod policed;
mod policy;
mod remote;

pub use config::Config;
pub use policed::{Approval, Approver};
pub use policy::Decision;
pub use remote::{Opening, RemoteTools};
