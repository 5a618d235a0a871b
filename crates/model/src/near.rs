//! What somebody who mistyped a name probably meant.

/// The most that are worth a look.
const MOST: usize = 3;

/// The names that are like what was typed, the likeliest first; none where nothing is.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let folded: String = typed.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    let length = folded.chars().count();
    let near = |name: &'a str| {
        let other: String = name.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
        let distance = strsim::osa_distance(&folded, &other);
        let is_like = distance <= (length / 3).clamp(1, 3);
        // The beginning of a name is the name, half typed.
        let begins = length >= 3 && other.starts_with(&folded);
        (length > 0 && (is_like || begins)).then_some((!is_like, distance, name))
    };
    let mut found: Vec<_> = names.into_iter().filter_map(near).collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, _, name)| name.to_owned()).collect()
}

/// Names are compared as far as this, in characters.
const LONGEST: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_and_half_a_name_are_understood() {
        let names = ["before-refactor", "before-release", "release", "ok", "größer"];
        for (typed, expected) in [
            ("before-refacto", vec!["before-refactor"]),
            ("before-refcator", vec!["before-refactor"]),
            ("before", vec!["before-release", "before-refactor"]),
            ("RELEASE", vec!["release"]),
            ("relase", vec!["release"]),
            ("groser", vec!["größer"]),
            ("og", vec!["ok"]),
            ("xyzzy", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(nearest(typed, names), expected, "{typed:?}");
        }
    }
}
