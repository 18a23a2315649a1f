//! Where in a text a field stands. Read only when there is something to say about that field.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use crate::fault::Step;
use crate::yaml::options;

/// The largest text that is read again to find a place in it, in bytes.
const LARGEST_READ_AGAIN: usize = 1 << 20;

/// Line and column of the field at `path`, both from 1. `None` where that cannot be told.
pub(crate) fn place(text: &str, path: &[Step]) -> Option<(usize, usize)> {
    if text.len() > LARGEST_READ_AGAIN || path.is_empty() {
        return None;
    }
    let root: Node = serde_saphyr::from_str_with_options(text, options()).ok()?;
    let mut node = &root;
    let mut at = None;
    for step in path {
        let next = match (node, step) {
            (Node::Map(entries), Step::Key(key)) => {
                entries.iter().find(|(known, ..)| known == key).map(|(_, place, value)| (*place, value))
            }
            (Node::List(items), Step::Item(i)) => items.get(*i).map(|(place, value)| (*place, value)),
            _ => None,
        };
        let Some((place, value)) = next else { break };
        at = Some(place);
        node = value;
    }
    at
}

/// Goes down a text by lines, once, whatever number of places is looked for.
pub(crate) struct Cursor<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1 }
    }

    /// The text from `line` on. `None` if that is above, or below the end.
    pub(crate) fn down_to(&mut self, line: usize) -> Option<&'a str> {
        while self.line < line {
            let end = self.rest.find('\n')?;
            self.rest = &self.rest[end + 1..];
            self.line += 1;
        }
        (self.line == line).then_some(self.rest)
    }
}

/// The text of the list item that `text` begins with: up to the first line that is not deeper. `None` if it does not
/// begin with a dash, as in JSON.
pub(crate) fn item_text(text: &str) -> Option<&str> {
    let indent_of = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    let indent = indent_of(first);
    if !first.trim_start().starts_with("- ") {
        return None;
    }
    let deeper = |line: &&str| line.trim().is_empty() || indent_of(line) > indent;
    let below: usize = lines.take_while(deeper).map(str::len).sum();
    text.get(..first.len() + below)
}

enum Node {
    Scalar,
    List(Vec<((usize, usize), Node)>),
    Map(Vec<(String, (usize, usize), Node)>),
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

/// Scalars are only walked over.
macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => { $(
        fn $visit<E>(self, _: $type) -> Result<Node, E> {
            Ok(Node::Scalar)
        }
    )* };
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Node>>()? {
            list.push((of(item.referenced), item.value));
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let value = entries.next_value()?;
            map.push((key.value, of(key.referenced), value));
        }
        Ok(Node::Map(map))
    }
}

fn of(location: Location) -> (usize, usize) {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    (size(location.line()), size(location.column()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_path() {
        let key = |key: &str| Step::Key(key.to_owned());
        let text = "a: 1\nspec:\n  list:\n  - x: 1\n  - x: 2\n    y: {z: 3}\n";
        assert_eq!(place(text, &[key("spec"), key("list"), Step::Item(1), key("y"), key("z")]), Some((6, 9)));
        assert_eq!(place(text, &[key("spec"), key("list"), Step::Item(1)]), Some((5, 5)));
        assert_eq!(place(text, &[key("spec"), key("missing")]), Some((2, 1)), "as far as the path goes");
        assert_eq!(place("a: [", &[key("a")]), None);
    }

    #[test]
    fn an_item_ends_where_the_indentation_does() {
        let text = "items:\n- a: 1\n\n  b: 2\n- c: 3\nkind: List\n";
        let mut cursor = Cursor::new(text);
        let mut item = |line: usize| cursor.down_to(line).and_then(item_text);
        assert_eq!(item(0), None);
        assert_eq!(item(1), None);
        assert_eq!(item(2), Some("- a: 1\n\n  b: 2\n"));
        assert_eq!(item(5), Some("- c: 3\n"));
        assert_eq!(item(3), None);
        assert_eq!(item(99), None);
    }
}
