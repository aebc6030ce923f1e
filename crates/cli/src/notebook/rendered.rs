//! The cells of a notebook and their outputs, as files of their own: a page of HTML, a notebook of Jupyter.
//!
//! In: the cells that have run, and those that have not. Out: a file for each flag.

use std::{
    fs,
    path::{Path, PathBuf},
};

use isolane_notebook::{
    CallResult, CellInput, CellResult, HtmlOptions, Truncation, render_html, to_ipynb,
};

use super::{
    arguments::NotebookArguments,
    document::{Document, Done},
};
use crate::exit::Ended;

/// The files to write.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    html: Option<PathBuf>,
    ipynb: Option<PathBuf>,
    /// The name of the notebook.
    title: String,
}

impl Rendered {
    /// # Errors
    /// Misuse: a folder that there is not, the file of the notebook itself. Cells may run for long before a file is written.
    pub(crate) fn new(arguments: &NotebookArguments) -> Result<Self, Ended> {
        let (html, ipynb) = (arguments.html.clone(), arguments.ipynb.clone());
        let is_one = html == ipynb
            || html
                .as_deref()
                .zip(ipynb.as_deref())
                .is_some_and(|(html, ipynb)| is_same(html, ipynb));
        if html.is_some() && is_one {
            return Err(Ended::misuse("--html and --ipynb need files of their own"));
        }
        for (flag, file) in [("--html", &html), ("--ipynb", &ipynb)] {
            let Some(file) = file else { continue };
            let refused =
                |why: &str| Ended::misuse(format!("cannot write {}: {why}", file.display()));
            if is_same(&arguments.file, file) {
                let instead = if flag == "--ipynb" { "; --write puts outputs into it" } else { "" };
                return Err(refused(&format!("it is the notebook itself{instead}")));
            }
            let folder = file.parent().filter(|folder| *folder != Path::new(""));
            if folder.is_some_and(|folder| !folder.is_dir()) {
                return Err(refused("its folder is not there"));
            }
            if file.is_dir() {
                return Err(refused("it is a folder"));
            }
        }
        let name = arguments.file.file_name().filter(|name| *name != "-");
        let title =
            name.map_or_else(|| "Notebook".to_owned(), |name| name.to_string_lossy().into());
        Ok(Self { html, ipynb, title })
    }

    pub(crate) fn is_none(&self) -> bool {
        self.html.is_none() && self.ipynb.is_none()
    }

    /// The texts of the files, with their paths.
    pub(crate) fn texts(&self, document: &Document, done: &[Done]) -> Vec<(PathBuf, String)> {
        let mut texts = Vec::new();
        if let Some(file) = &self.html {
            let options = HtmlOptions { title: Some(self.title.clone()), ..HtmlOptions::default() };
            texts.push((file.clone(), render_html(&whole(document, done), &options)));
        }
        if let Some(file) = &self.ipynb {
            // A notebook of Jupyter keeps its texts and all else that it has.
            let text = if document.is_jupyter() {
                document.with(done)
            } else {
                to_ipynb(&one_by_one(document, done))
            };
            texts.push((file.clone(), text));
        }
        texts
    }
}

/// Whether two paths lead to one file that is there, by names or by links of any kind.
#[cfg(unix)]
fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let file = |path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    file(one).is_some_and(|found| file(other) == Some(found))
}

/// Whether two paths lead to one file that is there.
#[cfg(not(unix))]
fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one)
        .is_ok_and(|found| fs::canonicalize(other).is_ok_and(|other| other == found))
}

/// Writes files, and blocks meanwhile.
///
/// # Errors
/// Misuse: a file that cannot be written.
pub(crate) fn write(texts: &[(PathBuf, String)]) -> Result<(), Ended> {
    for (file, text) in texts {
        let written = fs::write(file, text);
        written
            .map_err(|error| Ended::misuse(format!("cannot write {}: {error}", file.display())))?;
    }
    Ok(())
}

/// All cells as one call.
fn whole(document: &Document, done: &[Done]) -> CallResult {
    let cuts = done.iter().filter_map(|done| done.truncation);
    let truncation = cuts.reduce(|all, cut| Truncation {
        total_bytes: all.total_bytes + cut.total_bytes,
        total_lines: all.total_lines + cut.total_lines,
        shown_bytes: all.shown_bytes + cut.shown_bytes,
        shown_lines: all.shown_lines + cut.shown_lines,
        ..all
    });
    CallResult { cells: cells(document, done), truncation, ..CallResult::default() }
}

/// A call for each cell.
fn one_by_one(document: &Document, done: &[Done]) -> Vec<CallResult> {
    let cuts = done.iter().map(|done| done.truncation).chain(std::iter::repeat(None));
    let calls = cells(document, done).into_iter().zip(cuts);
    calls
        .map(|(cell, truncation)| CallResult {
            cells: vec![cell],
            truncation,
            ..CallResult::default()
        })
        .collect()
}

/// The cells that have run, and then the others.
fn cells(document: &Document, done: &[Done]) -> Vec<CellResult> {
    let pending = document.cells.iter().enumerate().skip(done.len()).map(|(index, cell)| {
        CellResult::pending(index, CellInput::new(cell.language, cell.code.clone()))
    });
    done.iter().map(|done| done.result.clone()).chain(pending).collect()
}
