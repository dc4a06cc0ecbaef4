// SPDX-License-Identifier: GPL-2.0

//! Output as JSON.

use crate::row::{Row, Value};

/// Returns a text as a string of JSON.
pub fn string(text: &str) -> String {
    let mut out = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            char if char < ' ' => out += &format!("\\u{:04x}", u32::from(char)),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

fn value(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => string(text),
        Value::Rows(rows) => array(rows),
    }
}

/// Returns an object with the values of a row.
pub fn object(row: &Row) -> String {
    let members = row
        .0
        .iter()
        .map(|(name, found)| format!("{}: {}", string(name), value(found)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

/// Returns an array of rows, each in a line.
pub fn array(rows: &[Row]) -> String {
    format!(
        "[{}]",
        rows.iter().map(object).collect::<Vec<_>>().join(",\n ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_string() {
        assert_eq!(string("a\"b\\c\n\u{1}ä"), r#""a\"b\\c\u000a\u0001ä""#);
    }

    #[test]
    fn rows_are_objects() {
        let inner = Row(vec![("value", Value::Number(3))]);
        let row = Row(vec![
            ("name", Value::Text("x".into())),
            ("in", Value::Rows(vec![inner])),
        ]);
        assert_eq!(array(&[row]), r#"[{"name": "x", "in": [{"value": 3}]}]"#);
        assert_eq!(array(&[]), "[]");
    }
}
