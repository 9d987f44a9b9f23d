package admin

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"wayside/edge"
)

// Clients stay on the address that they dialled, unless another one is advertised.
func TestAddresses(t *testing.T) {
	local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 8080}
	for _, test := range []struct {
		name   string
		host   string
		change func(*Options)
		want   lookupData
	}{
		{"by name", "gateway.lan:8080", nil, lookupData{BrokerURL: "pulsar://gateway.lan:6650", HTTPURL: "http://gateway.lan:8080"}},
		{"forwarded port", "gateway.lan:9080", nil, lookupData{BrokerURL: "pulsar://gateway.lan:6650", HTTPURL: "http://gateway.lan:9080"}},
		{"default port", "gateway.lan", nil, lookupData{BrokerURL: "pulsar://gateway.lan:6650", HTTPURL: "http://gateway.lan:8080"}},
		{"IPv6", "[fe80::1]:8080", nil, lookupData{BrokerURL: "pulsar://[fe80::1]:6650", HTTPURL: "http://[fe80::1]:8080"}},
		{"IPv6 without port", "[fe80::1]", nil, lookupData{BrokerURL: "pulsar://[fe80::1]:6650", HTTPURL: "http://[fe80::1]:8080"}},
		{"no host", "", nil, lookupData{BrokerURL: "pulsar://10.0.0.9:6650", HTTPURL: "http://10.0.0.9:8080"}},
		{"advertised host", "gateway.lan:8080", func(o *Options) { o.Advertised = "edge.example" },
			lookupData{BrokerURL: "pulsar://edge.example:6650", HTTPURL: "http://edge.example:8080"}},
		{"advertised host and port", "gateway.lan:8080", func(o *Options) { o.Advertised = "edge.example:16650" },
			lookupData{BrokerURL: "pulsar://edge.example:16650", HTTPURL: "http://edge.example:8080"}},
		{"advertised IPv6", "gateway.lan:8080", func(o *Options) { o.Advertised = "fe80::2" },
			lookupData{BrokerURL: "pulsar://[fe80::2]:6650", HTTPURL: "http://[fe80::2]:8080"}},
		{"advertised IPv6 in brackets", "gateway.lan:8080", func(o *Options) { o.Advertised = "[fe80::2]" },
			lookupData{BrokerURL: "pulsar://[fe80::2]:6650", HTTPURL: "http://[fe80::2]:8080"}},
		{"advertised host and port, TLS too", "gateway.lan:8443", func(o *Options) { o.TLS, o.PulsarTLSPort, o.Advertised = true, 6651, "edge.example:16650" },
			lookupData{BrokerURL: "pulsar://edge.example:16650", BrokerURLTLS: "pulsar+ssl://edge.example:6651", HTTPURLTLS: "https://edge.example:8443"}},
		{"advertised URL", "gateway.lan:8080", func(o *Options) { o.Advertised = "pulsar://edge.example:16650" },
			lookupData{BrokerURL: "pulsar://edge.example:16650", HTTPURL: "http://gateway.lan:8080"}},
		{"TLS", "gateway.lan:8443", func(o *Options) { o.TLS, o.PulsarTLSPort = true, 6651 },
			lookupData{BrokerURL: "pulsar://gateway.lan:6650", BrokerURLTLS: "pulsar+ssl://gateway.lan:6651", HTTPURLTLS: "https://gateway.lan:8443"}},
		{"TLS alone, advertised", "gateway.lan:8443", func(o *Options) { o.TLS, o.PulsarPort, o.Advertised = true, 0, "pulsar+ssl://edge.example:6651" },
			lookupData{BrokerURLTLS: "pulsar+ssl://edge.example:6651", HTTPURLTLS: "https://gateway.lan:8443"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, _ := newServer(t, func(o *Options, _ *edge.Options) {
				if test.change != nil {
					test.change(o)
				}
			})
			r := httptest.NewRequest(http.MethodGet, "/lookup/v2/topic/persistent/public/default/x", nil)
			r = r.WithContext(contextWith(r, local))
			r.Host = test.host
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			var got lookupData
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			test.want.NativeURL = test.want.BrokerURL
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestWithoutAutoCreation(t *testing.T) {
	server, _ := newServer(t, func(_ *Options, eo *edge.Options) { eo.AutoCreate = false })
	for _, test := range []struct {
		method, path string
		status       int
		answer       string
	}{
		{"GET", "/lookup/v2/topic/persistent/public/default/y", 404, `{"reason":"Topic not found persistent://public/default/y"}`},
		{"GET", "/admin/v2/persistent/public/default/y/partitions?checkAllowAutoCreation=true", 404, `{"reason":"Topic persistent://public/default/y not found"}`},
		{"PUT", "/admin/v2/persistent/public/default/y/subscription/s", 412, `{"reason":"Topic does not exist and cannot be auto-created"}`},
		{"PUT", "/admin/v2/persistent/public/default/y", 204, ""},
		{"PUT", "/admin/v2/persistent/public/default/y/subscription/s", 204, ""},
		{"GET", "/admin/v2/persistent/pulsar/system/transaction_coordinator_assign/partitions?checkAllowAutoCreation=true", 200, `{"partitions":1,"deleted":false}`},
		{"PUT", "/admin/v2/persistent/public/default/p/partitions", 406, `{"reason":"Number of partitions should be more than 0"}`},
	} {
		if got := ask(server, test.method, test.path, "", ""); got.Code != test.status || got.Body.String() != test.answer {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, got.Code, got.Body, test.status, test.answer)
		}
	}
}

func contextWith(r *http.Request, local net.Addr) context.Context {
	return context.WithValue(r.Context(), http.LocalAddrContextKey, local)
}

func TestRuntimeConfiguration(t *testing.T) {
	server, _ := newServer(t, func(o *Options, eo *edge.Options) { o.Cluster, eo.MaxMessageSize = "gateway", 1<<20 })
	var got map[string]string
	if err := json.Unmarshal(answerOf(t, server, "/admin/v2/brokers/configuration/runtime"), &got); err != nil {
		t.Fatal(err)
	}
	if got["clusterName"] != "gateway" || got["maxMessageSize"] != "1048576" || got["allowAutoTopicCreation"] != "true" {
		t.Errorf("%v", got)
	}
}
