//! How operations are written down.

use std::fmt;
use std::str::FromStr;

use super::Op;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Create(path) => write!(f, "create {path}"),
            Op::Mkdir(path) => write!(f, "mkdir {path}"),
            Op::Symlink(path, len) => write!(f, "symlink {path} {len}"),
            Op::Replace(path, len) => write!(f, "replace {path} {len}"),
            Op::Link(from, to) => write!(f, "link {from} {to}"),
            Op::Rename(from, to) => write!(f, "rename {from} {to}"),
            Op::Exchange(from, to) => write!(f, "exchange {from} {to}"),
            Op::Unlink(path) => write!(f, "unlink {path}"),
            Op::Orphan(path) => write!(f, "orphan {path}"),
            Op::Rmdir(path) => write!(f, "rmdir {path}"),
            Op::Write(path, offset, len) => write!(f, "write {path} {offset} {len}"),
            Op::WriteDurable(path, offset, len) => write!(f, "durable {path} {offset} {len}"),
            Op::Append(path, len) => write!(f, "append {path} {len}"),
            Op::Truncate(path, size) => write!(f, "truncate {path} {size}"),
            Op::Allocate(path, offset, len, keep) => {
                write!(f, "{} {path} {offset} {len}", if *keep { "reserve" } else { "allocate" })
            }
            Op::Punch(path, offset, len) => write!(f, "punch {path} {offset} {len}"),
            Op::Zero(path, offset, len, keep) => {
                write!(f, "{} {path} {offset} {len}", if *keep { "zero" } else { "zerogrow" })
            }
            Op::SetXattr(path, name, len) => write!(f, "setxattr {path} {name} {len}"),
            Op::RemoveXattr(path, name) => write!(f, "removexattr {path} {name}"),
            Op::SetMode(path, mode) => write!(f, "chmod {path} {mode:o}"),
            Op::SetOwner(path, uid, gid) => write!(f, "chown {path} {uid} {gid}"),
            Op::SetTimes(path, seconds) => write!(f, "utime {path} {seconds}"),
            Op::Sync(path) => write!(f, "sync {path}"),
            Op::SyncDir(path) => write!(f, "syncdir {path}"),
            Op::Checkpoint => write!(f, "checkpoint"),
            Op::Clean => write!(f, "clean"),
        }
    }
}

/// A text that is not an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an operation")]
pub struct ParseOpError(String);

impl FromStr for Op {
    type Err = ParseOpError;

    fn from_str(text: &str) -> Result<Op, ParseOpError> {
        parse(text).ok_or_else(|| ParseOpError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Op> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, rest) = words.split_first()?;
    let path = |at: usize| rest.get(at).map(|word| (*word).to_owned());
    fn number<T: FromStr>(rest: &[&str], at: usize) -> Option<T> {
        rest.get(at)?.parse().ok()
    }
    Some(match *name {
        "create" => Op::Create(path(0)?),
        "mkdir" => Op::Mkdir(path(0)?),
        "symlink" => Op::Symlink(path(0)?, number(rest, 1)?),
        "replace" => Op::Replace(path(0)?, number(rest, 1)?),
        "link" => Op::Link(path(0)?, path(1)?),
        "rename" => Op::Rename(path(0)?, path(1)?),
        "exchange" => Op::Exchange(path(0)?, path(1)?),
        "unlink" => Op::Unlink(path(0)?),
        "orphan" => Op::Orphan(path(0)?),
        "rmdir" => Op::Rmdir(path(0)?),
        "write" => Op::Write(path(0)?, number(rest, 1)?, number(rest, 2)?),
        "durable" => Op::WriteDurable(path(0)?, number(rest, 1)?, number(rest, 2)?),
        "append" => Op::Append(path(0)?, number(rest, 1)?),
        "truncate" => Op::Truncate(path(0)?, number(rest, 1)?),
        "allocate" => Op::Allocate(path(0)?, number(rest, 1)?, number(rest, 2)?, false),
        "reserve" => Op::Allocate(path(0)?, number(rest, 1)?, number(rest, 2)?, true),
        "punch" => Op::Punch(path(0)?, number(rest, 1)?, number(rest, 2)?),
        "zero" => Op::Zero(path(0)?, number(rest, 1)?, number(rest, 2)?, true),
        "zerogrow" => Op::Zero(path(0)?, number(rest, 1)?, number(rest, 2)?, false),
        "setxattr" => Op::SetXattr(path(0)?, path(1)?, number(rest, 2)?),
        "removexattr" => Op::RemoveXattr(path(0)?, path(1)?),
        "chmod" => Op::SetMode(path(0)?, u16::from_str_radix(rest.get(1)?, 8).ok()?),
        "chown" => Op::SetOwner(path(0)?, number(rest, 1)?, number(rest, 2)?),
        "utime" => Op::SetTimes(path(0)?, number(rest, 1)?),
        "sync" => Op::Sync(path(0)?),
        "syncdir" => Op::SyncDir(path(0)?),
        "checkpoint" => Op::Checkpoint,
        "clean" => Op::Clean,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Workload, alphabet};

    #[test]
    fn texts_lead_back() {
        let all = alphabet();
        assert_eq!(all.len(), 47, "every line of the alphabet is an operation");
        let others = [
            Op::Checkpoint,
            Op::Clean,
            Op::Replace("/x".into(), 100),
            Op::Append("/x".into(), 100),
            Op::Sync("/x".into()),
            Op::SyncDir("/x".into()),
            Op::Punch("/x".into(), 1, 2),
            Op::Zero("/x".into(), 3, 4, true),
            Op::Zero("/x".into(), 3, 4, false),
        ];
        for op in all.iter().chain(&others) {
            assert_eq!(op.to_string().parse().as_ref(), Ok(op));
        }
        let text = "plain: create /A/new; sync /A/new";
        assert_eq!(text.parse::<Workload>().map(|workload| workload.to_string()).as_deref(), Ok(text));
        assert!("nowhere: checkpoint".parse::<Workload>().is_err() && "write /a".parse::<Op>().is_err());
    }
}
