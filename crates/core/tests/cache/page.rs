//! The page that says how a policy is added prints the code as it is.

const PAGE: &str = include_str!("../../../../docs/adding-a-policy.md");
const SOURCES: [(&str, &str); 2] = [
    ("crates/core/src/cache/plain/fifo.rs", include_str!("../../src/cache/plain/fifo.rs")),
    ("crates/core/src/cache/plain/mod.rs", include_str!("../../src/cache/plain/mod.rs")),
];

/// The pieces of code of a file, in the order of the page.
fn pieces(file: &str) -> Vec<&'static str> {
    let begin = format!("<!-- code of {file} -->\n```rust\n");
    let pieces = PAGE.split(begin.as_str()).skip(1);
    pieces.map(|rest| rest.split("```").next().expect("a piece")).collect()
}

#[test]
fn every_piece_of_code_on_the_page_is_in_its_file() {
    let mut known = 0;
    for (file, source) in SOURCES {
        for piece in pieces(file) {
            assert!(source.contains(piece), "{file} has not got\n{piece}");
            known += 1;
        }
    }
    assert_eq!(known, PAGE.matches("```rust").count(), "code of no file");
}

#[test]
fn the_page_has_all_of_the_policy() {
    let (file, source) = SOURCES[0];
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.is_empty()).map(str::to_string).collect()
    };
    assert_eq!(lines(&pieces(file).concat()), lines(source));
}
