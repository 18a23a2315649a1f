//! The objects of a JSON array one by one, with their lines.
//!
//! A JSON parser over the whole file gives up at the first mistake and keeps everything in memory. Here each object is cut
//! out by its braces, so that a mistake inside one of them costs that one. A brace that is never closed costs the rest.

/// The longest object that is handed on; a job with a thousand attempts of a hundred GPUs has half of it.
const MAX_BYTES: usize = 1 << 20;

/// Whether a text is a JSON array rather than a table.
pub(crate) fn is_array(text: &str) -> bool {
    text.trim_start().starts_with('[')
}

/// Hands each object of the array to `take`, with the line where it starts, from 1; or why it cannot.
pub(crate) fn each_object(text: &str, mut take: impl FnMut(u64, Result<&str, String>)) {
    let mut state = State { line: 1, depth: 0, quoted: Quoted::No, start: (0, 1) };
    // Where the array opened.
    let opened = text.find('[').map_or(0, |at| at + 1);
    state.line += count_lines(&text[..opened]);
    for (at, byte) in text.bytes().enumerate().skip(opened) {
        if state.advance(at, byte) {
            let object = &text[state.start.0..=at];
            let object = if object.len() > MAX_BYTES {
                Err(format!("the object is longer than {MAX_BYTES} bytes"))
            } else {
                Ok(object)
            };
            take(state.start.1, object);
        }
    }
    if state.depth > 0 {
        take(state.start.1, Err("the object that starts here is not closed".into()));
    }
}

/// The line and the message of a mistake inside an object that starts at line `first`.
pub(crate) fn place(first: u64, error: &serde_json::Error) -> (u64, String) {
    let line = first + u64::try_from(error.line().saturating_sub(1)).unwrap_or(0);
    // The parser appends its own place, which is relative to the object.
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    (line, format!("not a job of this log: {message}"))
}

struct State {
    line: u64,
    depth: u32,
    quoted: Quoted,
    /// Byte and line of the outermost brace.
    start: (usize, u64),
}

#[derive(PartialEq, Eq)]
enum Quoted {
    No,
    Yes,
    /// After a backslash.
    Escaped,
}

impl State {
    /// Takes one byte; `true`: it closes an object.
    fn advance(&mut self, at: usize, byte: u8) -> bool {
        if byte == b'\n' {
            self.line += 1;
        }
        match (&self.quoted, byte) {
            (Quoted::Escaped, _) => self.quoted = Quoted::Yes,
            (Quoted::Yes, b'\\') => self.quoted = Quoted::Escaped,
            // No JSON string goes over the end of a line: the quote was a mistake, which ends here.
            (Quoted::Yes, b'"' | b'\n') => self.quoted = Quoted::No,
            (Quoted::Yes, _) => {}
            (Quoted::No, b'"') => self.quoted = Quoted::Yes,
            (Quoted::No, b'{') => {
                if self.depth == 0 {
                    self.start = (at, self.line);
                }
                self.depth += 1;
            }
            (Quoted::No, b'}') => {
                let inside = self.depth > 0;
                self.depth = self.depth.saturating_sub(1);
                return inside && self.depth == 0;
            }
            (Quoted::No, _) => {}
        }
        false
    }
}

fn count_lines(text: &str) -> u64 {
    u64::try_from(text.bytes().filter(|&byte| byte == b'\n').count()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(text: &str) -> Vec<(u64, Result<String, String>)> {
        let mut found = Vec::new();
        each_object(text, |line, object| found.push((line, object.map(str::to_owned))));
        found
    }

    #[test]
    fn objects_are_cut_at_their_braces() {
        let text = "\n[\n{\"a\": {}},\n  {\"b\": \"}\\\"{\"}, {}\n]";
        assert_eq!(
            objects(text),
            [(3, Ok("{\"a\": {}}".into())), (4, Ok("{\"b\": \"}\\\"{\"}".into())), (4, Ok("{}".into()))]
        );
    }

    #[test]
    fn a_quote_that_is_not_closed_ends_with_its_line() {
        assert_eq!(objects("[{\"a\": \"x\n}, {}]").len(), 2);
        assert_eq!(
            objects("[{}, {"),
            [(1, Ok("{}".into())), (1, Err("the object that starts here is not closed".into()))]
        );
    }
}
