package admin

import (
	"encoding/binary"
	"encoding/json"
)

// A KEY_VALUE schema is stored as it comes over the binary protocol: for key and value
// each a length of four bytes, big-endian, and so many bytes of their schema. Over HTTP
// it is an object with members key and value, each an object for a structured schema
// and a string for another one (captures curl-schemas).

// joined makes the stored form of the object, or false if it is none.
func joined(text string) ([]byte, bool) {
	var parts struct {
		Key   json.RawMessage `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return nil, false
	}
	var data []byte
	for _, part := range []json.RawMessage{parts.Key, parts.Value} {
		schema := schemaPart(part)
		data = binary.BigEndian.AppendUint32(data, uint32(len(schema)))
		data = append(data, schema...)
	}
	return data, true
}

// schemaPart is one half's schema: the text of a string, the definition inside of an
// object that describes one, or the object that is one.
func schemaPart(part json.RawMessage) []byte {
	var text string
	if len(part) == 0 || json.Unmarshal(part, &text) == nil { // null is an empty string
		return []byte(text)
	}
	var described struct {
		Type   string  `json:"type"`
		Schema *string `json:"schema"`
	}
	if json.Unmarshal(part, &described) == nil && described.Schema != nil {
		return []byte(*described.Schema)
	}
	return part
}

// joinedText is the object that stands for the stored form.
func joinedText(data []byte) string {
	object := struct {
		Key   json.RawMessage `json:"key"`
		Value json.RawMessage `json:"value"`
	}{}
	object.Key, data = takePart(data)
	object.Value, _ = takePart(data)
	text, err := encode(object)
	if err != nil { // both parts are JSON already
		return ""
	}
	return string(text)
}

// takePart cuts one half off and writes it as JSON. What is cut short counts as empty.
func takePart(data []byte) (part json.RawMessage, rest []byte) {
	empty := json.RawMessage(`""`)
	if len(data) < 4 {
		return empty, nil
	}
	n := uint64(binary.BigEndian.Uint32(data))
	data = data[4:]
	if n > uint64(len(data)) {
		return empty, nil
	}
	schema, rest := data[:n], data[n:]
	if len(schema) > 0 && schema[0] == '{' && json.Valid(schema) {
		return json.RawMessage(schema), rest
	}
	quoted, err := encode(string(schema))
	if err != nil { // a string always has its JSON
		return empty, rest
	}
	return quoted, rest
}
