//! How a command ended, as a number that a program can read too.

/// The exit status of a command. That of the standard library cannot be read back, which whoever calls
/// [`main`](crate::main) from a program of its own has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(pub u8);

impl ExitCode {
    /// All is well.
    pub const SUCCESS: ExitCode = ExitCode(0);
    /// The command has failed.
    pub const FAILURE: ExitCode = ExitCode(1);
}

impl From<u8> for ExitCode {
    fn from(status: u8) -> ExitCode {
        ExitCode(status)
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> std::process::ExitCode {
        code.0.into()
    }
}
