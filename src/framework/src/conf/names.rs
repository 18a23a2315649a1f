//! Names in messages: the nearest valid one, and lists that fit on a line.

/// Longest list of names that a help text carries, in bytes; a longer one helps nobody.
const LONGEST_LIST: usize = 160;

/// Longest name that is compared; nothing that people type on purpose is longer, and the cost is quadratic.
const LONGEST_COMPARED: usize = 64;

/// Longest part of a name from the file that a message repeats.
const LONGEST_SHOWN: usize = 60;

/// The candidate that `name` was probably meant to be: at most a third of its letters are off, and at most three.
/// The case of letters does not count. Of several equally near ones, the first.
pub(super) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_COMPARED {
        return None;
    }
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let limit = (wanted.len() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase().chars().collect::<Vec<_>>()), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Help for an unknown name: the nearest one, then all of them if they are few. `things` is the plural.
pub(super) fn suggest<'a>(name: &str, things: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = nearest(name, candidates.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let list = list(things, &candidates);
    match (near, list) {
        (Some(near), Some(list)) => Some(format!("{near} {list}")),
        (near, list) => near.or(list),
    }
}

/// «actions are: a, b», if that is short.
pub(super) fn list(things: &str, names: &[&str]) -> Option<String> {
    let joined = names.join(", ");
    (!names.is_empty() && joined.len() <= LONGEST_LIST).then(|| format!("{things} are: {joined}"))
}

/// A name from the file as a message may repeat it: in back quotes, short, and without control characters.
pub(super) fn shown(name: &str) -> String {
    let mut text: String =
        name.chars().take(LONGEST_SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(LONGEST_SHOWN).is_some() {
        text.push('…');
    }
    format!("`{text}`")
}

/// How many letters have to be changed, added, dropped or swapped with their neighbour (optimal string alignment).
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut best = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}
