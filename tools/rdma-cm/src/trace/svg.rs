// SPDX-License-Identifier: GPL-2.0

//! Ladder diagrams as a picture (SVG).

use super::{
    connection::{Connection, CLIENT},
    ladder::{end, note, times, title},
};
use std::fmt::Write;

/// The width of the picture.
const WIDTH: usize = 840;
/// The places of the client and of the server.
const LANES: [usize; 2] = [120, 400];
/// The height of a line.
const LINE: usize = 22;
/// The height above the first step of a connection.
const HEAD: usize = 56;

const STYLE: &str = "text{font:13px monospace;fill:#1a1a1a}.title{font-size:11px;font-weight:bold}\
.time{fill:#666}.lane{stroke:#999}.message{stroke:#0057ae;stroke-width:1.5}.head{fill:#0057ae}\
.lost{stroke:#c8102e;stroke-width:1.5;stroke-dasharray:5 3}.lost-head{fill:#c8102e}\
@media(prefers-color-scheme:dark){text{fill:#e6e6e6}.time{fill:#aaa}.message{stroke:#6cb6ff}\
.head{fill:#6cb6ff}.lost{stroke:#ff7b72}.lost-head{fill:#ff7b72}}";

/// Returns a text of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn text(out: &mut String, class: &str, anchor: &str, at: (usize, usize), text: &str) {
    let (x, y) = at;
    let text = escaped(text);
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

/// Draws a connection below `top`, and returns where it ends.
fn draw(out: &mut String, connection: &Connection, top: usize) -> usize {
    let bottom = top + HEAD + LINE * connection.steps.len();
    text(out, "title", "start", (10, top + 18), &title(connection));
    for (at, x) in LANES.into_iter().enumerate() {
        text(out, "", "middle", (x, top + 40), &end(connection, at));
        let from = top + 46;
        let _ = writeln!(
            out,
            "<line class=\"lane\" x1=\"{x}\" y1=\"{from}\" x2=\"{x}\" y2=\"{bottom}\"/>"
        );
    }
    for (at, step) in connection.steps.iter().enumerate() {
        let y = top + HEAD + LINE * at + 10;
        let [left, right] = times(connection, step);
        text(out, "time", "end", (LANES[0] - 10, y + 4), &left);
        text(out, "time", "start", (LANES[1] + 10, y + 4), &right);
        text(
            out,
            "",
            "start",
            (LANES[1] + 96, y + 4),
            &note(connection, step),
        );
        let Some(message) = step.message else {
            let x = LANES[step.end];
            let _ = writeln!(
                out,
                "<circle class=\"head\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>"
            );
            continue;
        };
        let is_lost = step.is_lost(connection);
        let [class, head] = if is_lost {
            ["lost", "lost-head"]
        } else {
            ["message", "head"]
        };
        let (from, mut to) = (LANES[step.end], LANES[1 - step.end]);
        if is_lost {
            to = (from + 2 * to) / 3;
        }
        let _ = writeln!(
            out,
            "<line class=\"{class}\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>"
        );
        let back = if step.end == CLIENT { to - 9 } else { to + 9 };
        let _ = match is_lost {
            true => writeln!(out, "<path class=\"lost\" d=\"M{} {}l10 10m0 -10l-10 10\" style=\"stroke-dasharray:none\"/>", to - 5, y - 5),
            false => writeln!(out, "<path class=\"{head}\" d=\"M{to} {y}L{back} {}L{back} {}z\"/>", y - 4, y + 4),
        };
        text(
            out,
            "",
            "middle",
            ((LANES[0] + LANES[1]) / 2, y - 4),
            message,
        );
    }
    bottom + 20
}

/// Returns the picture of connections, one below the other.
pub fn picture(connections: &[Connection]) -> String {
    let mut body = String::new();
    let mut height = 10;
    for connection in connections {
        height = draw(&mut body, connection, height);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\">\n<title>Messages of the RDMA connection manager, times in seconds</title>\n\
         <style>{STYLE}</style>\n{body}</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::connection::connections;
    use super::*;

    #[test]
    fn a_message_is_an_arrow() {
        let connections = connections(include_str!("../../traces/lost.trace"));
        let picture = picture(&connections);
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
        let count = |what: &str| picture.matches(what).count();
        // Six messages, of which one is lost.
        assert_eq!(count("<line class=\"message\""), 5);
        assert_eq!(count("<line class=\"lost\""), 1);
        assert_eq!(count(">REP</text>"), 2);
        assert_eq!(escaped("a<b>&"), "a&lt;b&gt;&amp;");
        let on_the_page = include_str!("../../../../Documentation/administration/trace.svg");
        assert_eq!(picture, on_the_page);
    }
}
