package main

import "time"

// schemas are about the registry.
func schemas() []program {
	const text = `schema{name:"s" schema_data:"" type:String}`
	const number = `schema{name:"s" schema_data:"" type:Int32}`
	const record = `schema{name:"r" type:Avro schema_data:"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}]}"}`
	const wider = `schema{name:"r" type:Avro schema_data:"{\"type\":\"record\",\"name\":\"R\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"b\",\"type\":[\"null\",\"int\"],\"default\":null}]}"}`
	get := func(more string) step { return a.say("GET_SCHEMA", `topic:"`+full("t")+`" `+more) }
	make := func(more string) step { return a.say("GET_OR_CREATE_SCHEMA", `topic:"`+full("t")+`" `+more) }
	return []program{
		{name: "schema-none", steps: []step{get(""), a.producer(1, "t", ""), get(""), get(`schema_version:""`), get(`schema_version:"\000\000\000\000\000\000\000\000"`)}},
		{name: "schema-primitive", steps: []step{
			a.producer(1, "t", text), get(""), a.producer(2, "t", number), a.producer(3, "t", ""), b.subscribe(1, "t", "s", "Shared", text), b.subscribe(2, "t", "u", "Shared", number), b.subscribe(3, "t", "v", "Shared", ""),
		}},
		{name: "schema-get-or-create", steps: []step{make(text), a.producer(1, "t", ""), make(text), make(text), make(number), get(`schema_version:"\000\000\000\000\000\000\000\001"`), make(`schema{name:"Bytes" schema_data:"" type:None}`)}},
		{name: "schema-avro", steps: []step{a.producer(1, "t", record), a.producer(2, "t", wider), get(""), get(`schema_version:"\000\000\000\000\000\000\000\000"`), a.producer(3, "t", record), a.producer(4, "t", text)}},
		{name: "schema-by-consumer", steps: []step{b.subscribe(1, "t", "s", "Shared", record), get(""), a.producer(1, "t", wider), b.subscribe(2, "t", "s", "Shared", record), b.subscribe(3, "t", "s", "Shared", text)}},
	}
}

// operated are about what is done to topics from outside.
func operated() []program {
	const path = "/admin/v2/persistent/{ns}/{p}-t"
	return []program{
		{name: "unload", steps: []step{
			a.producer(1, "t", `producer_name:"p"`), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100), a.publish(1, "m0 m1"), b.redeliver(1, "m0"),
			admin("PUT", path+"/unload", ""), a.publish(1, "lost").unanswered(), b.flow(1, 5), b.acked(1, "Individual", "m0", "request_id:77").unanswered(),
			a.say("LOOKUP", `topic:"`+full("t")+`"`), a.producer(1, "t", `producer_name:"p" epoch:1`), a.publish(1, "m2"), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100), b.lastID(1),
		}},
		{name: "delete", steps: []step{
			a.producer(1, "t", ""), a.publish(1, "m0"), b.subscribe(1, "t", "s", "Shared", ""), admin("DELETE", path, ""), admin("DELETE", path+"?force=true", "").later(300 * time.Millisecond),
			a.publish(1, "lost").unanswered(), b.subscribe(1, "t", "s", "Shared", earliest), b.flow(1, 9), b.lastID(1),
		}},
		{name: "delete-subscription", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", ""), admin("DELETE", path+"/subscription/s", ""), admin("DELETE", path+"/subscription/s?force=true", ""), admin("DELETE", path+"/subscription/s", ""),
			b.flow(1, 5), b.subscribe(1, "t", "s", "Exclusive", ""),
		}},
		{name: "terminate", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Exclusive", ""), b.flow(1, 100), a.publish(1, "m0 m1"), admin("POST", path+"/terminate", ""),
			a.publish(1, "lost").unanswered(), a.producer(2, "t", ""), b.ack(1, "m0"), b.ack(1, "m1"), c.subscribe(1, "t", "u", "Exclusive", earliest), c.flow(1, 9), c.lastID(1),
		}},
		{name: "reset-cursor", steps: []step{
			a.producer(1, "t", ""), b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100), a.publish(1, "m0 m1"), b.ack(1, "m0 m1"), admin("POST", path+"/subscription/s/resetcursor/1", ""),
			b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 100),
		}},
		{name: "skip", steps: []step{
			a.producer(1, "t", ""), admin("PUT", path+"/subscription/s", ""), a.publish(1, "m0 m1 m2"), admin("POST", path+"/subscription/s/skip/1", ""), figures("t", "subscriptions/s/msgBacklog"),
			b.subscribe(1, "t", "s", "Shared", ""), b.flow(1, 1), admin("POST", path+"/subscription/s/skip_all", ""), b.flow(1, 9), figures("t", "subscriptions/s/msgBacklog"),
		}},
	}
}
