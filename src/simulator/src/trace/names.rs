//! Names that Kubernetes accepts, made of ids that it would not.

use std::collections::BTreeMap;

use super::random;

/// Longest name: a pod's name is this, a role and an index, within the 63 characters of a label.
const MAX_LENGTH: usize = 40;

/// Names of one kind (jobs, queues), and what each stands for. Two ids never share a name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    originals: BTreeMap<String, String>,
}

impl Names {
    /// The name of an id, the same each time.
    pub(crate) fn of(&mut self, original: &str) -> String {
        self.resolve(original).0
    }

    /// The name of an id that may come only once.
    pub(crate) fn once(&mut self, original: &str) -> Result<String, String> {
        match self.resolve(original) {
            (name, Seen::First) => Ok(name),
            (_, Seen::Again) => Err(format!("a second job with the id `{}`", super::fields::cut(original))),
        }
    }

    fn resolve(&mut self, original: &str) -> (String, Seen) {
        let plain = kube_name(original);
        for salt in 0.. {
            // Ids that differ only in case or punctuation meet here, and the later ones get a suffix.
            let name = if salt == 0 {
                plain.clone()
            } else {
                format!("{plain}-{:06x}", random::draw(salt, original, "name") & 0xff_ffff)
            };
            match self.originals.get(&name) {
                Some(known) if known == original => return (name, Seen::Again),
                Some(_) => {}
                None => {
                    self.originals.insert(name.clone(), original.to_owned());
                    return (name, Seen::First);
                }
            }
        }
        unreachable!("the salts outnumber the names")
    }
}

enum Seen {
    First,
    Again,
}

/// The name of a job by its number: sorting by name is sorting by number, up to a hundred million.
pub(crate) fn numbered(number: u64) -> String {
    format!("job-{number:08}")
}

/// Lower-case letters, digits and single dashes; numbers become `job-00000012`, anything else keeps its shape.
fn kube_name(original: &str) -> String {
    if let Ok(number) = original.parse::<u64>() {
        return numbered(number);
    }
    let mut name = String::with_capacity(original.len());
    for char in original.chars() {
        if char.is_ascii_alphanumeric() {
            name.push(char.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    // Cut names are told apart by `resolve`.
    name.truncate(MAX_LENGTH);
    let name = name.trim_end_matches('-');
    if name.is_empty() { "unnamed".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_valid_names() {
        for (id, want) in [
            ("12", "job-00000012"),
            ("application_1506638472019_14199", "application-1506638472019-14199"),
            ("vcJkd", "vcjkd"),
            ("--a..b--", "a-b"),
            ("::", "unnamed"),
        ] {
            assert_eq!(kube_name(id), want);
        }
        assert_eq!(kube_name(&"x".repeat(100)).len(), MAX_LENGTH);
    }

    #[test]
    fn ids_that_differ_in_case_stay_apart() {
        let mut names = Names::default();
        assert_eq!(names.of("vcA"), "vca");
        let other = names.of("vca");
        assert!(other.starts_with("vca-") && other.len() == "vca-".len() + 6);
        assert_eq!((names.of("vcA").as_str(), names.of("vca")), ("vca", other));
        assert!(names.once("j").is_ok());
        assert_eq!(names.once("j"), Err("a second job with the id `j`".into()));
    }
}
