//! What was fitted, as lines of a drive file.

use super::Fitted;
use std::fmt::Write as _;

impl Fitted {
    /// The tables of a drive file that the logs say something about, each value with where it comes
    /// from.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        if let Some(seek) = &self.seek {
            let revolution = format!("a revolution takes {:.3} ms", seek.revolution_ms);
            let _ = match seek.rpm {
                Some(rpm) => writeln!(text, "[platters]\nrpm = {rpm:.0} # fitted: {revolution}"),
                None => {
                    writeln!(text, "# rpm is not known: {revolution}, which no disk is sold with")
                }
            };
            let points: Vec<String> =
                seek.table().iter().map(|(d, ms)| format!("[{d}, {ms:.3}]")).collect();
            let _ = writeln!(
                text,
                "\n[seek]\n# fitted to {} reads, {:.2} ms rms; average {:.2} ms; thousandths of the stroke\n\
                 table = [{}] # fitted",
                seek.reads,
                seek.rms_ms,
                seek.average_ms,
                points.join(", ")
            );
        }
        if self.small_writes.is_some() || self.persistent_cache_bytes.is_some() {
            text.push_str("\n[translation]\n");
        }
        if let Some(bytes) = self.persistent_cache_bytes {
            let _ = writeln!(
                text,
                "persistent_cache = \"{} B\" # fitted: large writes before cleaning began",
                bytes / 4096 * 4096
            );
        }
        if let Some(small) = &self.small_writes {
            match small.entries_are_limit {
                true => {
                    let _ = writeln!(
                        text,
                        "entries = {} # fitted: blocks written before cleaning began",
                        small.entries
                    );
                }
                false => {
                    let _ = writeln!(
                        text,
                        "entries = \"unlimited\" # fitted: small writes filled the space first"
                    );
                }
            }
            let _ = writeln!(
                text,
                "bands = \"fixed:{} B\" # fitted: mean size, {} cleans\n\
                 # a clean takes {:.3} s; rewrite_overhead is what of it the model lacks without it",
                small.band_bytes / 4096 * 4096,
                small.cleans,
                small.clean_s
            );
        }
        text
    }
}
