module difftest

go 1.26.0

require (
	google.golang.org/protobuf v1.36.12
	wayside v0.0.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/pierrec/lz4/v4 v4.1.22 // indirect
)

replace (
	github.com/AthenZ/athenz => ../../uplink/internal/athenz
	github.com/hamba/avro/v2 => ../../uplink/internal/avro
	wayside => ../..
)
