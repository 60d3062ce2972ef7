//! Reports: what happened, as a table, JSON, CSV and HTML.
