//! A plugin's `args` in a KubeSchedulerConfiguration: read field by field, with the path of what is wrong.
//!
//! A plugin reads its own. Every problem is collected, so that a file is mended in one go.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::arguments::{Value, duration_ms};
use super::names::{shown, suggest};
use crate::registry::ArgumentProblem;

/// One mapping of a plugin's `args`.
pub struct PluginArgs<'v, 'p> {
    map: Option<&'v BTreeMap<String, Value>>,
    path: String,
    problems: &'p mut Vec<ArgumentProblem>,
}

/// Reads `args`, which may have these fields. `Err` has everything that is wrong.
pub fn read<T>(
    args: &Value,
    fields: &[&str],
    make: impl FnOnce(&mut PluginArgs<'_, '_>) -> T,
) -> Result<T, Vec<ArgumentProblem>> {
    let mut problems = Vec::new();
    let made = make(&mut PluginArgs::of(args, String::new(), fields, &mut problems));
    if problems.is_empty() { Ok(made) } else { Err(problems) }
}

impl<'v, 'p> PluginArgs<'v, 'p> {
    fn of(value: &'v Value, path: String, fields: &[&str], problems: &'p mut Vec<ArgumentProblem>) -> Self {
        let map = match value {
            Value::Map(map) => Some(map),
            Value::Null => None,
            other => {
                let message =
                    format!("it has to be a mapping, but is {}; fields are: {}", kind(other), fields.join(", "));
                problems.push(ArgumentProblem { path: path.clone(), message });
                None
            }
        };
        let mut args = Self { map, path, problems };
        for key in map.into_iter().flat_map(|map| map.keys()).filter(|key| !fields.contains(&key.as_str())) {
            let help = suggest(key, "fields", fields.iter().copied()).unwrap_or_else(|| "take it out".to_owned());
            args.problem(key, format!("there is no field {}; {help}", shown(key)));
        }
        args
    }

    /// The path of a field.
    pub fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports what is wrong with a field: «it has to be …; what to write».
    pub fn problem(&mut self, key: &str, message: impl Into<String>) {
        let path = self.path(key);
        self.problem_at(path, message);
    }

    /// As [`Self::problem`], with a path that [`Self::list`] gave.
    pub fn problem_at(&mut self, path: String, message: impl Into<String>) {
        self.problems.push(ArgumentProblem { path, message: message.into() });
    }

    /// The value of a field; `null` is none.
    pub fn get(&self, key: &str) -> Option<&'v Value> {
        self.map.and_then(|map| map.get(key)).filter(|value| **value != Value::Null)
    }

    /// A whole number.
    pub fn integer(&mut self, key: &str, range: RangeInclusive<i64>, default: i64) -> i64 {
        match self.get(key) {
            None => default,
            Some(Value::Integer(value)) if range.contains(value) => *value,
            Some(Value::Integer(value)) => {
                self.problem(key, format!("it has to be {}, but is {value}", shown_range(&range)));
                default
            }
            Some(other) => self.wrong(key, "a whole number", other, default),
        }
    }

    /// True or false.
    pub fn bool(&mut self, key: &str, default: bool) -> bool {
        match self.get(key) {
            None => default,
            Some(Value::Bool(value)) => *value,
            Some(other) => self.wrong(key, "true or false", other, default),
        }
    }

    /// A text.
    pub fn text(&mut self, key: &str) -> Option<&'v str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            other => self.wrong(key, "a text", other, None),
        }
    }

    /// One of some words.
    pub fn one_of<T: Copy>(&mut self, key: &str, words: &[(&str, T)], default: T) -> T {
        let Some(text) = self.text(key) else { return default };
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text) {
            return *meant;
        }
        let help = suggest(text, "words", words.iter().map(|(word, _)| *word)).unwrap_or_default();
        self.problem(key, format!("there is no {}; {help}", shown(text)));
        default
    }

    /// A duration as Go writes it, in milliseconds.
    pub fn duration_ms(&mut self, key: &str, at_least: u64, default: u64) -> u64 {
        match self.get(key) {
            None => default,
            Some(Value::Text(text)) => match duration_ms(text) {
                Some(ms) if ms >= at_least => ms,
                Some(_) => {
                    self.problem(key, format!("it has to be at least {at_least}ms, but is {}", shown(text)));
                    default
                }
                None => self.wrong(key, "a duration such as `90s` or `1h30m`", &Value::Text(text.clone()), default),
            },
            Some(other) => self.wrong(key, "a duration such as `90s` or `1h30m`", other, default),
        }
    }

    /// The items of a list, with their paths.
    pub fn list(&mut self, key: &str) -> Vec<(String, &'v Value)> {
        match self.get(key) {
            None => Vec::new(),
            Some(Value::List(items)) => {
                let path = self.path(key);
                items.iter().enumerate().map(|(i, item)| (format!("{path}[{i}]"), item)).collect()
            }
            Some(other) => self.wrong(key, "a list", other, Vec::new()),
        }
    }

    /// A list of texts, with their paths.
    pub fn texts(&mut self, key: &str) -> Vec<(String, &'v str)> {
        let mut texts = Vec::new();
        for (path, item) in self.list(key) {
            match item {
                Value::Text(text) => texts.push((path, text.as_str())),
                other => self.problem_at(path, format!("it has to be a text, but is {}", kind(other))),
            }
        }
        texts
    }

    /// A mapping below this one, if it is there.
    pub fn map(&mut self, key: &str, fields: &[&str]) -> Option<PluginArgs<'v, '_>> {
        let value = self.get(key)?;
        Some(PluginArgs::of(value, self.path(key), fields, self.problems))
    }

    /// An item of a list that is a mapping.
    pub fn item<'s>(&'s mut self, path: String, value: &'v Value, fields: &[&str]) -> PluginArgs<'v, 's> {
        if *value == Value::Null {
            self.problem_at(path.clone(), format!("it is empty; fields are: {}", fields.join(", ")));
        }
        PluginArgs::of(value, path, fields, self.problems)
    }

    /// Resources with their weights, a list of `{name, weight}`; a weight of 0 is 1.
    pub fn weighted_resources(
        &mut self,
        key: &str,
        weights: RangeInclusive<i64>,
        default: &[(&str, i64)],
    ) -> Vec<(String, i64)> {
        let mut resources: Vec<(String, i64)> = Vec::new();
        for (path, item) in self.list(key) {
            let mut item = self.item(path.clone(), item, &["name", "weight"]);
            let weight = match item.get("weight") {
                Some(Value::Integer(0)) | None => 1,
                Some(_) => item.integer("weight", weights.clone(), 1),
            };
            match item.text("name") {
                None | Some("") if item.get("name").is_none_or(|name| matches!(name, Value::Text(_))) => {
                    item.problem("name", "it has no name; write for example `name: cpu`");
                }
                Some(name) => resources.push((name.to_owned(), weight)),
                None => {}
            }
        }
        if self.get(key).is_none_or(|value| *value == Value::List(Vec::new())) {
            return default.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
        }
        resources
    }

    /// A broken line, a list of `{utilization, score}`: utilization from 0 to 100 and rising, scores from 0 to 10.
    /// Nothing if it is not there.
    pub fn shape(&mut self, key: &str) -> Vec<(i64, i64)> {
        let mut shape: Vec<(i64, i64)> = Vec::new();
        for (path, item) in self.list(key) {
            let mut item = self.item(path.clone(), item, &["utilization", "score"]);
            let point = (item.integer("utilization", 0..=100, 0), item.integer("score", 0..=10, 0));
            if let Some((before, _)) = shape.last().filter(|(before, _)| *before >= point.0) {
                let message = format!("it has to be over that of the point before, which is {before}; sort the points");
                item.problem("utilization", message);
            }
            shape.push(point);
        }
        shape
    }

    fn wrong<T>(&mut self, key: &str, wanted: &str, found: &Value, default: T) -> T {
        self.problem(key, format!("it has to be {wanted}, but is {}", kind(found)));
        default
    }
}

/// What a value is, for a message.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "empty".to_owned(),
        Value::Bool(value) => format!("the boolean `{value}`"),
        Value::Integer(value) => format!("the integer `{value}`"),
        Value::Number(value) => format!("the number `{value}`"),
        Value::Text(text) => format!("the text {}", shown(text)),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

fn shown_range(range: &RangeInclusive<i64>) -> String {
    match (*range.start(), *range.end()) {
        (low, high) if low == high => format!("{low}"),
        (low, i64::MAX) => format!("at least {low}"),
        (low, high) => format!("from {low} to {high}"),
    }
}
