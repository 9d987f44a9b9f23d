package main

import "time"

// handshakes are about the beginning of a connection.
func handshakes() []program {
	return []program{
		{name: "connect", steps: []step{
			a.raw(),
			a.say("CONNECT", `client_version:"x" protocol_version:21 auth_method_name:"none" feature_flags{supports_broker_entry_metadata:true}`),
			a.say("PING", ""),
		}},
		{name: "connect-old-version", steps: []step{a.raw(), a.say("CONNECT", `client_version:"x" protocol_version:12`)}},
		{name: "connect-without-version", steps: []step{a.raw(), a.say("CONNECT", `client_version:"x"`)}},
		{name: "connect-through-proxy", steps: []step{
			a.raw(), a.say("CONNECT", `client_version:"x" protocol_version:20 proxy_to_broker_url:"elsewhere:6650" auth_method_name:"strange" auth_data:"x"`),
		}},
		{name: "connect-pipelined", steps: []step{a.raw(), together(a.say("CONNECT", handshake), a.say("LOOKUP", `topic:"{p}-t"`), a.say("PING", ""))}},
		{name: "connect-twice", steps: []step{
			a.raw(), a.say("CONNECT", handshake), a.say("CONNECT", handshake),
		}},
		{name: "command-before-connect", steps: []step{a.raw(), a.say("LOOKUP", `topic:"x"`)}},
		{name: "ping-before-connect", steps: []step{a.raw(), a.say("PING", ""), a.say("CONNECT", handshake)}},
		{name: "auth-response-unasked", steps: []step{
			a.say("AUTH_RESPONSE", `response{auth_method_name:"none" auth_data:""} protocol_version:21`),
		}},
		{name: "auth-response-empty", steps: []step{a.say("AUTH_RESPONSE", `protocol_version:21`)}},
		{name: "exclusive-mute-holder", steps: []step{
			a.subscribe(1, "t", "s", "Exclusive", ""),
			a.mute(),
			b.subscribe(1, "t", "s", "Exclusive", "").later(5500 * time.Millisecond),
		}},
		{name: "producer-mute-holder", steps: []step{
			a.producer(1, "t", `producer_name:"p"`),
			a.mute(),
			b.producer(1, "t", `producer_name:"p"`).later(5500 * time.Millisecond),
		}},
	}
}

// malformed are about bytes that no client should send.
func malformed() []program {
	broken := func(name, text string) program {
		return program{name: "frame-" + name, steps: []step{a.raw(), a.say("CONNECT", handshake), a.bytes(text)}}
	}
	return []program{
		broken("command-too-long", "00000009 00000006 0812920100"),
		broken("total-too-small", "00000003 000000"),
		broken("command-empty", "00000004 00000000"),
		broken("too-large", "7fffffff 00000005"),
		broken("not-protobuf", "00000009 00000005 ffffffffff"),
		broken("unknown-type", "00000006 00000002 0847"),
		broken("unknown-type-large", "00000007 00000003 08e807"),
		broken("without-command", "00000006 00000002 0804"),
		broken("required-missing", "00000008 00000004 08076a00"),
		broken("bytes-behind-ping", "0000000b 00000005 0812920100 abcd"),
		{name: "broker-command-connected", steps: []step{a.say("CONNECTED", `server_version:"x"`)}},
		{name: "broker-command-message", steps: []step{a.say("MESSAGE", `consumer_id:1 message_id{ledgerId:1 entryId:1}`)}},
		{name: "broker-command-success", steps: []step{a.say("SUCCESS", `request_id:1`)}},
		{name: "broker-command-error", steps: []step{a.say("ERROR", `request_id:1 error:UnknownError message:"x"`)}},
		{name: "broker-command-receipt", steps: []step{a.say("SEND_RECEIPT", `producer_id:1 sequence_id:1`)}},
		{name: "pong-unasked", steps: []step{a.say("PONG", ""), a.say("PING", "")}},
	}
}

// lookups are about finding topics and partitions.
func lookups() []program {
	look := func(topic string) step { return a.say("LOOKUP", `topic:"`+topic+`"`) }
	parts := func(topic, more string) step { return a.say("PARTITIONED_METADATA", `topic:"`+topic+`" `+more) }
	return []program{
		{name: "lookup", steps: []step{
			look(full("t")), look("{p}-short"), look("public/default/{p}-short"),
			a.say("LOOKUP", `topic:"`+full("t")+`" request_id:18446744073709551615`),
			look(full("t-partition-3")), parts(full("t"), "metadata_auto_creation_enabled:false"),
		}},
		{name: "lookup-invalid", steps: []step{
			look("a/b"), look("persistent://public/default/"), look("persistent://pub lic/default/x"), look(""),
			look("strange://public/default/x"),
		}},
		{name: "lookup-no-namespace", steps: []step{look("persistent://public/none/x"), look("persistent://none/none/x")}},
		{name: "lookup-listener", steps: []step{a.say("LOOKUP", `topic:"`+full("t")+`" advertised_listener_name:"other"`)}},
		{name: "partitions-plain", steps: []step{
			parts(full("t"), ""), parts(full("t"), "metadata_auto_creation_enabled:false"),
			a.producer(1, "t", ""), parts(full("t"), "metadata_auto_creation_enabled:false"),
			parts(full("t-partition-0"), ""), parts(full("t-partition-01"), ""), parts(full("t-partition-x"), ""),
		}},
		{name: "partitions-made", steps: []step{
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/partitions", "3"),
			parts(full("t"), ""), parts(full("t"), "metadata_auto_creation_enabled:false"),
			parts(full("t-partition-1"), ""), parts(full("t-partition-3"), ""), parts(full("t-partition-01"), ""),
			a.producer(1, "t-partition-1", ""), a.publish(1, "m0"),
			a.subscribe(1, "t-partition-1", "s", "Exclusive", earliest), a.flow(1, 5), a.lastID(1),
			a.producer(2, "t-partition-3", ""), a.subscribe(2, "t-partition-7", "s", "Exclusive", ""),
			admin("POST", "/admin/v2/persistent/{ns}/{p}-t/partitions", "5"),
			parts(full("t"), ""), a.producer(3, "t-partition-3", ""),
		}},
		{name: "partitioned-base", steps: []step{
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t/partitions", "2"),
			a.producer(1, "t", ""), a.subscribe(1, "t", "s", "Exclusive", ""),
		}},
		{name: "partitions-invalid", steps: []step{parts("a/b", ""), parts("persistent://public/none/x", ""), parts("persistent://public/default/", "")}},
		{name: "fixed-topics", setting: "fixed", steps: []step{
			look(full("t")), parts(full("t"), ""), a.producer(1, "t", ""), a.subscribe(1, "t", "s", "Exclusive", ""),
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-t", ""),
			parts(full("t"), ""), a.producer(2, "t", ""), a.subscribe(2, "t", "s", "Exclusive", ""),
		}},
		{name: "namespace-missing", steps: []step{
			a.producer(1, "persistent://public/none/x", ""), a.subscribe(1, "persistent://public/none/x", "s", "Exclusive", ""),
		}},
		{name: "names-invalid", steps: []step{
			a.producer(1, "a/b", ""), a.subscribe(1, "a/b", "s", "Exclusive", ""), a.producer(2, "persistent://public/default/", ""),
		}},
		{name: "names-short", steps: []step{
			a.producer(1, "persistent://public/default/{p}-t", ""), a.say("PRODUCER", `topic:"{p}-t" producer_id:2`),
			a.say("SUBSCRIBE", `topic:"public/default/{p}-t" subscription:"s" subType:Exclusive consumer_id:0 initialPosition:Earliest`),
			a.flow(0, 9), a.publish(1, "m0"), a.publish(2, "m1"),
			a.say("GET_TOPICS_OF_NAMESPACE", `namespace:"public/default" topics_pattern:"public/default/{p}.*"`),
		}},
		{name: "names-odd", steps: []step{
			a.producer(1, "persistent://{ns}/{p} blank%41+ü?&#", ""), a.publish(1, "m0"),
			a.subscribe(1, "persistent://{ns}/{p} blank%41+ü?&#", "s", "Exclusive", earliest), a.flow(1, 9),
			a.say("GET_TOPICS_OF_NAMESPACE", `namespace:"{ns}" topics_pattern:"{ns}/{p}.*"`),
		}},
	}
}

// lists are about the topics of a namespace.
func lists() []program {
	list := func(more string) step { return a.say("GET_TOPICS_OF_NAMESPACE", more) }
	return []program{
		{name: "list", steps: []step{
			list(`namespace:"{ns}" topics_pattern:"{ns}/{p}.*"`),
			a.producer(1, "a", ""), a.subscribe(1, "b", "s", "Shared", ""),
			admin("PUT", "/admin/v2/persistent/{ns}/{p}-c/partitions", "2"),
			list(`namespace:"{ns}" topics_pattern:"{ns}/{p}.*"`),
			list(`namespace:"{ns}" topics_pattern:"{ns}/{p}-[ac].*"`),
			list(`namespace:"{ns}" topics_pattern:"^persistent://{ns}/{p}-a$"`),
			list(`namespace:"{ns}" topics_pattern:"{ns}/{p}-none" topics_hash:"00000000"`),
			list(`namespace:"{ns}" mode:ALL topics_pattern:"{ns}/{p}.*"`),
			list(`namespace:"{ns}" mode:NON_PERSISTENT topics_pattern:"{ns}/{p}.*"`),
		}},
		{name: "topics-of-nothing", steps: []step{list(`namespace:"public/none"`), list(`namespace:"none/none" mode:ALL`)}},
		{name: "topics-bad-pattern", steps: []step{a.producer(1, "a", ""), list(`namespace:"public/fixed" topics_pattern:"public/fixed/{p}[("`)}},
		{name: "topics-bad-namespace", steps: []step{list(`namespace:"x"`)}},
	}
}
