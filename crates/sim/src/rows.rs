//! Rows of text as a table, on a terminal and on a page.

use comfy_table::{CellAlignment, Table, presets};
use imbrex_report::page::{escape, open_scroll};
use std::fmt::Write;

/// Rows of a table, its header first.
pub(crate) type Rows = Vec<Vec<String>>;

/// The rows in columns, of which so many hold words and the others numbers.
pub(crate) fn in_columns(rows: &Rows, words: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// The rows as a table of a page, in a box that scrolls by itself where it is wider than the page.
pub(crate) fn in_page(label: &str, rows: &Rows, body: &mut String) {
    open_scroll(label, body);
    body.push_str("<table>\n");
    for (at, row) in rows.iter().enumerate() {
        let cell = if at == 0 { "th" } else { "td" };
        let cells = row.iter().map(|text| format!("<{cell}>{}</{cell}>", escape(text)));
        let _ = writeln!(body, "<tr>{}</tr>", cells.collect::<String>());
    }
    body.push_str("</table></div>\n");
}
