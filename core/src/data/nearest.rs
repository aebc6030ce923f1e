//! The nearest of several names, for "did you mean".

/// The one of `names` that `word` most likely means, if any is near enough.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.to_lowercase().chars().take(64).collect();
    names
        .map(|name| (distance(&word, name), name))
        .filter(|(distance, name)| {
            let prefix: String = word.iter().collect();
            *distance <= name.len() / 2
                || (word.len() > 3 && name.to_lowercase().starts_with(&prefix))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The one of `names` that `word` can hardly not mean: it differs in one letter of four, or in case alone.
pub(crate) fn misspelled<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    let letters: Vec<char> = word.to_lowercase().chars().take(LONGEST + 1).collect();
    if letters.len() > LONGEST {
        return None;
    }
    names
        .filter(|name| name.chars().count().abs_diff(letters.len()) <= letters.len() / 4)
        .map(|name| (distance(&letters, &name.to_lowercase()), name))
        .filter(|(distance, name)| *name != word && *distance <= letters.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn distance(word: &[char], name: &str) -> usize {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (i, left) in word.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in name.iter().enumerate() {
            let next = (row[j] + 1).min(row[j + 1] + 1).min(diagonal + usize::from(left != right));
            diagonal = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[name.len()]
}
