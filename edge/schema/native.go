package schema

import (
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"wayside/edge"
)

// A PROTOBUF_NATIVE definition is JSON: a serialized FileDescriptorSet, the file in it
// that has the root message, and that message's full name. Like on a real broker two are
// compatible when their roots have one name, and a definition is one when its root is in
// its file.
type native struct {
	Set  []byte `json:"fileDescriptorSet"`
	Type string `json:"rootMessageTypeName"`
	File string `json:"rootFileDescriptorName"`
}

// Numbers of fields in descriptor.proto.
const (
	setFile        = 1 // FileDescriptorSet.file
	fileName       = 1 // FileDescriptorProto.name
	filePackage    = 2
	fileDependency = 3
	fileMessage    = 4
	messageName    = 1 // DescriptorProto.name
	messageNested  = 3
)

// rootMessage is the full name of a definition's root.
func rootMessage(data []byte) (string, error) {
	var d native
	if err := json.Unmarshal(data, &d); err != nil {
		return "", errForm("deserialize ProtobufNative Schema failed: %w", err)
	}
	files := map[string][]byte{}
	each(d.Set, setFile, func(file []byte) { files[text(file, fileName)] = file })
	root, ok := files[d.File]
	if !ok {
		return "", errForm("deserialize ProtobufNative Schema failed: file %.80q is not in it", d.File)
	}
	for _, file := range files {
		each(file, fileDependency, func(name []byte) { ok = ok && files[string(name)] != nil })
	}
	if !ok {
		return "", errForm("deserialize ProtobufNative Schema failed: a file that it depends on is not in it")
	}
	path := strings.TrimPrefix(strings.TrimPrefix(d.Type, text(root, filePackage)), ".")
	message, number := root, protowire.Number(fileMessage)
	for name := range strings.SplitSeq(path, ".") {
		if message = member(message, number, name); message == nil {
			return "", errForm("protobuf root message descriptor is null: %.80q is not in file %.80q", d.Type, d.File)
		}
		number = messageNested
	}
	return d.Type, nil
}

func checkNative(old, next *edge.Schema) error {
	before, err := rootMessage(old.Data)
	if err != nil {
		return incompatible("%w", err)
	}
	after, err := rootMessage(next.Data)
	if err != nil {
		return incompatible("%w", err)
	}
	if before != after {
		return incompatible("Protobuf root message isn't allow change!")
	}
	return nil
}

// each visits the values of a field of bytes, and stops at what cannot be read.
func each(message []byte, want protowire.Number, visit func([]byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if size < 0 {
			return
		}
		if number == want && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[n:])
			visit(value)
		}
		message = message[n+size:]
	}
}

func text(message []byte, number protowire.Number) (value string) {
	each(message, number, func(b []byte) { value = string(b) })
	return value
}

// member is the message of a name among the values of a field.
func member(message []byte, number protowire.Number, name string) (found []byte) {
	each(message, number, func(b []byte) {
		if found == nil && text(b, messageName) == name {
			found = b
		}
	})
	return found
}
