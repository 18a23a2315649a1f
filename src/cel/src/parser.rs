//! From tokens to expressions, by precedence.

use std::sync::Arc;

use crate::CelError;
use crate::ast::{Expr, Fold, Node, Op};
use crate::lexer::{Token, tokens};
use crate::value::Value;

/// How deep brackets may nest: reading goes as deep.
const MAX_NESTING: u32 = 60;

/// Words that name nothing.
const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "in",
];

pub(crate) fn parse(text: &str) -> Result<Expr, CelError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, nesting: 0 };
    let expr = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    nesting: u32,
}

/// Operators of two sides, by how strongly they bind.
const LEVELS: [&[(&str, Op)]; 3] = [
    &[("<", Op::Lt), ("<=", Op::Le), (">", Op::Gt), (">=", Op::Ge), ("==", Op::Eq), ("!=", Op::Ne)],
    &[("+", Op::Add), ("-", Op::Sub)],
    &[("*", Op::Mul), ("/", Op::Div), ("%", Op::Rem)],
];

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)].1
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Result<(), CelError> {
        if self.takes(sign) { Ok(()) } else { Err(self.wrong(&format!("expected `{sign}`"))) }
    }

    fn wrong(&self, what: &str) -> CelError {
        let (place, token) = &self.tokens[self.at.min(self.tokens.len() - 1)];
        let found = match token {
            Token::End => "the end".to_owned(),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::Name(name) => format!("`{name}`"),
            _ => "a literal".to_owned(),
        };
        CelError::new(format!("at byte {place}: {what}, found {found}"))
    }

    fn unexpected(&self) -> CelError {
        self.wrong("expected an operator or the end")
    }

    fn expression(&mut self) -> Result<Expr, CelError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(CelError::new(format!("it nests deeper than {MAX_NESTING} brackets")));
        }
        let condition =
            self.chain("||", Node::Or, |parser| parser.chain("&&", Node::And, |parser| parser.binary(0)))?;
        let expr = if self.takes("?") {
            let yes = self.chain("||", Node::Or, |parser| parser.chain("&&", Node::And, |parser| parser.binary(0)))?;
            self.expect(":")?;
            let no = self.expression()?;
            Expr::new(Node::Condition(Box::new((condition, yes, no))))?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(expr)
    }

    fn chain(
        &mut self,
        sign: &str,
        make: fn(Vec<Expr>) -> Node,
        term: impl Fn(&mut Self) -> Result<Expr, CelError>,
    ) -> Result<Expr, CelError> {
        let first = term(self)?;
        let mut terms = vec![first];
        while self.takes(sign) {
            terms.push(term(self)?);
        }
        match terms.len() {
            1 => Ok(terms.remove(0)),
            _ => Expr::new(make(terms)),
        }
    }

    fn binary(&mut self, level: usize) -> Result<Expr, CelError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let op = match self.peek() {
                Token::Sign(sign) => operators.iter().find(|(known, _)| known == sign).map(|(_, op)| *op),
                Token::Name(name) if level == 0 && name == "in" => Some(Op::In),
                _ => None,
            };
            let Some(op) = op else { return Ok(left) };
            self.at += 1;
            let right = self.binary(level + 1)?;
            left = Expr::new(Node::Binary(op, Box::new((left, right))))?;
        }
    }

    fn unary(&mut self) -> Result<Expr, CelError> {
        let (mut nots, mut minuses) = (0_u32, 0_u32);
        while self.takes("!") {
            nots += 1;
        }
        while nots == 0 && self.takes("-") {
            minuses += 1;
        }
        let expr = match (minuses, self.peek().clone()) {
            (0, _) => self.postfix()?,
            (_, Token::IntMin) => {
                self.at += 1;
                minuses -= 1;
                literal(Value::Int(i64::MIN))?
            }
            (_, Token::Int(value)) => {
                minuses -= 1;
                self.tokens[self.at].1 = Token::Int(-value);
                self.postfix()?
            }
            _ => self.postfix()?,
        };
        // An even number of signs does nothing but ask for the type, which is asked for once.
        let expr = match nots {
            0 => expr,
            _ => {
                let once = Expr::new(Node::Not(Box::new(expr)))?;
                if nots % 2 == 1 { once } else { Expr::new(Node::Not(Box::new(once)))? }
            }
        };
        match minuses {
            0 => Ok(expr),
            _ => {
                let once = Expr::new(Node::Negate(Box::new(expr)))?;
                if minuses % 2 == 1 { Ok(once) } else { Expr::new(Node::Negate(Box::new(once))) }
            }
        }
    }

    fn postfix(&mut self) -> Result<Expr, CelError> {
        let mut expr = self.primary()?;
        loop {
            if self.takes(".") {
                let name = self.name()?;
                expr = if self.takes("(") { self.method(expr, name)? } else { field(expr, name, false)? };
            } else if self.takes(".?") {
                let name = self.name()?;
                expr = field(expr, name, true)?;
            } else if self.takes("[") {
                expr = self.index(expr, false)?;
            } else if self.takes("[?") {
                expr = self.index(expr, true)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn index(&mut self, of: Expr, optional: bool) -> Result<Expr, CelError> {
        let by = self.expression()?;
        self.expect("]")?;
        Expr::new(Node::Index { of: Box::new(of), by: Box::new(by), optional })
    }

    fn name(&mut self) -> Result<Arc<str>, CelError> {
        match self.peek().clone() {
            Token::Name(name) => {
                self.at += 1;
                Ok(name.into())
            }
            _ => Err(self.wrong("expected a name")),
        }
    }

    fn primary(&mut self) -> Result<Expr, CelError> {
        if self.takes("(") {
            let expr = self.expression()?;
            self.expect(")")?;
            return Ok(expr);
        }
        if self.takes("[") {
            let list = self.list("]")?;
            return Expr::new(Node::List(list));
        }
        if self.takes("{") {
            return self.map();
        }
        self.takes("."); // a name from the root
        match self.peek().clone() {
            Token::Name(name) if !RESERVED.contains(&name.as_str()) => {
                self.at += 1;
                self.named(name)
            }
            Token::Int(_) | Token::Uint(_) | Token::Double(_) | Token::Text(_) | Token::Bytes(_) => {
                literal(match self.next() {
                    Token::Int(value) => Value::Int(value),
                    Token::Uint(value) => Value::Uint(value),
                    Token::Double(value) => Value::Double(value),
                    Token::Text(text) => Value::Text(text.into()),
                    Token::Bytes(bytes) => Value::Bytes(bytes.into()),
                    _ => Value::Null,
                })
            }
            _ => Err(self.wrong("expected a value")),
        }
    }

    fn named(&mut self, name: String) -> Result<Expr, CelError> {
        match name.as_str() {
            "true" => return literal(Value::Bool(true)),
            "false" => return literal(Value::Bool(false)),
            "null" => return literal(Value::Null),
            _ => {}
        }
        if !self.takes("(") {
            return Expr::new(Node::Variable(name.into()));
        }
        let mut arguments = self.list(")")?;
        if name == "has" {
            let only = if arguments.len() == 1 { arguments.pop() } else { None };
            return match only.map(|only| only.node) {
                Some(Node::Field { of, name, optional: false }) => Expr::new(Node::Has { of, name }),
                _ => Err(CelError::new("has() takes one field, such as has(device.attributes[\"example.com\"].model)")),
            };
        }
        Expr::new(Node::Call { target: None, function: name.into(), arguments })
    }

    fn method(&mut self, target: Expr, name: Arc<str>) -> Result<Expr, CelError> {
        let mut arguments = self.list(")")?;
        let is = |wanted: &str| matches!(&target.node, Node::Variable(name) if &**name == wanted);
        if is("cel") && &*name == "bind" {
            let [variable, value, within]: [Expr; 3] = arguments
                .try_into()
                .map_err(|_| CelError::new("cel.bind() takes a name, a value and an expression"))?;
            let variable = variable_of(&variable)?;
            return Expr::new(Node::Bind { variable, parts: Box::new((value, within)) });
        }
        if is("optional") {
            let function = format!("optional.{name}").into();
            return Expr::new(Node::Call { target: None, function, arguments });
        }
        let fold = match &*name {
            "all" => Fold::All,
            "exists" => Fold::Exists,
            "exists_one" | "existsOne" => Fold::ExistsOne,
            "map" => Fold::Map,
            "filter" => Fold::Filter,
            _ => return Expr::new(Node::Call { target: Some(Box::new(target)), function: name, arguments }),
        };
        let wanted = if fold == Fold::Map { 2..=3 } else { 2..=2 };
        if !wanted.contains(&arguments.len()) {
            return Err(CelError::new(format!("{name}() takes a name and an expression")));
        }
        let last = arguments.pop().map(Box::new);
        let middle = if arguments.len() == 2 { arguments.pop().map(Box::new) } else { None };
        let variable = arguments.first().map_or_else(|| Err(CelError::new("a name is missing")), variable_of)?;
        let (test, make) = if fold == Fold::Map { (middle, last) } else { (last, None) };
        Expr::new(Node::Fold { fold, over: Box::new(target), variable, test, make })
    }

    fn list(&mut self, closing: &str) -> Result<Vec<Expr>, CelError> {
        let mut all = Vec::new();
        while !self.takes(closing) {
            all.push(self.expression()?);
            if !self.takes(",") {
                self.expect(closing)?;
                break;
            }
        }
        Ok(all)
    }

    fn map(&mut self) -> Result<Expr, CelError> {
        let mut all = Vec::new();
        while !self.takes("}") {
            let key = self.expression()?;
            self.expect(":")?;
            all.push((key, self.expression()?));
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        Expr::new(Node::Map(all))
    }
}

fn literal(value: Value) -> Result<Expr, CelError> {
    Expr::new(Node::Literal(value))
}

fn field(of: Expr, name: Arc<str>, optional: bool) -> Result<Expr, CelError> {
    Expr::new(Node::Field { of: Box::new(of), name, optional })
}

fn variable_of(expr: &Expr) -> Result<Arc<str>, CelError> {
    match &expr.node {
        Node::Variable(name) => Ok(Arc::clone(name)),
        _ => Err(CelError::new("a macro takes a plain name as its variable")),
    }
}
