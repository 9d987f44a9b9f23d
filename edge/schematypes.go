package edge

// schemaTypes are the names of Pulsar's Schema.Type by its number (protocol 6.4).
var schemaTypes = []string{
	"NONE", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64",
	"FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE",
	"LOCAL_TIME", "LOCAL_DATE_TIME", "PROTOBUF_NATIVE", "AUTO_CONSUME",
}

// SchemaTypeName is the name of Schema.Type's number, NONE for an unknown one.
func SchemaTypeName(number int32) string {
	if number < 0 || int(number) >= len(schemaTypes) {
		return schemaTypes[0]
	}
	return schemaTypes[number]
}

// SchemaTypeNumber is the number of a name. BYTES has NONE's.
func SchemaTypeNumber(name string) (int32, bool) {
	if name == "BYTES" {
		return 0, true
	}
	for n, known := range schemaTypes {
		if known == name {
			return int32(n), true
		}
	}
	return 0, false
}

// SchemaStrategy says which schemas may follow which (protocol 3.15).
type SchemaStrategy int

// The strategies. StrategyUndefined leaves it to the next wider policy.
const (
	StrategyUndefined SchemaStrategy = iota
	AlwaysIncompatible
	AlwaysCompatible
	Backward // the new one reads what the latest wrote
	Forward  // the latest reads what the new one writes
	Full     // both
	BackwardTransitive
	ForwardTransitive
	FullTransitive // both, for all that there are
)

var strategyNames = []string{
	"UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
	"BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
}

// SchemaStrategyNames are the names of all strategies but StrategyUndefined.
func SchemaStrategyNames() []string { return strategyNames[1:] }

// ParseSchemaStrategy knows the names that Pulsar uses.
func ParseSchemaStrategy(name string) (SchemaStrategy, bool) {
	for n, known := range strategyNames {
		if known == name {
			return SchemaStrategy(n), true
		}
	}
	return StrategyUndefined, false
}

// String is the strategy's name.
func (s SchemaStrategy) String() string {
	if s < 0 || int(s) >= len(strategyNames) {
		return strategyNames[0]
	}
	return strategyNames[s]
}

// Transitive reports whether all schemas count, not the latest alone.
func (s SchemaStrategy) Transitive() bool { return s >= BackwardTransitive }

// Backward reports whether the new schema has to read what others wrote.
func (s SchemaStrategy) Backward() bool {
	return s == Backward || s == Full || s == BackwardTransitive || s == FullTransitive
}

// Forward reports whether the others have to read what the new schema writes.
func (s SchemaStrategy) Forward() bool {
	return s == Forward || s == Full || s == ForwardTransitive || s == FullTransitive
}

// SchemaRules knows what definitions mean. Its methods are called without locks and by one
// at a time, so they may take a while and much memory. Those that refuse wrap ErrSchema or ErrSchemaForm.
type SchemaRules interface {
	// Validate says what is wrong with a definition in itself.
	Validate(s *Schema) error
	// Find is the place of a schema that means the same, −1 for none.
	Find(s *Schema, among []Schema) int
	// Follows says why a schema may not be added to those that a topic has, oldest first.
	Follows(s *Schema, have []Schema, strategy SchemaStrategy) error
	// Reads says why a consumer's schema does not fit those that a topic has, oldest first.
	Reads(s *Schema, have []Schema, strategy SchemaStrategy) error
}

// plainRules knows of equal bytes only: what is left without Options.SchemaRules.
type plainRules struct{}

func (plainRules) Validate(*Schema) error { return nil }

func (plainRules) Find(s *Schema, among []Schema) int {
	for i := range among {
		if among[i].same(s) {
			return i
		}
	}
	return -1
}

func (r plainRules) Follows(s *Schema, have []Schema, _ SchemaStrategy) error {
	if len(have) > 0 && r.Find(s, have) < 0 {
		return ErrSchema
	}
	return nil
}

func (r plainRules) Reads(s *Schema, have []Schema, strategy SchemaStrategy) error {
	return r.Follows(s, have, strategy)
}
