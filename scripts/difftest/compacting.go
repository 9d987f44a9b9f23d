package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// compactTime bounds a compaction: the real broker does one at a time.
const compactTime = 90 * time.Second

// compact has a topic compacted and waits for the end of it.
func compact(topic string) step {
	path := "/admin/v2/" + strings.Replace(full(topic), "://", "/", 1) + "/compaction"
	return step{title: "compact " + topic, do: func(w *world) error {
		code, _, err := w.ask("PUT", w.expand(path), "")
		if err != nil {
			return err
		}
		status := ""
		for end := time.Now().Add(compactTime); time.Now().Before(end) && code/100 == 2; time.Sleep(10 * tick) {
			_, body, err := w.ask("GET", w.expand(path), "")
			if err != nil {
				return err
			}
			var all any
			if json.Unmarshal(body, &all) == nil {
				status = find(all, "status")
			}
			if status != "RUNNING" {
				break
			}
		}
		w.arrived(&event{stream: "admin", text: fmt.Sprintf("compaction: %d %s", code, status)})
		return nil
	}}
}

// valueless sends a message of a key without a value: what takes the key away.
func (c conn) valueless(id int, key, label string) step {
	return c.hollow(id, key, label, "null_value:true uncompressed_size:0")
}

// hollow sends a message of a key with an empty payload; more is further metadata.
func (c conn) hollow(id int, key, label, more string) step {
	return c.step(fmt.Sprintf("publish %s=%s without payload {%s}", key, label, more), func(_ *world, cl *client) error {
		return cl.publish(id, label, "", fmt.Sprintf("partition_key:%q %s", key, more), nil)
	})
}

// keyedBatch sends a batch with a message for each key, without a value if a minus stands before it; "_" is no key.
func (c conn) keyedBatch(id int, label, keys string) step {
	return c.step(fmt.Sprintf("batch %s of %s", label, keys), func(_ *world, cl *client) error {
		var payload []byte
		all := strings.Fields(keys)
		for i, key := range all {
			one, value := &pulsarpb.SingleMessageMetadata{SequenceId: proto.Uint64(uint64(i))}, []byte(fmt.Sprintf("%s.%d", label, i))
			name, null := strings.CutPrefix(key, "-")
			if null {
				one.NullValue, value = proto.Bool(true), nil
			}
			if name != "_" {
				one.PartitionKey = &name
			}
			var err error
			if payload, err = wire.AppendSingle(payload, one, value); err != nil {
				return err
			}
		}
		n := len(all)
		return cl.publish(id, label, fmt.Sprintf("num_messages:%d", n), fmt.Sprintf("num_messages_in_batch:%d", n), payload)
	})
}

// compactedTo tells what is left in an entry that is not as it was sent, if it can be read.
func compactedTo(entry []byte) string {
	var left []string
	err := wire.Unpack(entry, frameLimit, func(s wire.Single) error {
		one := string(s.Payload)
		if s.HasKey {
			one = string(s.Key) + "=" + one
		}
		if s.NullValue {
			one += " null"
		}
		if s.CompactedOut {
			one += " out"
		}
		left = append(left, one)
		return nil
	})
	if err != nil {
		return ""
	}
	return " to [" + strings.Join(left, ", ") + "]"
}
