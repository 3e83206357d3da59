//! F2FS segment manager: SIT, SSA, the logs, allocation and victim selection
