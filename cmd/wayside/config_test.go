package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"wayside/configs"
)

// environment is a set of variables for tests.
func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// inDirectory makes a file f.yaml in a directory of its own and goes there, so that
// messages name it shortly.
func inDirectory(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("f.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "storage:\n  qouta: 1GiB\n", "f.yaml:2:3: storage.qouta: unknown key, did you mean storage.quota?"},
		{"unknown group", "storrage:\n  quota: 1GiB\n", "f.yaml:1:1: storrage: unknown key, did you mean storage?"},
		{"key without its group", "commit_delay: 1s\n", "f.yaml:1:1: commit_delay: unknown key, did you mean storage.commit_delay?"},
		{"key of another group", "listen:\n  memory: 1GiB\n", "f.yaml:2:3: listen.memory: unknown key, did you mean limits.memory?"},
		{"nothing alike", "zzzzzzzzz: 1\n", "f.yaml:1:1: zzzzzzzzz: unknown key"},
		{"key of a later time", "listen:\n  pulsar_tls: \":6651\"\n", "f.yaml:2:3: listen.pulsar_tls: unknown key, did you mean listen.pulsar?"},
		{"repeated key", "log:\n  level: info\n  level: warn\n", "f.yaml:3:3: log.level: is repeated, first in line 2"},
		{"repeated group", "log: {level: info}\nstorage: {}\nlog: {format: json}\n", "f.yaml:3:1: log: is repeated, first in line 1"},
		{"number for text", "edge:\n  id: 12\n", "f.yaml:2:7: edge.id: wants a name, has the number 12"},
		{"text for switch", "topics:\n  auto_create: yes\n", "f.yaml:2:16: topics.auto_create: wants true or false, has the text yes"},
		{"text for number", "limits:\n  connections: \"10\"\n", "f.yaml:2:16: limits.connections: wants a whole number, has the text 10"},
		{"fraction", "limits:\n  connections: 1.5\n", "f.yaml:2:16: limits.connections: wants a whole number, has the number 1.5"},
		{"odd number", "limits:\n  connections: 0x10\n", "f.yaml:2:16: limits.connections: \"0x10\" is not a whole number"},
		{"list for text", "storage:\n  path: [a]\n", "f.yaml:2:9: storage.path: wants a directory, has a list"},
		{"group for size", "storage:\n  quota: {a: 1}\n", "f.yaml:2:10: storage.quota: wants a size such as 512KiB, 32MiB or 2GB, has a group of keys"},
		{"text for group", "storage: big\n", "f.yaml:1:10: storage: wants a group of keys, has the text big"},
		{"list at the top", "- a\n", "f.yaml:1:1: wants a group of keys, has a list"},
		{"no value", "storage:\n  path:\n", "f.yaml:2:8: storage.path: has no value, remove the line or write one: wants a directory"},
		{"unit's case", "storage:\n  quota: 10mb\n", "f.yaml:2:10: storage.quota: \"10mb\" has no known unit, did you mean MB or MiB?"},
		{"unknown unit", "storage:\n  quota: 10 parsecs\n", "f.yaml:2:10: storage.quota: \"10 parsecs\" is not a size such as 512KiB, 32MiB or 2GB"},
		{"no number", "storage:\n  quota: MiB\n", "f.yaml:2:10: storage.quota: \"MiB\" is not a size such as 512KiB, 32MiB or 2GB"},
		{"negative size", "storage:\n  quota: -1MiB\n", "f.yaml:2:10: storage.quota: \"-1MiB\" is not a size such as 512KiB, 32MiB or 2GB"},
		{"duration without unit", "storage:\n  commit_delay: 5\n", "f.yaml:2:17: storage.commit_delay: \"5\" is not a duration such as 500ms, 90s, 36h or 7d"},
		{"duration's case", "storage:\n  commit_delay: 5S\n", "f.yaml:2:17: storage.commit_delay: \"5S\" has no known unit, did you mean s?"},
		{"too small", "limits:\n  memory: 1MiB\n", "f.yaml:2:11: limits.memory: 1MiB is too small, at least 16MiB"},
		{"too large", "storage:\n  commit_delay: 1m\n", "f.yaml:2:17: storage.commit_delay: 1m is too large, at most 10s"},
		{"larger than a number holds", "storage:\n  quota: 99999999999TiB\n", "f.yaml:2:10: storage.quota: 99999999999 is too large"},
		{"out of range", "limits:\n  connections: 0\n", "f.yaml:2:16: limits.connections: 0 is too small, at least 1"},
		{"choice", "storage:\n  when_full: drop_oldest\n", "f.yaml:2:14: storage.when_full: \"drop_oldest\" is not known, did you mean drop-oldest?"},
		{"choice, nothing alike", "log:\n  level: verbose-at-most\n", "f.yaml:2:10: log.level: \"verbose-at-most\" is not one of debug, info, warn, error"},
		{"address", "listen:\n  pulsar: 6650\n", "f.yaml:2:11: listen.pulsar: wants HOST:PORT or :PORT, has the number 6650"},
		{"address without port", "listen:\n  pulsar: localhost\n", "f.yaml:2:11: listen.pulsar: \"localhost\" is not HOST:PORT or :PORT"},
		{"port out of range", "listen:\n  admin: \":99999\"\n", "f.yaml:2:10: listen.admin: \":99999\" has no port between 0 and 65535"},
		{"the same address twice", "listen:\n  admin: \":6650\"\n", "f.yaml:2:10: listen.admin: :6650 is the address of listen.pulsar too"},
		{"advertised", "listen:\n  advertised: http://me\n", "f.yaml:2:15: listen.advertised: \"http://me\" is not a URL such as pulsar://HOST:PORT"},
		{"edge id", "edge: {id: a/b}\n", "f.yaml:1:12: edge.id: \"a/b\" has other characters than letters, digits and '_-=:.': take the others out"},
		{"uplink scheme", "uplink: {url: \"http://c:1\", routes: [{from: a, to: b}]}\n", "f.yaml:1:15: uplink.url: \"http://c:1\" is not a URL such as pulsar://HOST:PORT or pulsar+ssl://HOST:PORT"},
		{"password in the URL", "uplink: {url: \"pulsar://me:pw@c:1\", routes: [{from: a, to: b}]}\n", "f.yaml:1:15: uplink.url: holds a name or password, which have no place in it"},
		{"routes to nowhere", "uplink:\n  routes: [{from: a, to: b}]\n", "f.yaml:2:11: uplink.routes: leads nowhere, set uplink.url (\"\" keeps the routes at rest)"},
		{"nothing to forward", "uplink:\n  url: pulsar://c:1\n", "f.yaml:2:8: uplink.url: is set, but uplink.routes names nothing to forward"},
		{"route's key", "uplink:\n  url: pulsar://c:1\n  routes:\n    - {from: a, too: b}\n", "f.yaml:4:17: uplink.routes[0].too: unknown key, did you mean uplink.routes[0].to?"},
		{"placeholder", "uplink:\n  url: pulsar://c:1\n  routes:\n    - {from: a, to: \"{edje}\"}\n", "f.yaml:4:7: uplink.routes[0]: route a: to: \"{edje}\": unknown placeholder {edje}: there are {edge}, {tenant}, {namespace}, {topic} and {1}, {2} …"},
		{"two routes of one name", "uplink:\n  url: pulsar://c:1\n  routes:\n    - {from: a, to: b}\n    - {from: a, to: c}\n", "f.yaml:4:5: uplink.routes: route a: there are two of this name, give each its own"},
		{"loop", "uplink:\n  url: pulsar://localhost:6650\n  routes:\n    - {from: \"a*\", to: \"a-{topic}\"}\n", "f.yaml:4:5: uplink.routes: route aany: writes to this very broker, where route aany forwards a*: a loop"},
		{"route without source", "uplink:\n  url: pulsar://c:1\n  routes:\n    - to: a\n", "f.yaml:4:7: uplink.routes[0]: lacks from, the topic or pattern to forward"},
		{"route without by", "uplink:\n  url: pulsar://c:1\n  routes:\n    - {from: a, to: b, forward: acknowledged}\n", "f.yaml:4:7: uplink.routes[0]: lacks by, the subscription whose acknowledgements are meant"},
		{"route with by", "uplink:\n  url: pulsar://c:1\n  routes:\n    - {from: a, to: b, by: c}\n", "f.yaml:4:7: uplink.routes[0].by: goes with forward: acknowledged only"},
		{"route as text", "uplink:\n  url: pulsar://c:1\n  routes: [a]\n", "f.yaml:3:12: uplink.routes[0]: wants a group of keys, has the text a"},
		{"routes as group", "uplink:\n  url: pulsar://c:1\n  routes: {from: a}\n", "f.yaml:3:11: uplink.routes: wants a list of routes, has a group of keys"},
		{"secret written out", "uplink: {auth: {token: abc}}\n", "f.yaml:1:24: uplink.auth.token: is a secret, write ${NAME} and put it into the environment, or use a file"},
		{"secret not there", "uplink: {auth: {token: \"${NONE}\"}}\n", "f.yaml:1:24: uplink.auth.token: NONE is not set in the environment"},
		{"environment elsewhere", "edge: {id: \"${TOKEN}\"}\n", "f.yaml:1:12: edge.id: ${TOKEN}: only secrets are taken from the environment"},
		{"token twice", "uplink: {url: \"\", auth: {token: \"${TOKEN}\", token_file: x}}\n", "f.yaml:1:33: uplink.auth.token: and uplink.auth.token_file are both set, keep one"},
		{"trust without TLS", "uplink:\n  url: pulsar://c:1\n  tls: {ca_file: x}\n  routes: [{from: a, to: b}]\n", "f.yaml:3:18: uplink.tls.ca_file: has no use with pulsar://c:1, which is not pulsar+ssl://"},
		{"file limit under quota", "storage:\n  quota: 1GiB\n  file_limit: 1MiB\n", "f.yaml:3:15: storage.file_limit: 1MiB is less than storage.quota, 1GiB"},
		{"file limit against the default", "storage:\n  file_limit: 1MiB\n", "f.yaml:2:15: storage.file_limit: 1MiB is less than storage.quota, 1GiB"},
		{"messages too large for the memory", "limits:\n  memory: 16MiB\n", "default: limits.message_size: 5MiB is more than a quarter of limits.memory, 16MiB"},
		{"anchor", "log:\n  level: &l info\n  format: json\n", "f.yaml:2:10: log.level: has an anchor or alias, write the value out"},
		{"two documents", "log: {level: info}\n---\nlog: {level: warn}\n", "f.yaml:2:1: a second document begins here, one is all that is read"},
		{"tabs", "log:\n\tlevel: info\n\tformat: json\n", "f.yaml:2:1: a tab, indent with spaces\nf.yaml:3:1: a tab, indent with spaces"},
		{"no YAML", "log: {level: info\n", "f.yaml:1:1: is not YAML: did not find expected ',' or '}'"},
		{
			"all in one go", "storage:\n  qouta: 1GiB\n  quota: 1\n  path: 7\nlog: {level: loud}\n",
			"f.yaml:2:3: storage.qouta: unknown key, did you mean storage.quota?\n" +
				"f.yaml:3:10: storage.quota: 1 is too small, at least 1MiB\n" +
				"f.yaml:4:9: storage.path: wants a directory, has the number 7\n" +
				"f.yaml:5:14: log.level: \"loud\" is not one of debug, info, warn, error",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inDirectory(t, c.text)
			_, err := loadConfig("f.yaml", nil, environment("TOKEN", "s3cret"))
			wantFault(t, err, exitUsage, c.want)
		})
	}
}

// wantFault compares code and lines.
func wantFault(t *testing.T, err error, code int, want string) {
	t.Helper()
	f, ok := err.(*fault)
	if !ok {
		t.Fatalf("error %v is no fault, want %q", err, want)
	}
	if got := strings.Join(f.lines, "\n"); got != want || f.code != code {
		t.Errorf("exit %d:\n%s\nwant exit %d:\n%s", f.code, got, code, want)
	}
}

func TestConfigFileErrors(t *testing.T) {
	inDirectory(t, "# nothing but a comment\n")
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("huge.yaml", make([]byte, maxConfigFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"f.yaml":    "configuration file is empty: f.yaml: write at least one key, or leave -c away to run on the defaults",
		"none.yaml": "cannot open the configuration: none.yaml: there is no such file",
		"folder":    "cannot read the configuration: folder: is a directory",
		"huge.yaml": "configuration file is too large: huge.yaml: at most 1MiB",
	} {
		_, err := loadConfig(name, nil, environment())
		wantFault(t, err, exitUsage, want)
	}
}

func TestOverrideErrors(t *testing.T) {
	for _, c := range []struct{ flag, path, value, want string }{
		{"--set", "storage.qouta", "1GiB", "--set: storage.qouta: unknown key, did you mean storage.quota?"},
		{"--set", "storage", "1", "--set: storage: is a group, name one of its keys"},
		{"--set", "storage.quota", "10mb", "--set: storage.quota: \"10mb\" has no known unit, did you mean MB or MiB?"},
		{"--listen", "listen.pulsar", "6650", "--listen: listen.pulsar: \"6650\" is not HOST:PORT or :PORT"},
		{"--set", "uplink.routes", "[", "--set: uplink.routes: wants a list of routes, written as YAML"},
		{"--set", "uplink.routes", "[{form: a}]", "--set: uplink.routes[0].form: unknown key, did you mean uplink.routes[0].from?"},
		{"--set", "uplink.auth.token", "abc", "--set: uplink.auth.token: is a secret, write ${NAME} and put it into the environment, or use a file"},
	} {
		_, err := loadConfig("", []override{{c.flag, c.path, c.value}}, environment())
		wantFault(t, err, exitUsage, c.want)
	}
}

// Flags beat the file, the file beats the defaults, and each value knows its origin.
func TestConfigPrecedence(t *testing.T) {
	inDirectory(t, "storage:\n  quota: 2GiB\n  keep_acked: 0\nlog:\n  level: warn\nuplink:\n  url: pulsar://cloud:6650\n  auth: {token: \"${TOKEN}\"}\n"+
		"  routes:\n    - {from: a, to: \"x-{edge}\"}\n    - {from: b, to: y, forward: acknowledged, by: archive, compression: zstd}\n")
	s, err := loadConfig("f.yaml", []override{{"--set", "storage.quota", "3GiB"}, {"--data", "storage.path", "12"}}, environment("TOKEN", "s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.Storage.Quota, want.Storage.KeepAcked, want.Storage.Path = 3<<30, 0, "12"
	want.Log.Level = "warn"
	want.Uplink.URL, want.Uplink.Token = "pulsar://cloud:6650", "s3cret"
	want.Uplink.Routes = []Route{
		{From: "a", To: "x-{edge}", Forward: "stored", Compression: "none", Provenance: "id", Park: "{tenant}/{namespace}/wayside.parked"},
		{From: "b", To: "y", Forward: "acknowledged", By: "archive", Compression: "zstd", Provenance: "id", Park: "{tenant}/{namespace}/wayside.parked"},
	}
	if !reflect.DeepEqual(s.Config, want) {
		t.Errorf("got %+v\nwant %+v", s.Config, want)
	}
	for path, from := range map[string]string{
		"storage.quota": "--set", "storage.path": "--data", "log.level": "f.yaml:5:10", "log.format": "default", "uplink.routes[1]": "f.yaml:11:7",
	} {
		if got := s.origin(path).String(); got != from {
			t.Errorf("origin of %s is %s, want %s", path, got, from)
		}
	}
}

// An explicit empty URL switches the uplink off and keeps its routes.
func TestUplinkAtRest(t *testing.T) {
	inDirectory(t, "uplink:\n  url: pulsar://cloud:6650\n  routes: [{from: a, to: b}]\n")
	s, err := loadConfig("f.yaml", []override{{"--set", "uplink.url", ""}}, environment())
	if err != nil {
		t.Fatal(err)
	}
	if s.Uplink.URL != "" || len(s.Uplink.Routes) != 1 {
		t.Errorf("url %q with %d routes", s.Uplink.URL, len(s.Uplink.Routes))
	}
}

// The embedded file states every key, in order, with a comment, and with the default's value.
func TestDefaultFileIsTheDefaults(t *testing.T) {
	inDirectory(t, configs.Default())
	s, err := loadConfig("f.yaml", nil, environment())
	if err != nil {
		t.Fatal(err)
	}
	if want := defaultConfig(); s.Edge != want.Edge || s.Storage != want.Storage || s.Listen != want.Listen || s.Limits != want.Limits ||
		s.Topics != want.Topics || s.Log != want.Log || len(s.Uplink.Routes) != 0 || s.Uplink.URL != "" {
		t.Errorf("the file says %+v\ndefaults are %+v", s.Config, want)
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(configs.Default()), &document); err != nil {
		t.Fatal(err)
	}
	for _, k := range configKeys() {
		comment := commentOf(document.Content[0], strings.Split(k.path, "."))
		if comment == "" {
			t.Errorf("%s has no comment in configs/wayside.yaml", k.path)
		}
		if k.list == nil {
			continue
		}
		for _, member := range routeKeys() {
			if !strings.Contains(comment, "  "+member.path+" ") {
				t.Errorf("the comment of %s does not explain %s", k.path, member.path)
			}
		}
	}
}

// commentOf returns what stands above a key, "" if the key is not there.
func commentOf(n *yaml.Node, path []string) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == path[0] {
			if len(path) == 1 {
				return n.Content[i].HeadComment
			}
			return commentOf(n.Content[i+1], path[1:])
		}
	}
	return ""
}

func TestSamples(t *testing.T) {
	for _, name := range []string{"wayside", "playground", "gateway", "conformance"} {
		if _, err := loadConfig(filepath.Join("..", "..", "configs", name+".yaml"), nil, environment()); err != nil {
			t.Errorf("%s: %v", name, err.(*fault).lines)
		}
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "512B": 512, "512KiB": 512 << 10, "1.5GiB": 3 << 29, "2MB": 2e6, "2kB": 2000, "2KB": 2000, "3 TiB": 3 << 40, "8191PiB": -1,
		"": -1, "1.2.3MB": -1, "9223372036854775807": 1<<63 - 1, "9223372036854775808": -1, "8388608TiB": -1, "0x10": -1, "1e3": -1, "∞": -1,
	} {
		got, err := parseSize(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("parseSize(%q) = %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "500ms": 500 * time.Millisecond, "90s": 90 * time.Second, "36h": 36 * time.Hour, "7d": 168 * time.Hour,
		"1h30m": 90 * time.Minute, "1.5s": 1500 * time.Millisecond, "": -1, "5": -1, "s": -1, "1h5": -1, "5us": -1, "106752d": -1, "106751d106751d": -1, "-1s": -1,
	} {
		got, err := parseDuration(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("parseDuration(%q) = %v, want %v", text, got, want)
		}
	}
}

// What is written for people reads back as the same value.
func TestUnitsReadBack(t *testing.T) {
	for _, n := range []int64{0, 1, 999, 1000, 1024, 1500, 5 << 20, 1 << 30, 2e9, 1<<40 + 1} {
		if got, err := parseSize(formatSize(n)); err != nil || got != n {
			t.Errorf("%d is written %q and read %d, %v", n, formatSize(n), got, err)
		}
	}
	for _, d := range []time.Duration{0, time.Millisecond, 90 * time.Second, 36 * time.Hour, 48 * time.Hour} {
		if got, err := parseDuration(formatDuration(d)); err != nil || got != d {
			t.Errorf("%v is written %q and read %v, %v", d, formatDuration(d), got, err)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"quota", "path", "when_full", "commit_delay"}
	for name, want := range map[string]string{
		"quota": "quota", "Quota": "quota", "qouta": "quota", "quotas": "quota", "pth": "path", "whenfull": "when_full", "commit-delay": "commit_delay",
		"x": "", "": "", "everything": "",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
