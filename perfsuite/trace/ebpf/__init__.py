"""From the eBPF recorder's log to a trace."""
