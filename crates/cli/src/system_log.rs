//! The system's log: a server in the background has no terminal on which it could say what failed.

use std::fmt;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::OnceLock;

/// Where the log takes lines (`syslog(3)`).
const SOCKET: &str = "/dev/log";
/// An error (3) of a server of the system (3), as RFC 3164 writes it.
const PRIORITY: u8 = 3 << 3 | 3;

static BEGUN: OnceLock<()> = OnceLock::new();

/// From now on, what is said goes to the log as well.
pub(crate) fn begin() {
    let _ = BEGUN.set(());
}

/// Writes a line, if a server in the background says it. Nobody is left to be told if that fails.
pub(crate) fn tell(message: &dyn fmt::Display) {
    if BEGUN.get().is_some() {
        let _ = send(Path::new(SOCKET), message);
    }
}

fn send(socket: &Path, message: &dyn fmt::Display) -> io::Result<()> {
    let line = format!("<{PRIORITY}>f2fs[{}]: {message}", std::process::id());
    let sender = UnixDatagram::unbound()?;
    // A log that is stuck does not hold the server.
    sender.set_nonblocking(true)?;
    sender.send_to(line.as_bytes(), socket).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_syslog_wants_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert!(send(&path, &"nobody listens").is_err());
        let log = UnixDatagram::bind(&path).unwrap();
        send(&path, &"disk.img: no space").unwrap();
        let mut line = [0; 100];
        let length = log.recv(&mut line).unwrap();
        let line = String::from_utf8_lossy(&line[..length]);
        assert_eq!(line, format!("<27>f2fs[{}]: disk.img: no space", std::process::id()));
    }
}
