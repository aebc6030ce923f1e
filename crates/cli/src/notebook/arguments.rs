//! The flags of `isolane notebook`.
//!
//! In: the words of the command line. Out: typed arguments.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::{GivenArguments, Place, time};

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct NotebookArguments {
    /// The file: a notebook of Jupyter, or JSON, { "cells": [source | { "source", "language" }] }; or - for stdin.
    pub(crate) file: PathBuf,
    /// Run the cells after one that failed, too.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Put the outputs into the file.
    #[arg(long)]
    pub(crate) write: bool,
    /// Write the cells with their outputs into a page of HTML.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write them into a notebook of Jupyter; a copy with the outputs, if the file is one.
    #[arg(long, value_name = "FILE")]
    pub(crate) ipynb: Option<PathBuf>,
    /// A folder whose files cells may read: the working directory of Python, which is confined to it.
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,
    /// Run cells of Python without confinement, in the folder of the file: they can do whatever you can.
    #[arg(long)]
    pub(crate) unconfined_python: bool,
    /// The interpreter of Python; by default that of VIRTUAL_ENV, else python3.
    #[arg(long, value_name = "PATH")]
    pub(crate) interpreter: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) given: GivenArguments,
    /// The time after which a cell is ended, in whole seconds: 30s, 5m. By default 10m, which is the most.
    #[arg(long, value_parser = time)]
    pub(crate) timeout: Option<u64>,
    /// Where JavaScript runs.
    #[arg(long, value_enum, default_value_t = Place::Thread)]
    pub(crate) isolation: Place,
    /// Print one line of JSON: the cells that have run, with their outputs.
    #[arg(long)]
    pub(crate) json: bool,
}
