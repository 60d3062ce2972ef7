//! What commands say to whoever runs them.

use std::io::Write;

/// Prints to standard output. A reader that has gone away (`imbrex ... | head`) ends the program
/// quietly, any other error makes it fail.
pub fn emit(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        complain(&format!("standard output: {error}"));
        std::process::exit(1);
    }
}

/// Bytes of an error at most. Names and values of a user's files stand in errors, and may be long.
const ERROR_BYTES_MAX: usize = 8 << 10;

/// Says on standard error what went wrong. Where that is gone too, as with a terminal that was closed,
/// only the exit status is left.
pub fn complain(message: &str) {
    let mut end = message.len().min(ERROR_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let (message, rest) = message.split_at(end);
    let rest = match rest.len() {
        0 => String::new(),
        more => format!(" ... and {more} more bytes"),
    };
    let _ = std::io::stderr().write_all(format!("imbrex: {message}{rest}\n").as_bytes());
}

/// Says something on standard error in one piece, as `eprintln!` does, and goes on where nobody can hear it: a
/// terminal that closes must not end what is served.
macro_rules! remark {
    ($($words:tt)*) => {
        $crate::commands::console::write_remark(&format!($($words)*))
    };
}
pub(crate) use remark;

/// Writes a [remark].
pub fn write_remark(message: &str) {
    // Nothing can be done when nobody is left to tell.
    let _ = std::io::stderr().write_all(format!("{message}\n").as_bytes());
}
