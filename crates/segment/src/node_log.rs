//! The logs that nodes go to.

use f2fs_format::LogType;

/// A log of nodes. F2FS sorts nodes by how soon they are likely to be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeLog {
    /// Inodes and direct nodes of directories.
    Hot,
    /// Inodes and direct nodes of other files. Roll-forward follows this log.
    Warm,
    /// Indirect nodes.
    Cold,
}

impl NodeLog {
    /// All of them.
    pub const ALL: [NodeLog; 3] = [NodeLog::Hot, NodeLog::Warm, NodeLog::Cold];

    /// The log among all six.
    #[must_use]
    pub const fn log(self) -> LogType {
        match self {
            NodeLog::Hot => LogType::HotNode,
            NodeLog::Warm => LogType::WarmNode,
            NodeLog::Cold => LogType::ColdNode,
        }
    }

    /// The node log that a log is; `None` for a log of data.
    #[must_use]
    pub const fn of(log: LogType) -> Option<NodeLog> {
        match log {
            LogType::HotNode => Some(NodeLog::Hot),
            LogType::WarmNode => Some(NodeLog::Warm),
            LogType::ColdNode => Some(NodeLog::Cold),
            LogType::HotData | LogType::WarmData | LogType::ColdData => None,
        }
    }
}

impl From<NodeLog> for LogType {
    fn from(log: NodeLog) -> LogType {
        log.log()
    }
}
