//! Expressions of the Common Expression Language, as selectors of devices use them: read once, evaluated with a bound.
//!
//! It has the language's literals, operators, optional fields, macros (`has`, `all`, `exists`, `exists_one`, `map`,
//! `filter`, `cel.bind`), the standard functions of texts and lists, and Kubernetes' quantities and semantic versions.
//! There are no messages, durations and timestamps: a device has none.
//!
//! Each step counts, and so does the length of what it looks at; an expression that goes over [`MAX_COST`] is an error,
//! never a stall. Nesting is bounded too. No type is checked beforehand: what does not fit is an error when it is met, and
//! `false && error` is false, as the language has it.

mod ast;
mod eval;
mod functions;
mod lexer;
mod parser;
mod quantity;
mod semver;
mod value;

#[cfg(test)]
mod tests;

pub use eval::MAX_COST;
pub use quantity::Quantity;
pub use semver::Semver;
pub use value::{Key, Map, Value};

use thiserror::Error;

/// The longest expression that is read, in bytes: Kubernetes' own bound.
pub const MAX_LENGTH: usize = 10 * 1024;

/// Why an expression cannot be read, or gave no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CelError(pub(crate) String);

impl CelError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// An expression that has been read.
#[derive(Clone, Debug)]
pub struct Program(ast::Expr);

impl Program {
    /// Reads an expression.
    pub fn compile(text: &str) -> Result<Self, CelError> {
        if text.len() > MAX_LENGTH {
            return Err(CelError::new(format!("it has {} bytes, more than the {MAX_LENGTH} there may be", text.len())));
        }
        parser::parse(text).map(Self)
    }

    /// Its value with this variable bound.
    pub fn evaluate(&self, name: &str, value: &Value) -> Result<Value, CelError> {
        eval::evaluate(&self.0, name, value)
    }

    /// The same for an expression that has to be true or false.
    pub fn test(&self, name: &str, value: &Value) -> Result<bool, CelError> {
        match self.evaluate(name, value)? {
            Value::Bool(answer) => Ok(answer),
            other => Err(CelError::new(format!("the result is {}, not true or false", other.kind()))),
        }
    }
}
