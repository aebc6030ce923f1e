//! The rules of foreign SQL: which actions a statement may have.
//!
//! In: the actions that SQLite finds in a statement while it prepares it. Out: whether each is allowed; the refusal, in
//! words; the longest value with which all functions of the statement stay quick.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use super::locked;

/// Pragmas that tell about tables, indexes and keys; their value is the argument.
const READ_WITH_ARGUMENT: [&str; 8] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
];

/// Pragmas that may be read. `data_version` and `page_size` are those that `fts5` and `rtree` read by themselves.
const READ: [&str; 3] = ["page_count", "data_version", "page_size"];

/// Functions that are not for foreign SQL.
const REFUSED_FUNCTIONS: [&str; 2] = ["load_extension", "fts3_tokenizer"];

/// Functions whose time grows faster than their arguments, and the longest value with which a call stays below about
/// 50 ms. SQLite interrupts no function. A statement with one of these handles no longer values.
const SLOW_FUNCTIONS: [(&str, i32); 3] =
    [("json_patch", 8 << 10), ("jsonb_patch", 8 << 10), ("snippet", 16 << 10)];

/// Functions that look up each of many paths from the start of a value.
const PATH_FUNCTIONS: [&str; 11] = [
    "json_extract",
    "jsonb_extract",
    "json_set",
    "jsonb_set",
    "json_insert",
    "jsonb_insert",
    "json_replace",
    "jsonb_replace",
    "json_remove",
    "jsonb_remove",
    "json_array_insert",
];

/// The facts of one statement that matter when it is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The longest value with which its functions stay quick.
    pub(super) longest_value: Option<i32>,
    /// Whether it has a function that takes paths.
    pub(super) has_paths: bool,
    /// Whether it defines a table or an index, whose functions are not looked at again when it is used.
    pub(super) defines: bool,
}

/// The result of judging one statement.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// The reason why the statement is refused.
    pub(super) refusal: Option<String>,
    pub(super) facts: Facts,
    /// Whether the facts were known before. Then all others are refused.
    is_known: bool,
    /// Whether others were found: the schema has changed since.
    pub(super) has_changed: bool,
}

/// The rules of one connection. All clones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Whether the statement is our own.
    trusted: AtomicBool,
    found: Mutex<Found>,
}

impl Rules {
    /// Allows everything while `work` prepares statements of our own.
    pub(super) fn trusting<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.0.trusted.swap(true, Ordering::Relaxed);
        let done = work();
        self.0.trusted.store(before, Ordering::Relaxed);
        done
    }

    /// Forgets the facts of the last statement.
    pub(super) fn begin(&self) {
        *locked(&self.0.found) = Found::default();
    }

    /// The next statement was judged before, with these facts. SQLite prepares it again if the schema has changed.
    pub(super) fn expect(&self, facts: Facts) {
        *locked(&self.0.found) = Found { facts, is_known: true, ..Found::default() };
    }

    /// The facts of the statement that was prepared last.
    pub(super) fn found(&self) -> Found {
        locked(&self.0.found).clone()
    }

    /// Judges an action.
    pub(super) fn judge(&self, context: &AuthContext<'_>) -> Authorization {
        if self.0.trusted.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        let mut found = locked(&self.0.found);
        let refusal = refusal(context);
        let mut facts = found.facts;
        note(&mut facts, context.action);
        if found.is_known && (refusal.is_some() || facts != found.facts) {
            found.has_changed = true;
            return Authorization::Deny;
        }
        match refusal {
            Some(refusal) => {
                found.refusal.get_or_insert(refusal);
                Authorization::Deny
            }
            None => {
                found.facts = facts;
                Authorization::Allow
            }
        }
    }
}

/// Keeps the facts that matter later.
fn note(facts: &mut Facts, action: AuthAction<'_>) {
    match action {
        AuthAction::Function { function_name } => {
            let name = function_name.to_ascii_lowercase();
            facts.has_paths |= PATH_FUNCTIONS.contains(&&*name);
            if let Some((_, longest)) = SLOW_FUNCTIONS.iter().find(|(slow, _)| *slow == name) {
                facts.limit_values(*longest);
            }
        }
        AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::AlterTable { .. } => facts.defines = true,
        _ => {}
    }
}

impl Facts {
    /// Lowers the longest value.
    pub(super) fn limit_values(&mut self, longest: i32) {
        self.longest_value = Some(self.longest_value.map_or(longest, |known| known.min(longest)));
    }
}

/// The reason why an action is refused.
fn refusal(context: &AuthContext<'_>) -> Option<String> {
    let temporary = || Some("temporary objects are not allowed".to_owned());
    match context.action {
        // ALTER TABLE looks for temporary objects to rename. There are none, and SQLite lets nobody else write there.
        AuthAction::Read { table_name, .. } | AuthAction::Update { table_name, .. }
            if table_name.eq_ignore_ascii_case("sqlite_temp_master") =>
        {
            return None;
        }
        _ if context.database_name.is_some_and(|name| name.eq_ignore_ascii_case("temp")) => {
            return temporary();
        }
        _ => {}
    }
    match context.action {
        AuthAction::Select
        | AuthAction::Recursive
        | AuthAction::Read { .. }
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Delete { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropVtable { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Analyze { .. } => None,
        AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::DropTempView { .. } => temporary(),
        AuthAction::CreateVtable { module_name, .. } => {
            let known = ["fts5", "rtree"].iter().any(|name| module_name.eq_ignore_ascii_case(name));
            (!known).then(|| format!("virtual table module '{module_name}' is not allowed"))
        }
        AuthAction::Function { function_name } => {
            let refused =
                REFUSED_FUNCTIONS.iter().any(|name| function_name.eq_ignore_ascii_case(name));
            refused.then(|| format!("{function_name} is not allowed"))
        }
        AuthAction::Pragma { pragma_name, pragma_value } => pragma(pragma_name, pragma_value),
        AuthAction::Attach { .. } => Some("ATTACH is not allowed".to_owned()),
        AuthAction::Detach { .. } => Some("DETACH is not allowed".to_owned()),
        // `refused_word` refuses transactions by their first word.
        _ => Some("this statement is not allowed".to_owned()),
    }
}

fn pragma(name: &str, value: Option<&str>) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let allowed = match &*name {
        "user_version" | "quick_check" => true,
        known if READ_WITH_ARGUMENT.contains(&known) => true,
        known => READ.contains(&known) && value.is_none(),
    };
    (!allowed).then(|| format!("PRAGMA {name} is not allowed"))
}

/// The refusal of a statement by its first word: an action that a statement has before SQLite looks at it.
pub(super) fn refused_word(sql: &str) -> Option<String> {
    let word = first_word(sql)?.to_ascii_uppercase();
    match &*word {
        "BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" => {
            Some(format!("{word} is not allowed; use db.batch"))
        }
        "VACUUM" | "ATTACH" | "DETACH" => Some(format!("{word} is not allowed")),
        _ => None,
    }
}

/// The first word behind spaces, semicolons and comments.
pub(super) fn first_word(sql: &str) -> Option<&str> {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\x0c', '\r', ';', '\u{feff}']);
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n')?.1;
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            return Some(&rest[..end]).filter(|word| !word.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_stands_behind_comments() {
        for (sql, word) in [
            ("select 1", Some("select")),
            ("  ;; /* a */ -- b\n\tBegin", Some("Begin")),
            ("\u{feff}COMMIT;", Some("COMMIT")),
            ("/**/VACUUM/**/", Some("VACUUM")),
            ("-- nothing", None),
            ("/* nothing", None),
            ("", None),
            ("(select 1)", None),
            ("'begin'", None),
        ] {
            assert_eq!(first_word(sql), word, "{sql}");
        }
    }
}
