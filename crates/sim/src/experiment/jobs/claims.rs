//! Who is making which job, among all processes that share a folder.
//!
//! Each process has a file of its own, its *owner file*, and touches it now and then. It takes a job by making a hard
//! link to that file, whose name is that of the job and a generation: the system lets one process alone make a link of
//! that name, on network file systems as well. One touch renews all its claims, which are the same file. A job whose
//! owner is gone is taken again by a link of the next generation, which again one process alone can make.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// How often an owner touches its file.
const TOUCHED_EVERY: Duration = Duration::from_secs(10);

/// An owner on another machine that has not touched its file for so long is gone. That is long enough for a machine that
/// does not get to it, such as one that swaps.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// What an owner file says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    /// Where processes have this number: the boot of a machine, and the processes that see each other there.
    place: String,
    process: u32,
    /// When the process began, as the system counts it, so that a later one of the same number is another.
    began: String,
}

impl Identity {
    fn of_this_process() -> Identity {
        let process = std::process::id();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let place = format!("{} {}", boot.trim(), namespace.display());
        Identity { place, process, began: began(process).unwrap_or_default() }
    }

    /// Whether the process is there, as far as this machine can tell.
    fn is_there(&self, here: &Identity) -> Option<bool> {
        (self.place == here.place).then(|| began(self.process).as_ref() == Some(&self.began))
    }
}

/// When a process of this machine began; none of one that is not there or has ended.
fn began(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program is in parentheses and may hold anything.
    let mut behind_name = stat.rsplit_once(')')?.1.split_whitespace();
    let state = behind_name.next()?;
    // One that has ended and was not waited for is still listed.
    (state != "Z" && state != "X").then_some(())?;
    behind_name.nth(18).map(str::to_string)
}

/// Makes a file in a folder whose name nobody else has, on this machine or another one that shares the folder.
pub(super) fn own_file(folder: &Path, ending: &str) -> io::Result<(PathBuf, File)> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    for number in 0..1000 {
        let name = format!("{}-{:x}-{number}.{ending}", std::process::id(), since.as_nanos());
        let path = folder.join(name);
        match File::options().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (path, file)),
        }
    }
    Err(io::Error::other("a thousand files of this instant are there already"))
}

/// The part of a process in a folder of claims.
pub(super) struct Owner {
    folder: PathBuf,
    identity: Identity,
    file: Arc<Mutex<OwnerFile>>,
    /// Dropped to end the touching.
    end: Option<Sender<()>>,
    touching: Option<JoinHandle<()>>,
}

struct OwnerFile {
    path: PathBuf,
    file: File,
}

impl OwnerFile {
    /// A new one of this process. Nobody else has the name.
    fn create(folder: &Path, identity: &Identity) -> io::Result<OwnerFile> {
        let text = serde_json::to_string(identity).expect("keys are texts");
        let (path, mut file) = own_file(folder, "owner")?;
        file.write_all(text.as_bytes())?;
        Ok(OwnerFile { path, file })
    }

    /// Touches it by the clock of the file system, and gives the instant.
    fn touch(&self) -> io::Result<SystemTime> {
        // What is written is what is there: the first byte of a JSON object.
        self.file.write_all_at(b"{", 0)?;
        self.file.metadata()?.modified()
    }
}

/// A job that this process makes. It is given back when the claim is dropped; its result, if there is one by then, says that
/// it is made.
#[derive(Debug)]
pub(super) struct Claim {
    /// The claims of this generation and those before it, which are of owners that are gone.
    paths: Vec<PathBuf>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // The last one first: as long as it is there nobody looks at the others.
        for path in self.paths.iter().rev() {
            let _ = fs::remove_file(path);
        }
    }
}

/// What came of asking for a job.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is this process's.
    Ours(Claim),
    /// A process that is there makes it.
    Theirs,
}

impl Owner {
    /// In `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn new(folder: &Path) -> io::Result<Owner> {
        fs::create_dir_all(folder)?;
        let identity = Identity::of_this_process();
        let file = Arc::new(Mutex::new(OwnerFile::create(folder, &identity)?));
        let (end, ended) = channel();
        let touched = Arc::clone(&file);
        let touching = std::thread::spawn(move || {
            while ended.recv_timeout(TOUCHED_EVERY) == Err(RecvTimeoutError::Timeout) {
                // When it cannot be touched others take the jobs, which does no harm.
                let _ = lock(&touched).touch();
            }
        });
        let owner = Owner {
            folder: folder.to_path_buf(),
            identity,
            file,
            end: Some(end),
            touching: Some(touching),
        };
        owner.remove_gone();
        Ok(owner)
    }

    fn claim_path(&self, job: &str, generation: usize) -> PathBuf {
        self.folder.join(format!("{job}.{generation}"))
    }

    /// Takes a job, unless a process that is there has it.
    ///
    /// # Errors
    /// When no link can be made.
    pub fn take(&self, job: &str) -> io::Result<Taken> {
        let mut paths = vec![self.claim_path(job, 1)];
        loop {
            let path = paths.last().expect("there is the first");
            match self.link(path) {
                Ok(()) => return Ok(Taken::Ours(Claim { paths })),
                // A network file system may have made the link and lost the answer. A job is asked for once at a time.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.is_own(path) {
                        return Ok(Taken::Ours(Claim { paths }));
                    }
                }
                Err(error) => return Err(error),
            }
            let next = self.claim_path(job, paths.len() + 1);
            // Whoever is gone is looked at by the claim of the next generation, if there is one.
            if !next.exists() && self.is_there(path) {
                return Ok(Taken::Theirs);
            }
            paths.push(next);
        }
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        let mut file = lock(&self.file);
        match fs::hard_link(&file.path, path) {
            // Somebody has tidied up, or the file has as many links as it may have.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::TooManyLinks
                ) =>
            {
                *file = OwnerFile::create(&self.folder, &self.identity)?;
                fs::hard_link(&file.path, path)
            }
            linked => linked,
        }
    }

    /// Whether a claim is a link to the file of this owner.
    fn is_own(&self, claim: &Path) -> bool {
        let own = lock(&self.file).file.metadata();
        let place = |found: io::Result<fs::Metadata>| found.ok().map(|it| (it.dev(), it.ino()));
        let own = place(own);
        own.is_some() && own == place(fs::metadata(claim))
    }

    /// Whether the owner of a claim is there. Of one that cannot be read nobody knows, and whoever has made it is given time.
    fn is_there(&self, claim: &Path) -> bool {
        let Ok(metadata) = fs::metadata(claim) else {
            // It was given back just now.
            return false;
        };
        let read = fs::read(claim).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let read: Option<Identity> = read;
        if let Some(is_there) = read.and_then(|identity| identity.is_there(&self.identity)) {
            return is_there;
        }
        let (Ok(touched), Ok(now)) = (metadata.modified(), lock(&self.file).touch()) else {
            return true;
        };
        now.duration_since(touched).unwrap_or_default() < GONE_AFTER
    }

    /// Removes the owner files of those who are gone and hold nothing.
    fn remove_gone(&self) {
        let own = lock(&self.file).path.clone();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_owner = path.extension().is_some_and(|ending| ending == "owner");
            if is_owner
                && path != own
                && fs::metadata(&path).is_ok_and(|found| found.nlink() == 1)
                && !self.is_there(&path)
            {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(touching) = self.touching.take() {
            let _ = touching.join();
        }
        let _ = fs::remove_file(&lock(&self.file).path);
    }
}

fn lock(file: &Mutex<OwnerFile>) -> std::sync::MutexGuard<'_, OwnerFile> {
    file.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(taken: Taken) -> Claim {
        match taken {
            Taken::Ours(claim) => claim,
            Taken::Theirs => panic!("somebody has it"),
        }
    }

    /// An owner file of somebody else with a claim of a job.
    fn others_claim(folder: &Path, job: &str, identity: &Identity, touched_ago: Duration) {
        let path = folder.join(format!("{job}.1"));
        fs::write(&path, serde_json::to_string(identity).unwrap()).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - touched_ago).unwrap();
    }

    #[test]
    fn one_of_two_owners_has_a_job() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) =
            (Owner::new(folder.path()).unwrap(), Owner::new(folder.path()).unwrap());
        let taken = claim(first.take("a").unwrap());
        assert!(matches!(second.take("a").unwrap(), Taken::Theirs));
        let _b = claim(second.take("b").unwrap());
        drop(taken);
        let _taken = claim(second.take("a").unwrap());
        assert!(matches!(first.take("a").unwrap(), Taken::Theirs));
    }

    #[test]
    fn a_link_whose_answer_was_lost_is_a_claim() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::new(folder.path()).unwrap();
        fs::hard_link(&lock(&owner.file).path, folder.path().join("a.1")).unwrap();
        drop(claim(owner.take("a").unwrap()));
        assert!(!folder.path().join("a.1").exists());
    }

    #[test]
    fn a_job_is_taken_again_when_its_owner_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::new(folder.path()).unwrap();
        let here = Identity::of_this_process();
        let ended = Identity { began: "1".into(), place: here.place.clone(), ..here };
        let elsewhere = Identity { place: "elsewhere".into(), process: 1, began: "1".into() };
        let (new, old) = (Duration::ZERO, GONE_AFTER + Duration::from_secs(5));
        others_claim(folder.path(), "ended", &ended, new);
        others_claim(folder.path(), "silent", &elsewhere, old);
        others_claim(folder.path(), "there", &elsewhere, new);
        fs::write(folder.path().join("cut.1"), "{").unwrap();
        for (job, is_ours) in [("ended", true), ("silent", true), ("there", false), ("cut", false)]
        {
            let taken = owner.take(job).unwrap();
            assert_eq!(matches!(taken, Taken::Ours(_)), is_ours, "{job}");
            if let Taken::Ours(claim) = taken {
                assert_eq!(claim.paths.len(), 2, "of the next generation");
                drop(claim);
                assert!(!folder.path().join(format!("{job}.1")).exists());
            }
        }
    }

    #[test]
    fn many_owners_take_each_job_once() {
        let folder = tempfile::tempdir().unwrap();
        let count = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let owner = Owner::new(folder.path()).unwrap();
                    for job in 0..200 {
                        if let Taken::Ours(claim) = owner.take(&job.to_string()).unwrap() {
                            // It stays as that of a process that is there.
                            std::mem::forget(claim);
                            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 200);
    }
}
