//! Integration tests of the command and of the repository as a whole: one binary, one module a topic.

mod bad_input;
mod bad_values;
mod tidy;
