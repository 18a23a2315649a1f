//! Functions and methods.

use std::sync::Arc;

use regex_lite::Regex;

use crate::CelError;
use crate::eval::{Run, overflow};
use crate::quantity::Quantity;
use crate::semver::Semver;
use crate::value::Value;

type Answer = Result<Value, CelError>;

pub(crate) fn call(run: &mut Run, function: &str, target: Option<Value>, arguments: &[Value]) -> Answer {
    let size = target.as_ref().map_or(0, Value::size) + arguments.iter().map(Value::size).sum::<u64>();
    run.spend(size / 10)?;
    let unknown = |target: Option<&Value>| {
        let kinds: Vec<&str> = arguments.iter().map(Value::kind).collect();
        let on = target.map(|target| format!("{} has no ", target.kind())).unwrap_or_else(|| "there is no ".to_owned());
        CelError::new(format!("{on}{function}({})", kinds.join(", ")))
    };
    let Some(target) = target else {
        return global(function, arguments).unwrap_or_else(|| Err(unknown(None)));
    };
    if let Value::Optional(inner) = &target
        && let Some(answer) = on_optional(inner.as_deref(), function, arguments)
    {
        return answer;
    }
    let answer = match &target {
        Value::Text(text) => on_text(run, text, function, arguments),
        Value::Quantity(quantity) => on_quantity(*quantity, function, arguments),
        Value::Semver(version) => on_semver(version, function, arguments),
        Value::List(all) => on_list(all, function, arguments),
        _ => None,
    };
    answer
        .or_else(|| (function == "size" && arguments.is_empty()).then(|| length(&target)).flatten())
        .or_else(|| includes(&target, function, arguments))
        .unwrap_or_else(|| Err(unknown(Some(&target))))
}

/// `includes` of Kubernetes' device selectors: one value, or a list of them.
fn includes(target: &Value, function: &str, arguments: &[Value]) -> Option<Answer> {
    match (function, arguments, target) {
        ("includes", [wanted], Value::List(all)) => Some(Ok(Value::Bool(all.contains(wanted)))),
        ("includes", [wanted], one) => Some(Ok(Value::Bool(one == wanted))),
        _ => None,
    }
}

fn length(value: &Value) -> Option<Answer> {
    let n = match value {
        Value::Text(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(all) => all.len(),
        Value::Map(map) => map.entries.len(),
        _ => return None,
    };
    Some(int(n))
}

fn int(n: usize) -> Answer {
    i64::try_from(n).map(Value::Int).map_err(|_| overflow())
}

fn parse_quantity(text: &str) -> Result<Quantity, CelError> {
    Quantity::parse(text).ok_or_else(|| CelError::new(format!("`{text}` is no quantity")))
}

fn parse_semver(text: &str) -> Result<Semver, CelError> {
    Semver::parse(text).ok_or_else(|| CelError::new(format!("`{text}` is no semantic version")))
}

fn global(function: &str, arguments: &[Value]) -> Option<Answer> {
    Some(match (function, arguments) {
        ("size", [value]) => return length(value),
        ("dyn", [value]) => Ok(value.clone()),
        ("quantity", [Value::Text(text)]) => parse_quantity(text).map(Value::Quantity),
        ("isQuantity", [Value::Text(text)]) => Ok(Value::Bool(Quantity::parse(text).is_some())),
        ("semver", [Value::Text(text)]) => parse_semver(text).map(|version| Value::Semver(Arc::new(version))),
        ("isSemver", [Value::Text(text)]) => Ok(Value::Bool(Semver::parse(text).is_some())),
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.of", [value]) => Ok(Value::Optional(Some(Arc::new(value.clone())))),
        ("optional.ofNonZeroValue", [value]) => {
            let zero = match value {
                Value::Null => true,
                Value::Bool(value) => !value,
                Value::Int(value) => *value == 0,
                Value::Uint(value) => *value == 0,
                Value::Double(value) => *value == 0.0,
                other => other.size() == 0,
            };
            Ok(Value::Optional(if zero { None } else { Some(Arc::new(value.clone())) }))
        }
        ("int" | "uint" | "double" | "string" | "bool", [value]) => return convert(function, value),
        _ => return None,
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "conversions are asked for, and bounded"
)]
fn convert(function: &str, value: &Value) -> Option<Answer> {
    let wrong = || CelError::new(format!("{function}() cannot read it"));
    Some(match (function, value) {
        ("int", Value::Int(_)) | ("uint", Value::Uint(_)) | ("double", Value::Double(_)) => Ok(value.clone()),
        ("string", Value::Text(_)) | ("bool", Value::Bool(_)) => Ok(value.clone()),
        ("int", Value::Uint(value)) => i64::try_from(*value).map(Value::Int).map_err(|_| overflow()),
        ("int", Value::Double(value)) if value.abs() < 9.2e18 => Ok(Value::Int(*value as i64)),
        ("int", Value::Text(text)) => text.parse().map(Value::Int).map_err(|_| wrong()),
        ("uint", Value::Int(value)) => u64::try_from(*value).map(Value::Uint).map_err(|_| overflow()),
        ("uint", Value::Double(value)) if (0.0..1.8e19).contains(value) => Ok(Value::Uint(*value as u64)),
        ("uint", Value::Text(text)) => text.parse().map(Value::Uint).map_err(|_| wrong()),
        ("double", Value::Int(value)) => Ok(Value::Double(*value as f64)),
        ("double", Value::Uint(value)) => Ok(Value::Double(*value as f64)),
        ("double", Value::Text(text)) => text.parse().map(Value::Double).map_err(|_| wrong()),
        ("string", Value::Int(value)) => Ok(Value::Text(value.to_string().into())),
        ("string", Value::Uint(value)) => Ok(Value::Text(value.to_string().into())),
        ("string", Value::Double(value)) => Ok(Value::Text(value.to_string().into())),
        ("string", Value::Bool(value)) => Ok(Value::Text(value.to_string().into())),
        ("string", Value::Semver(version)) => Ok(Value::Text(version.to_string().into())),
        ("bool", Value::Text(text)) => match &**text {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
            _ => Err(wrong()),
        },
        ("int" | "uint", Value::Double(_)) => Err(overflow()),
        _ => return None,
    })
}

fn on_optional(inner: Option<&Value>, function: &str, arguments: &[Value]) -> Option<Answer> {
    Some(match (function, arguments) {
        ("hasValue", []) => Ok(Value::Bool(inner.is_some())),
        ("value", []) => inner.cloned().ok_or_else(|| CelError::new("value() of an optional that has none")),
        ("orValue", [other]) => Ok(inner.cloned().unwrap_or_else(|| other.clone())),
        ("or", [other @ Value::Optional(_)]) => {
            Ok(inner.map_or_else(|| other.clone(), |value| Value::Optional(Some(Arc::new(value.clone())))))
        }
        _ => return None,
    })
}

fn on_quantity(own: Quantity, function: &str, arguments: &[Value]) -> Option<Answer> {
    let order = |other: Quantity| own.cmp(&other);
    Some(match (function, arguments) {
        ("isGreaterThan", [Value::Quantity(other)]) => Ok(Value::Bool(order(*other).is_gt())),
        ("isLessThan", [Value::Quantity(other)]) => Ok(Value::Bool(order(*other).is_lt())),
        ("compareTo", [Value::Quantity(other)]) => Ok(Value::Int(order(*other) as i64)),
        ("add", [Value::Quantity(other)]) => Ok(Value::Quantity(own.plus(*other))),
        ("add", [Value::Int(other)]) => Ok(Value::Quantity(own.plus(Quantity::whole(*other)))),
        ("sub", [Value::Quantity(other)]) => Ok(Value::Quantity(own.minus(*other))),
        ("sub", [Value::Int(other)]) => Ok(Value::Quantity(own.minus(Quantity::whole(*other)))),
        ("sign", []) => Ok(Value::Int(own.cmp(&Quantity::default()) as i64)),
        ("isInteger", []) => Ok(Value::Bool(own.as_integer().is_some())),
        ("asInteger", []) => own.as_integer().map(Value::Int).ok_or_else(|| CelError::new("it is no whole number")),
        ("asApproximateFloat", []) => Ok(Value::Double(own.approximate())),
        _ => return None,
    })
}

fn on_semver(own: &Semver, function: &str, arguments: &[Value]) -> Option<Answer> {
    let number = |n: u64| i64::try_from(n).map(Value::Int).map_err(|_| overflow());
    Some(match (function, arguments) {
        ("isGreaterThan", [Value::Semver(other)]) => Ok(Value::Bool(own > &**other)),
        ("isLessThan", [Value::Semver(other)]) => Ok(Value::Bool(own < &**other)),
        ("compareTo", [Value::Semver(other)]) => Ok(Value::Int(own.cmp(other) as i64)),
        ("major", []) => number(own.numbers[0]),
        ("minor", []) => number(own.numbers[1]),
        ("patch", []) => number(own.numbers[2]),
        _ => return None,
    })
}

fn on_list(all: &Arc<[Value]>, function: &str, arguments: &[Value]) -> Option<Answer> {
    let place = |at: Option<usize>| at.map_or(Ok(Value::Int(-1)), int);
    Some(match (function, arguments) {
        ("indexOf", [wanted]) => place(all.iter().position(|one| one == wanted)),
        ("lastIndexOf", [wanted]) => place(all.iter().rposition(|one| one == wanted)),
        ("join", []) => join(all, ""),
        ("join", [Value::Text(between)]) => join(all, between),
        _ => return None,
    })
}

fn join(all: &[Value], between: &str) -> Answer {
    let texts = all.iter().map(|one| match one {
        Value::Text(text) => Ok(&**text),
        other => Err(CelError::new(format!("join() on {}", other.kind()))),
    });
    Ok(Value::Text(texts.collect::<Result<Vec<&str>, _>>()?.join(between).into()))
}

fn on_text(run: &mut Run, text: &Arc<str>, function: &str, arguments: &[Value]) -> Option<Answer> {
    let made = |text: String| Ok(Value::Text(text.into()));
    let place = |at: Option<usize>| at.map_or(Ok(Value::Int(-1)), |at| int(text[..at].chars().count()));
    Some(match (function, arguments) {
        ("contains", [Value::Text(part)]) => Ok(Value::Bool(text.contains(&**part))),
        ("startsWith", [Value::Text(part)]) => Ok(Value::Bool(text.starts_with(&**part))),
        ("endsWith", [Value::Text(part)]) => Ok(Value::Bool(text.ends_with(&**part))),
        ("matches", [Value::Text(pattern)]) => matches(run, text, pattern),
        ("lowerAscii", []) => made(text.to_ascii_lowercase()),
        ("upperAscii", []) => made(text.to_ascii_uppercase()),
        ("trim", []) => made(text.trim().to_owned()),
        ("indexOf", [Value::Text(part)]) => place(text.find(&**part)),
        ("lastIndexOf", [Value::Text(part)]) => place(text.rfind(&**part)),
        ("charAt", [Value::Int(at)]) => part(text, *at, at.saturating_add(1)),
        ("substring", [Value::Int(from)]) => part(text, *from, i64::try_from(text.chars().count()).unwrap_or(i64::MAX)),
        ("substring", [Value::Int(from), Value::Int(to)]) => part(text, *from, *to),
        // A text between which nothing stands could be found everywhere: an empty one is left alone.
        ("replace", [Value::Text(from), Value::Text(to)]) if !from.is_empty() => {
            let n = text.matches(&**from).count() as u64;
            if let Err(error) = run.spend(n * to.len() as u64) {
                return Some(Err(error));
            }
            made(text.replace(&**from, to))
        }
        ("split", [Value::Text(by)]) if !by.is_empty() => Ok(Value::List(text.split(&**by).map(Value::text).collect())),
        ("split", [Value::Text(by), Value::Int(most)]) if !by.is_empty() => {
            Ok(Value::List(match usize::try_from(*most) {
                Ok(most) => text.splitn(most, &**by).map(Value::text).collect(),
                Err(_) => text.split(&**by).map(Value::text).collect(),
            }))
        }
        _ => return None,
    })
}

/// Characters of a text from one place up to another.
fn part(text: &str, from: i64, to: i64) -> Answer {
    let all: Vec<char> = text.chars().collect();
    let within = |at: i64| usize::try_from(at).ok().filter(|at| *at <= all.len());
    match (within(from), within(to)) {
        (Some(from), Some(to)) if from <= to => Ok(Value::Text(all[from..to].iter().collect::<String>().into())),
        _ => Err(CelError::new(format!("a text of {} characters has none from {from} to {to}", all.len()))),
    }
}

/// The pattern is read each time, and searched in time proportional to pattern and text; both count.
fn matches(run: &mut Run, text: &str, pattern: &str) -> Answer {
    const MAX_PATTERN: usize = 1_000;
    if pattern.len() > MAX_PATTERN {
        return Err(CelError::new(format!("a pattern of more than {MAX_PATTERN} bytes")));
    }
    run.spend(1_000 + pattern.len() as u64 * (10 + text.len() as u64 / 4))?;
    let built = regex_lite::RegexBuilder::new(pattern).size_limit(1 << 16).build();
    let regex: Regex = built.map_err(|why| CelError::new(format!("the pattern `{pattern}` cannot be read: {why}")))?;
    Ok(Value::Bool(regex.is_match(text)))
}
