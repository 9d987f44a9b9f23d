package main

// differences is the table of all that is known.
func differences() []difference {
	return []difference{
		{name: "replication by position", kind: deliberate,
			pulsar: `CONNECTED .*supports_repl_dedup_by_lid_and_eid:true.*`, wayside: `CONNECTED .*`,
			cause: "ServerCnx tells every client that it can deduplicate replicated messages by position; connect.go does not, since nothing replicates here"},
	}
}
