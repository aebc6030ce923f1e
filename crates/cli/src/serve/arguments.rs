//! The flags of `isolane serve`.
//!
//! In: words. Out: typed options; their ranges are checked where they are used.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{
    GivenArguments, Limit, Place, bytes, bytes_or_zero, time, time_or_none, time_or_zero,
    time_or_zero_or_none,
};

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// A JSON file with tools that code may import (mcpServers, tools, policy), and with options by their names in Node
    /// (concurrency, database, …), which flags replace.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The address: an IP address or a name. One that is not loopback needs a token. [default: 127.0.0.1]
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// The port; 0 for a free one. [default: 4765]
    #[arg(long)]
    pub(crate) port: Option<u16>,
    /// A file with the token that clients must send, of at least 16 characters; else the variable ISOLANE_TOKEN has it.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The most bytes of a request's body. [default: 1m]
    #[arg(long, value_parser = bytes)]
    pub(crate) max_body: Option<u64>,
    /// POST requests a second of a token or an address. [default: 50]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) rate: Option<f64>,
    /// POST requests at once. [default: 200]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) burst: Option<u32>,
    /// Take any number of POST requests.
    #[arg(long, conflicts_with_all = ["rate", "burst"])]
    pub(crate) no_rate_limit: bool,
    /// Executions at once. [default: 4 per core, at least 8]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) concurrency: Option<usize>,
    /// Processes that may wait for a place. [default: 1000]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_queued: Option<usize>,
    /// The time limit of a process that asks for none, or none. [default: 30s]
    #[arg(long, value_parser = time_or_none)]
    pub(crate) timeout: Option<Limit>,
    /// The longest time limit that a client may ask for. [default: 1h]
    #[arg(long, value_parser = time)]
    pub(crate) max_timeout: Option<u64>,
    /// The time that a kill may take. [default: 10s]
    #[arg(long, value_parser = time_or_zero)]
    pub(crate) kill_grace: Option<u64>,
    /// The time that an execution may take beyond its limit, or none. [default: 1m]
    #[arg(long, value_parser = time_or_zero_or_none)]
    pub(crate) backstop: Option<Limit>,
    /// The bytes that are kept of each stream. [default: 8m]
    #[arg(long, value_parser = bytes_or_zero)]
    pub(crate) max_stream: Option<u64>,
    /// The bytes of an output's JSON. [default: 8m]
    #[arg(long, value_parser = bytes)]
    pub(crate) max_output: Option<u64>,
    /// Finished processes that are kept. [default: 10000]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) retain_count: Option<usize>,
    /// How long finished processes are kept. [default: 7d]
    #[arg(long, value_parser = time_or_zero)]
    pub(crate) retain: Option<u64>,
    /// The file that keeps the processes, or none: they are in memory then. [default: processes.db in the folder isolane
    /// of your state folder]
    #[arg(long, value_name = "PATH")]
    pub(crate) database: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) given: GivenArguments,
    /// Where the code runs. [default: process]
    #[arg(long, value_enum)]
    pub(crate) isolation: Option<Place>,
}
