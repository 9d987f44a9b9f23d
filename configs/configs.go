package configs

import _ "embed"

//go:embed wayside.yaml
var wayside string

// Default is the commented default file.
func Default() string { return wayside }
