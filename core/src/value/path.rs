//! The place of a value inside another, as error messages name it: `globals.db["a b"][3]`.

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A property.
    Key(String),
    /// An element of an array.
    Index(usize),
    /// A key of a Map.
    MapKey(usize),
    /// A value of a Map or a member of a Set.
    Member(usize),
    /// The value of a key that is no string, shown as its language writes it.
    Entry(String),
}

impl Step {
    /// The steps through the open containers, outermost first, as far as a path shows them. Of many steps these are the
    /// ones at either end and one between them that the path leaves out.
    #[must_use]
    pub fn through<F>(open: &[F], step: impl Fn(&F) -> Self) -> Vec<Self> {
        match open.len().checked_sub(SHOWN_STEPS) {
            Some(last) if last > SHOWN_STEPS => {
                let ends = [&open[..=SHOWN_STEPS], &open[last..]];
                ends.into_iter().flatten().map(step).collect()
            }
            _ => open.iter().map(step).collect(),
        }
    }

    /// The path to the target of this step from `root`.
    #[must_use]
    pub fn after(self, root: &str) -> String {
        join(root, [self].into_iter())
    }
}

/// The root of the path into an answer of the host function of that name, which may be empty.
#[must_use]
pub fn answer_of(function: &str) -> String {
    let shown: String = function.chars().take(SHOWN_KEY).collect();
    format!("the answer of {}", if shown.is_empty() { "a host function" } else { &shown })
}

/// Steps shown from either end of a longer path.
const SHOWN_STEPS: usize = 12;

/// Characters of one key that are shown.
const SHOWN_KEY: usize = 80;

/// Code units of a key beyond which the path stays the same.
pub(crate) const KEY_UNITS: usize = 2 * SHOWN_KEY + 1;

/// The path from `root` through all steps, without its middle if it is long.
pub(crate) fn join(root: &str, steps: impl Iterator<Item = Step>) -> String {
    let mut steps: Vec<Option<Step>> = steps.map(Some).collect();
    join_shown(root, steps.len(), |at| steps.get_mut(at).and_then(Option::take))
}

/// The path from `root` through `count` steps; calls `step` only for those that are shown.
pub(crate) fn join_shown(
    root: &str,
    count: usize,
    mut step: impl FnMut(usize) -> Option<Step>,
) -> String {
    let (first, last) = match count.checked_sub(SHOWN_STEPS) {
        Some(last) if last > SHOWN_STEPS => (SHOWN_STEPS, last),
        _ => (count, count),
    };
    let mut path = root.to_owned();
    (0..first).filter_map(&mut step).for_each(|step| push(&mut path, &step));
    if last < count {
        path.push('…');
    }
    (last..count).filter_map(step).for_each(|step| push(&mut path, &step));
    path
}

fn push(path: &mut String, step: &Step) {
    match step {
        Step::Key(key) if is_identifier(key) => {
            path.push('.');
            path.push_str(key);
        }
        Step::Key(key) => {
            let shown: String = key.chars().take(SHOWN_KEY).collect();
            path.push_str(&format!("[{shown:?}]"));
        }
        Step::Index(index) => path.push_str(&format!("[{index}]")),
        Step::MapKey(index) => path.push_str(&format!(".keys()[{index}]")),
        Step::Entry(key) => {
            let shown: String = key.chars().take(SHOWN_KEY).collect();
            path.push_str(&format!("[{shown}]"));
        }
        Step::Member(index) => path.push_str(&format!(".values()[{index}]")),
    }
}

fn is_identifier(key: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    key.len() <= SHOWN_KEY
        && key.chars().all(word)
        && key.chars().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_every_kind_of_step() {
        let steps = [
            Step::Key("a".into()),
            Step::Key("b c".into()),
            Step::Index(3),
            Step::MapKey(0),
            Step::Member(1),
        ];
        let path = join("result", steps.into_iter());
        assert_eq!(path, r#"result.a["b c"][3].keys()[0].values()[1]"#);
    }

    #[test]
    fn leaves_out_the_middle_of_a_long_path() {
        let path = join("result", vec![Step::Index(0); 1000].into_iter());
        assert_eq!(path, format!("result{0}…{0}", "[0]".repeat(SHOWN_STEPS)));
    }

    #[test]
    fn steps_through_many_containers_are_those_that_are_shown() {
        let open: Vec<usize> = (0..100_000).collect();
        let all = join("result", open.iter().map(|&at| Step::Index(at)));
        let shown = Step::through(&open, |&at| Step::Index(at));
        assert_eq!((shown.len(), join("result", shown.into_iter())), (2 * SHOWN_STEPS + 1, all));
    }

    #[test]
    fn asks_only_for_what_it_shows() {
        let mut asked = 0;
        let mut step = |at| {
            asked += 1;
            Some(Step::Index(at))
        };
        join_shown("result", 100_000, &mut step);
        assert_eq!(asked, 2 * SHOWN_STEPS);
    }
}
