//! Evaluation, step by step, within a budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::CelError;
use crate::ast::{Expr, Fold, Node, Op};
use crate::functions;
use crate::value::{Key, Map, Value};

/// Steps that one evaluation may take, the lengths of what it looks at included: Kubernetes' bound for a selector.
pub const MAX_COST: u64 = 1_000_000;

/// Deep values cost as they nest: how many elements one list, map or text may have.
const MAX_SIZE: u64 = 100_000;

pub(crate) fn evaluate(expr: &Expr, name: &str, value: &Value) -> Result<Value, CelError> {
    let mut run = Run { scope: vec![(name.into(), value.clone())], left: MAX_COST };
    run.value(expr)
}

pub(crate) struct Run {
    scope: Vec<(Arc<str>, Value)>,
    left: u64,
}

impl Run {
    /// Takes steps from the budget.
    pub(crate) fn spend(&mut self, cost: u64) -> Result<(), CelError> {
        self.left = self
            .left
            .checked_sub(cost)
            .ok_or_else(|| CelError::new(format!("it takes more than {MAX_COST} steps; write a simpler expression")))?;
        Ok(())
    }

    fn bool(&mut self, expr: &Expr) -> Result<bool, CelError> {
        match self.value(expr)? {
            Value::Bool(value) => Ok(value),
            other => Err(CelError::new(format!("{} where true or false is needed", other.kind()))),
        }
    }

    fn value(&mut self, expr: &Expr) -> Result<Value, CelError> {
        self.spend(1)?;
        match &expr.node {
            Node::Literal(value) => Ok(value.clone()),
            Node::Variable(name) => {
                let found = self.scope.iter().rev().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone()).ok_or_else(|| CelError::new(format!("there is no `{name}`")))
            }
            Node::Field { of, name, optional } => {
                let of = self.value(of)?;
                self.member(of, &Key::Text(Arc::clone(name)), *optional)
            }
            Node::Has { of, name } => {
                let of = self.value(of)?;
                match of {
                    Value::Map(map) => Ok(Value::Bool(map.entries.contains_key(&Key::Text(Arc::clone(name))))),
                    Value::Optional(None) => Ok(Value::Bool(false)),
                    other => Err(CelError::new(format!("has() on {}, which has no fields", other.kind()))),
                }
            }
            Node::Index { of, by, optional } => {
                let (of, by) = (self.value(of)?, self.value(by)?);
                let key = by.key().ok_or_else(|| CelError::new(format!("{} is no key", by.kind())))?;
                self.member(of, &key, *optional)
            }
            Node::Call { target, function, arguments } => {
                let target = target.as_ref().map(|target| self.value(target)).transpose()?;
                let arguments = arguments.iter().map(|one| self.value(one)).collect::<Result<Vec<_>, _>>()?;
                functions::call(self, function, target, &arguments)
            }
            Node::List(all) => {
                let all = all.iter().map(|one| self.value(one)).collect::<Result<Vec<_>, _>>()?;
                Ok(Value::List(all.into()))
            }
            Node::Map(all) => {
                let mut entries = BTreeMap::new();
                for (key, value) in all {
                    let key = self.value(key)?;
                    let key = key.key().ok_or_else(|| CelError::new(format!("{} is no key", key.kind())))?;
                    let value = self.value(value)?;
                    if entries.insert(key, value).is_some() {
                        return Err(CelError::new("a map has a key twice"));
                    }
                }
                Ok(Value::Map(Arc::new(Map { entries, open: false })))
            }
            Node::Not(of) => self.bool(of).map(|value| Value::Bool(!value)),
            Node::Negate(of) => match self.value(of)? {
                Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
                Value::Double(value) => Ok(Value::Double(-value)),
                other => Err(CelError::new(format!("{} cannot be negated", other.kind()))),
            },
            Node::Binary(op, sides) => {
                let (left, right) = (self.value(&sides.0)?, self.value(&sides.1)?);
                self.binary(*op, &left, &right)
            }
            Node::And(terms) => self.connect(terms.iter(), false),
            Node::Or(terms) => self.connect(terms.iter(), true),
            Node::Condition(parts) => {
                let chosen = if self.bool(&parts.0)? { &parts.1 } else { &parts.2 };
                self.value(chosen)
            }
            Node::Fold { fold, over, variable, test, make } => {
                let over = self.value(over)?;
                self.fold(*fold, &over, variable, test.as_deref(), make.as_deref())
            }
            Node::Bind { variable, parts } => {
                let value = self.value(&parts.0)?;
                self.within(variable, value, &parts.1)
            }
        }
    }

    fn within(&mut self, variable: &Arc<str>, value: Value, expr: &Expr) -> Result<Value, CelError> {
        self.scope.push((Arc::clone(variable), value));
        let result = self.value(expr);
        self.scope.pop();
        result
    }

    /// Terms until one decides: `false` an and, `true` an or. An error counts only if none does.
    fn connect<'e>(&mut self, terms: impl Iterator<Item = &'e Expr>, decides: bool) -> Result<Value, CelError> {
        let mut failed = None;
        for term in terms {
            match self.bool(term) {
                Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(error) if self.left == 0 => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    /// A field or an element. What an optional value lacks is missing too.
    fn member(&mut self, of: Value, key: &Key, optional: bool) -> Result<Value, CelError> {
        let (of, optional, chained) = match of {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => ((*value).clone(), true, true),
            other => (other, optional, false),
        };
        let found = match (&of, key) {
            (Value::Map(map), key) if optional && !chained => map.entries.get(key).cloned(),
            (Value::Map(map), key) => map.get(key),
            (Value::List(all), Key::Int(index)) => {
                usize::try_from(*index).ok().and_then(|index| all.get(index)).cloned()
            }
            _ => return Err(CelError::new(format!("{} has no fields or elements of that kind", of.kind()))),
        };
        match (found, optional) {
            (found, true) => Ok(Value::Optional(found.map(Arc::new))),
            (Some(value), false) => Ok(value),
            (None, false) => Err(match key {
                Key::Text(name) => CelError::new(format!("no such key: {name}")),
                Key::Int(index) => CelError::new(format!("no element {index}")),
                Key::Bool(value) => CelError::new(format!("no such key: {value}")),
            }),
        }
    }

    fn binary(&mut self, op: Op, left: &Value, right: &Value) -> Result<Value, CelError> {
        self.spend((left.size().min(right.size())) / 10)?;
        let none = || {
            let sign = match op {
                Op::Add => "+",
                Op::Sub => "-",
                Op::Mul => "*",
                Op::Div => "/",
                Op::Rem => "%",
                _ => "compared with",
            };
            CelError::new(format!("{} {sign} {} is not defined", left.kind(), right.kind()))
        };
        match op {
            Op::Eq | Op::Ne => {
                self.spend(deep_size(left).min(deep_size(right)) / 10)?;
                Ok(Value::Bool((left == right) == (op == Op::Eq)))
            }
            Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                let double = |value: &Value| matches!(value, Value::Double(_));
                let Some(order) = left.order(right) else {
                    // Not a number is neither less nor more.
                    return if double(left) || double(right) { Ok(Value::Bool(false)) } else { Err(none()) };
                };
                Ok(Value::Bool(match op {
                    Op::Lt => order.is_lt(),
                    Op::Le => order.is_le(),
                    Op::Gt => order.is_gt(),
                    _ => order.is_ge(),
                }))
            }
            Op::In => match right {
                Value::List(all) => {
                    self.spend(deep_size(right) / 10)?;
                    Ok(Value::Bool(all.contains(left)))
                }
                Value::Map(map) => Ok(Value::Bool(left.key().is_some_and(|key| map.entries.contains_key(&key)))),
                _ => Err(none()),
            },
            Op::Add => match (left, right) {
                (Value::Text(a), Value::Text(b)) => {
                    self.grown(a.len() + b.len(), || Value::Text(format!("{a}{b}").into()))
                }
                (Value::List(a), Value::List(b)) => {
                    self.grown(a.len() + b.len(), || Value::List(a.iter().chain(&**b).cloned().collect()))
                }
                _ => arithmetic(op, left, right).unwrap_or_else(|| Err(none())),
            },
            Op::Sub | Op::Mul | Op::Div | Op::Rem => arithmetic(op, left, right).unwrap_or_else(|| Err(none())),
        }
    }

    fn grown(&mut self, length: usize, make: impl FnOnce() -> Value) -> Result<Value, CelError> {
        if length as u64 > MAX_SIZE {
            return Err(CelError::new(format!("a value of more than {MAX_SIZE} parts")));
        }
        self.spend(length as u64 / 10)?;
        Ok(make())
    }

    fn fold(
        &mut self,
        fold: Fold,
        over: &Value,
        variable: &Arc<str>,
        test: Option<&Expr>,
        make: Option<&Expr>,
    ) -> Result<Value, CelError> {
        let elements: Vec<Value> = match over {
            Value::List(all) => all.to_vec(),
            Value::Map(map) => map.entries.keys().map(key_value).collect(),
            other => return Err(CelError::new(format!("{} has no elements", other.kind()))),
        };
        self.spend(elements.len() as u64)?;
        let (mut kept, mut failed, mut found) = (Vec::new(), None, 0_u32);
        for element in elements {
            let answer = match test {
                None => Ok(true),
                Some(test) => self.within(variable, element.clone(), test).and_then(|value| match value {
                    Value::Bool(value) => Ok(value),
                    other => Err(CelError::new(format!("{} where true or false is needed", other.kind()))),
                }),
            };
            match (fold, answer) {
                (Fold::All, Ok(false)) => return Ok(Value::Bool(false)),
                (Fold::Exists, Ok(true)) => return Ok(Value::Bool(true)),
                (Fold::All | Fold::Exists, Err(error)) if self.left > 0 => failed = failed.or(Some(error)),
                (Fold::All | Fold::Exists, Ok(_)) => {}
                (Fold::ExistsOne, Ok(true)) => found += 1,
                (Fold::Filter, Ok(true)) => kept.push(element),
                (Fold::Map, Ok(true)) => {
                    if let Some(make) = make {
                        kept.push(self.within(variable, element, make)?);
                    }
                }
                (Fold::ExistsOne | Fold::Filter | Fold::Map, Ok(false)) => {}
                (_, Err(error)) => return Err(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        Ok(match fold {
            Fold::All => Value::Bool(true),
            Fold::Exists => Value::Bool(false),
            Fold::ExistsOne => Value::Bool(found == 1),
            Fold::Map | Fold::Filter => Value::List(kept.into()),
        })
    }
}

/// All parts of a value, as far as it is worth counting.
fn deep_size(value: &Value) -> u64 {
    fn count(value: &Value, left: &mut u64) {
        if *left == 0 {
            return;
        }
        *left = left.saturating_sub(value.size().max(1));
        match value {
            Value::List(all) => all.iter().for_each(|one| count(one, left)),
            Value::Map(map) => map.entries.values().for_each(|one| count(one, left)),
            Value::Optional(Some(one)) => count(one, left),
            _ => {}
        }
    }
    let most = MAX_COST * 10;
    let mut left = most;
    count(value, &mut left);
    most - left
}

fn key_value(key: &Key) -> Value {
    match key {
        Key::Bool(value) => Value::Bool(*value),
        Key::Int(value) => i64::try_from(*value).map_or_else(|_| Value::Uint(u64::MAX), Value::Int),
        Key::Text(text) => Value::Text(Arc::clone(text)),
    }
}

pub(crate) fn overflow() -> CelError {
    CelError::new("a number is too large")
}

/// Whole numbers of one type: what goes over its range is an error.
macro_rules! checked {
    ($op:ident, $a:ident, $b:ident) => {
        match $op {
            Op::Add => $a.checked_add(*$b).ok_or_else(overflow),
            Op::Sub => $a.checked_sub(*$b).ok_or_else(overflow),
            Op::Mul => $a.checked_mul(*$b).ok_or_else(overflow),
            _ if *$b == 0 => Err(CelError::new("division by zero")),
            Op::Div => $a.checked_div(*$b).ok_or_else(overflow),
            Op::Rem => $a.checked_rem(*$b).ok_or_else(overflow),
            _ => return None,
        }
    };
}

fn arithmetic(op: Op, left: &Value, right: &Value) -> Option<Result<Value, CelError>> {
    Some(match (left, right) {
        (Value::Int(a), Value::Int(b)) => checked!(op, a, b).map(Value::Int),
        (Value::Uint(a), Value::Uint(b)) => checked!(op, a, b).map(Value::Uint),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(match op {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Div => a / b,
            _ => return None,
        })),
        _ => return None,
    })
}
