//! What an expression is made of, macros resolved.

use std::sync::Arc;

use crate::CelError;
use crate::value::Value;

/// How deep an expression may nest; evaluation goes as deep.
const MAX_DEPTH: u16 = 200;

#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) node: Node,
    depth: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
}

/// What a macro does with each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Literal(Value),
    Variable(Arc<str>),
    /// `a.b`, or `a.?b`.
    Field {
        of: Box<Expr>,
        name: Arc<str>,
        optional: bool,
    },
    /// `has(a.b)`.
    Has {
        of: Box<Expr>,
        name: Arc<str>,
    },
    /// `a[b]`, or `a[?b]`.
    Index {
        of: Box<Expr>,
        by: Box<Expr>,
        optional: bool,
    },
    Call {
        target: Option<Box<Expr>>,
        function: Arc<str>,
        arguments: Vec<Expr>,
    },
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Op, Box<(Expr, Expr)>),
    /// Any number of terms, so that a long chain is not deep.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Condition(Box<(Expr, Expr, Expr)>),
    Fold {
        fold: Fold,
        over: Box<Expr>,
        variable: Arc<str>,
        test: Option<Box<Expr>>,
        make: Option<Box<Expr>>,
    },
    /// `cel.bind(variable, value, within)`.
    Bind {
        variable: Arc<str>,
        parts: Box<(Expr, Expr)>,
    },
}

impl Expr {
    pub(crate) fn new(node: Node) -> Result<Self, CelError> {
        let depth = 1 + node.children_depth();
        if depth > MAX_DEPTH {
            return Err(CelError::new(format!("it nests deeper than {MAX_DEPTH} levels")));
        }
        Ok(Self { node, depth })
    }
}

impl Node {
    fn children_depth(&self) -> u16 {
        let many = |all: &[Expr]| all.iter().map(|one| one.depth).max().unwrap_or(0);
        match self {
            Self::Literal(_) | Self::Variable(_) => 0,
            Self::Field { of, .. } | Self::Has { of, .. } | Self::Not(of) | Self::Negate(of) => of.depth,
            Self::Index { of, by, .. } => of.depth.max(by.depth),
            Self::Call { target, arguments, .. } => target.as_ref().map_or(0, |one| one.depth).max(many(arguments)),
            Self::List(all) | Self::And(all) | Self::Or(all) => many(all),
            Self::Map(all) => all.iter().map(|(key, value)| key.depth.max(value.depth)).max().unwrap_or(0),
            Self::Binary(_, sides) => sides.0.depth.max(sides.1.depth),
            Self::Condition(parts) => parts.0.depth.max(parts.1.depth).max(parts.2.depth),
            Self::Fold { over, test, make, .. } => {
                let part = |part: &Option<Box<Expr>>| part.as_ref().map_or(0, |one| one.depth);
                over.depth.max(part(test)).max(part(make))
            }
            Self::Bind { parts, .. } => parts.0.depth.max(parts.1.depth),
        }
    }
}
