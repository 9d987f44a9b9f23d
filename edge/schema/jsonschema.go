package schema

import (
	"encoding/json"

	"wayside/edge"
)

// oldForm is the id of a definition in the form of JSON Schema, in which clients of long
// ago described JSON; an id is all that is compared.
func oldForm(data []byte) (id string, err error) {
	if depth(data) > maxDepth {
		return "", errForm("Invalid schema definition data for JSON schema: nested too deeply")
	}
	var old struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &old); err != nil || !oldTypes[old.Type] {
		return "", errForm("Invalid schema definition data for JSON schema")
	}
	return old.ID, nil
}

// oldTypes are those of JSON Schema.
var oldTypes = map[string]bool{
	"object": true, "array": true, "string": true, "number": true, "integer": true, "boolean": true, "null": true, "any": true,
}

// checkOldForm compares with an earlier definition that is not Avro's form. The new form
// may take its place.
func checkOldForm(old, next *edge.Schema) error {
	before, err := oldForm(old.Data)
	if err != nil || old.Type != typeJSON {
		return nil // what nobody can read is overwritten
	}
	if _, err := parseAvro(next.Data); err == nil {
		return nil
	}
	if after, err := oldForm(next.Data); err != nil || after != before {
		return incompatible("Incompatible schema: its id is not %.200q", before)
	}
	return nil
}
