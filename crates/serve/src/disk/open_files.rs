//! Whether the files of the disks still have their names, and what has become of those that have not.
//!
//! A file that is deleted or moved away while it is open works on until it is closed, so nothing that a
//! disk does fails. A person must know it before the server ends. So whoever serves looks now and then.

use crate::lockable_file::LockableFile;
use crate::signals::say;
use rustix::fs::Stat;
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// What has become of the name of an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Away {
    /// The file has no name any more.
    Deleted,
    /// Nothing has the name any more.
    Moved,
    /// Another file has the name.
    Replaced,
}

impl Away {
    /// What is said of it, behind the path.
    fn words(self) -> &'static str {
        match self {
            Away::Deleted => {
                " was deleted: it is served until the server ends, and all that is on it is gone \
                 then; copy what is needed before, or put another disk in its place (`replace`) where the \
                 stack takes one"
            }
            Away::Moved => {
                " was moved away: it is served until the server ends, and the next start does not \
                 find it; move it back before"
            }
            Away::Replaced => {
                " is another file now: the one that was opened is served until the server ends, and \
                 the next start finds the other; move the right one back before"
            }
        }
    }
}

/// The open file of a disk.
pub(crate) struct OpenFile {
    node: RefCell<Option<String>>,
    path: RefCell<PathBuf>,
    /// None of a disk at another server.
    file: Option<Arc<LockableFile>>,
    /// It has a name that could be deleted, which a block device and anonymous memory have not.
    has_name: Cell<bool>,
    away: Cell<Option<Away>>,
    /// It has gone away since somebody last asked.
    is_news: Cell<bool>,
    /// Why the disk is lost, as it was said.
    loss: RefCell<Option<String>>,
}

impl OpenFile {
    pub fn new(path: &Path, file: &Arc<LockableFile>, has_name: bool) -> OpenFile {
        OpenFile {
            node: RefCell::default(),
            path: RefCell::new(path.to_owned()),
            file: Some(Arc::clone(file)),
            has_name: Cell::new(has_name),
            away: Cell::new(None),
            is_news: Cell::new(false),
            loss: RefCell::default(),
        }
    }

    /// What is at another server, whose address stands in the place of a path.
    pub fn remote(address: &Path) -> OpenFile {
        OpenFile {
            node: RefCell::default(),
            path: RefCell::new(address.to_owned()),
            file: None,
            has_name: Cell::new(false),
            away: Cell::new(None),
            is_news: Cell::new(false),
            loss: RefCell::default(),
        }
    }

    /// The node that the disk is, for what is said of it.
    pub fn set_node(&self, node: &str) {
        self.node.replace(Some(node.to_owned()));
    }

    /// There is no name that could be deleted.
    pub fn has_no_name(&self) {
        self.has_name.set(false);
    }

    pub fn has_name(&self) -> bool {
        self.has_name.get()
    }

    /// A sentence about the disk, with its node and its file.
    pub fn sentence(&self, words: &str) -> String {
        let path = self.path.borrow();
        let path = path.display();
        match &*self.node.borrow() {
            Some(node) => format!("node `{node}`: {path}{words}"),
            None => format!("{path}{words}"),
        }
    }

    /// The disk is lost, which is said.
    pub fn lose(&self, words: &str) {
        let sentence = self.sentence(words);
        say(&sentence);
        self.loss.replace(Some(sentence));
    }

    /// The file has been looked at for another reason.
    pub fn judge(&self, found: &Stat) {
        if found.st_nlink == 0 {
            self.settle(Some(Away::Deleted));
        }
    }

    /// Looks whether the file still has its name.
    fn look(&self) {
        if !self.has_name.get() || self.loss.borrow().is_some() {
            return;
        }
        let Some(Ok(open)) = self.file.as_ref().map(rustix::fs::fstat) else {
            return;
        };
        if open.st_nlink == 0 {
            return self.settle(Some(Away::Deleted));
        }
        match rustix::fs::stat(&*self.path.borrow()) {
            Ok(named) if (named.st_dev, named.st_ino) == (open.st_dev, open.st_ino) => {
                self.settle(None);
            }
            Ok(_) => self.settle(Some(Away::Replaced)),
            Err(Errno::NOENT | Errno::NOTDIR) => self.settle(Some(Away::Moved)),
            // Nobody knows: the folder may be closed to this process.
            Err(_) => {}
        }
    }

    /// Says what has become of the name when that has changed.
    fn settle(&self, away: Option<Away>) {
        if self.away.replace(away) == away {
            return;
        }
        self.is_news.set(away.is_some());
        say(&self.sentence(away.map_or(" is there again", Away::words)));
    }

    /// What there is to say of a name that is gone, without the node.
    fn words(&self) -> Option<String> {
        let away = self.away.get()?;
        Some(format!("{}{}", self.path.borrow().display(), away.words()))
    }
}

#[derive(Default)]
struct Shared {
    files: RefCell<Vec<Weak<OpenFile>>>,
    has_names: Cell<bool>,
}

/// The open files of the disks of a stack. A clone is another hand on the same.
#[derive(Clone, Default)]
pub struct OpenFiles {
    shared: Rc<Shared>,
}

impl OpenFiles {
    /// From now on a file is looked after, as long as its disk has it.
    pub(crate) fn add(&self, file: &Rc<OpenFile>) {
        let mut files = self.shared.files.borrow_mut();
        files.retain(|file| file.strong_count() > 0);
        files.push(Rc::downgrade(file));
        let has_names = self.shared.has_names.get() || file.has_name();
        self.shared.has_names.set(has_names);
    }

    /// True when there may be a file that could lose its name.
    #[inline]
    pub(crate) fn need_looks(&self) -> bool {
        self.shared.has_names.get()
    }

    /// Looks at every file. Returns the nodes whose files have lost their names since the last call,
    /// each with what was said of it.
    pub(crate) fn look(&self) -> Vec<(String, String)> {
        let files = self.shared.files.borrow();
        let news = files.iter().filter_map(Weak::upgrade).filter_map(|file| {
            file.look();
            let away = file.away.get().filter(|_| file.is_news.replace(false))?;
            let node = file.node.borrow().clone();
            Some((node.unwrap_or_default(), file.sentence(away.words())))
        });
        news.collect()
    }

    /// What there is to say of the file of a node that has lost its name, without the node.
    pub(crate) fn words_of(&self, node: &str) -> Option<String> {
        let file = self.of_node(node)?;
        file.look();
        file.words()
    }

    /// Why the disk of a node is lost, where its file has said it.
    pub(crate) fn loss_of(&self, node: &str) -> Option<String> {
        self.of_node(node)?.loss.borrow().clone()
    }

    /// The file of a node that has taken the place of a lost one has another name from now on.
    pub fn renamed(&self, node: &str, path: &Path) {
        if let Some(file) = self.of_node(node) {
            file.path.replace(path.to_owned());
        }
    }

    /// The newest file of a node.
    fn of_node(&self, node: &str) -> Option<Rc<OpenFile>> {
        let files = self.shared.files.borrow();
        let mut known = files.iter().rev().filter_map(Weak::upgrade);
        known.find(|file| file.node.borrow().as_deref() == Some(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    fn opened(path: &Path) -> (OpenFiles, Rc<OpenFile>) {
        fs::write(path, "data").expect("a file");
        let file = Arc::new(LockableFile::from(File::open(path).expect("a file")));
        let open = Rc::new(OpenFile::new(path, &file, true));
        open.set_node("a");
        let files = OpenFiles::default();
        files.add(&open);
        (files, open)
    }

    #[test]
    fn a_name_that_goes_is_news_once_and_may_come_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, other) = (dir.path().join("a.img"), dir.path().join("b.img"));
        let (files, open) = opened(&path);
        assert!(files.need_looks() && files.look().is_empty());
        assert_eq!(files.words_of("a"), None);
        for round in 0..2 {
            fs::rename(&path, &other).expect("a name");
            let news = files.look();
            assert_eq!(news.len(), 1, "round {round}");
            assert!(news[0].1.contains("a.img was moved away"), "{news:?}");
            assert!(files.look().is_empty(), "told already");
            fs::write(&path, "another").expect("a file");
            assert!(files.look()[0].1.contains("a.img is another file now"));
            fs::rename(&other, &path).expect("a name");
            assert!(files.look().is_empty());
            assert_eq!(files.words_of("a"), None);
        }
        fs::remove_file(&path).expect("a file");
        let words = files.words_of("a").expect("it is gone");
        assert!(words.contains("a.img was deleted"), "{words}");
        assert_eq!(files.look(), [("a".to_owned(), format!("node `a`: {words}"))]);
        drop(open);
        assert_eq!(files.words_of("a"), None, "nobody has it open");
    }

    #[test]
    fn what_has_no_name_or_is_lost_is_not_looked_at() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.img");
        let (files, open) = opened(&path);
        fs::remove_file(&path).expect("a file");
        open.has_no_name();
        assert!(files.look().is_empty());
        let (files, open) = opened(&path);
        fs::remove_file(&path).expect("a file");
        open.lose(" is lost: a test");
        assert!(files.look().is_empty());
        assert!(files.loss_of("a").expect("a reason").ends_with("is lost: a test"));
        assert_eq!(files.loss_of("b"), None);
    }
}
