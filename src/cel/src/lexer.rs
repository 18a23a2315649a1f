//! Tokens.

use crate::CelError;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(String),
    Int(i64),
    /// The smallest integer has no positive twin: it is read only after a minus.
    IntMin,
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Sign(&'static str),
    End,
}

/// Signs, the longer ones first.
const SIGNS: [&str; 28] = [
    "[?", ".?", "&&", "||", "==", "!=", "<=", ">=", "<", ">", "=", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}", ";",
];

/// Tokens, each with the place of its first byte.
pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, CelError> {
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            all.push((at, Token::End));
            return Ok(all);
        };
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (token, length) = token(rest, first).map_err(|why| CelError::new(format!("at byte {at}: {why}")))?;
            all.push((at, token));
            at += length;
        }
    }
}

fn token(rest: &str, first: char) -> Result<(Token, usize), String> {
    if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
        return number(rest);
    }
    if let Some((token, length)) = string(rest)? {
        return Ok((token, length));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Ok((Token::Name(rest[..end].to_owned()), end));
    }
    let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
    sign.map(|sign| (Token::Sign(sign), sign.len())).ok_or_else(|| format!("unexpected `{first}`"))
}

fn number(rest: &str) -> Result<(Token, usize), String> {
    if let Some(digits) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
        let value = u64::from_str_radix(&digits[..end], 16).map_err(|_| "a number is too large".to_owned())?;
        if digits[end..].starts_with(['u', 'U']) {
            return Ok((Token::Uint(value), end + 3));
        }
        return Ok((Token::Int(i64::try_from(value).map_err(|_| "a number is too large".to_owned())?), end + 2));
    }
    let digits = |from: usize| rest[from..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| from + n);
    let mut end = digits(0);
    let mut whole = true;
    if rest[end..].starts_with('.') && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        end = digits(end + 1);
        whole = false;
    }
    if let Some(exponent) = rest[end..].strip_prefix(['e', 'E']) {
        let signed = usize::from(exponent.starts_with(['+', '-']));
        if exponent[signed..].starts_with(|c: char| c.is_ascii_digit()) {
            end = digits(end + 1 + signed);
            whole = false;
        }
    }
    let text = &rest[..end];
    if !whole {
        return text.parse().map(|value| (Token::Double(value), end)).map_err(|_| format!("`{text}` is no number"));
    }
    if rest[end..].starts_with(['u', 'U']) {
        return text.parse().map(|value| (Token::Uint(value), end + 1)).map_err(|_| format!("`{text}` is too large"));
    }
    match text.parse::<u64>() {
        Ok(value) if value == i64::MAX as u64 + 1 => Ok((Token::IntMin, end)),
        Ok(value) => {
            i64::try_from(value).map(|value| (Token::Int(value), end)).map_err(|_| format!("`{text}` is too large"))
        }
        Err(_) => Err(format!("`{text}` is too large")),
    }
}

/// A text or bytes, with their prefixes and either kind of quotes.
fn string(rest: &str) -> Result<Option<(Token, usize)>, String> {
    let prefix = rest.find(['"', '\'']).unwrap_or(rest.len());
    if prefix > 2 || !rest[..prefix].chars().all(|c| "rRbB".contains(c)) || prefix == rest.len() {
        return Ok(None);
    }
    let has = |upper: char| rest[..prefix].chars().filter(|c| c.eq_ignore_ascii_case(&upper)).count();
    if has('R') > 1 || has('B') > 1 {
        return Ok(None);
    }
    let (raw, bytes) = (has('R') == 1, has('B') == 1);
    let quote = &rest[prefix..prefix + 1];
    let triple = quote.repeat(3);
    let closing = if rest[prefix..].starts_with(&triple) { triple.as_str() } else { quote };
    let begin = prefix + closing.len();
    let mut out: Vec<u8> = Vec::new();
    let mut at = begin;
    loop {
        let left = &rest[at..];
        if left.starts_with(closing) {
            break;
        }
        let Some(next) = left.chars().next() else { return Err("a text has no end".to_owned()) };
        if next == '\n' && closing.len() == 1 {
            return Err("a text ends at its line".to_owned());
        }
        if next == '\\' && !raw {
            at += 1 + escape(&left[1..], bytes, &mut out)?;
        } else {
            out.extend_from_slice(&left.as_bytes()[..next.len_utf8()]);
            at += next.len_utf8();
        }
    }
    let end = at + closing.len();
    if bytes {
        return Ok(Some((Token::Bytes(out), end)));
    }
    let text = String::from_utf8(out).map_err(|_| "a text is not UTF-8".to_owned())?;
    Ok(Some((Token::Text(text), end)))
}

/// What stands after a backslash; answers how many bytes it has.
fn escape(rest: &str, bytes: bool, out: &mut Vec<u8>) -> Result<usize, String> {
    let wrong = || "an unknown escape in a text".to_owned();
    let first = rest.chars().next().ok_or_else(wrong)?;
    let plain = match first {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '?' | '"' | '\'' | '`' => first as u8,
        _ => 0,
    };
    if plain != 0 {
        out.push(plain);
        return Ok(1);
    }
    let (skip, digits, radix) = match first {
        'x' | 'X' => (1, 2, 16),
        'u' => (1, 4, 16),
        'U' => (1, 8, 16),
        '0'..='3' => (0, 3, 8),
        _ => return Err(wrong()),
    };
    let text = rest.get(skip..skip + digits).ok_or_else(wrong)?;
    let value = u32::from_str_radix(text, radix).map_err(|_| wrong())?;
    match u8::try_from(value) {
        Ok(byte) if bytes && digits < 4 => out.push(byte),
        _ => out.extend_from_slice(char::from_u32(value).ok_or_else(wrong)?.encode_utf8(&mut [0; 4]).as_bytes()),
    }
    Ok(skip + digits)
}
