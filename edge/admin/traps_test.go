package admin

import (
	"fmt"
	"net/http"
	"testing"
)

// Traps of protocol.md, section 4, into which the admin interface could fall.
// ../pulsar/testdata/traps.txt lists all of them.

func TestTrap87WhatIsNotSetIsNotMissing(t *testing.T) {
	server, _ := newServer(t)
	open(t, server, "persistent://public/default/t")
	for _, path := range []string{
		"persistent/public/default/t/retention", "persistent/public/default/t/messageTTL", "persistent/public/default/t/maxProducers",
		"persistent/public/default/t/dispatchRate", "namespaces/public/default/retention", "namespaces/public/default/messageTTL",
	} {
		if got := ask(server, http.MethodGet, "/admin/v2/"+path, "", ""); got.Code != http.StatusOK || got.Body.Len() != 0 {
			t.Errorf("%s: %d %q", path, got.Code, got.Body)
		}
	}
}

func TestTrap88NullsInPoliciesAreNotSet(t *testing.T) {
	server, _ := newServer(t)
	mustDo(t, server, http.MethodPut, "/admin/v2/namespaces/public/nulls", `{"bundles":{"boundaries":null,"numBundles":2},
		"backlog_quota_map":null,"retention_policies":null,"message_ttl_in_seconds":null,"topicDispatchRate":null,"auth_policies":null,
		"schema_compatibility_strategy":null,"autoTopicCreationOverride":null,"deduplicationEnabled":null}`, http.StatusNoContent)
	if got := ask(server, http.MethodGet, "/admin/v2/namespaces/public/nulls/retention", "", ""); got.Code != http.StatusOK || got.Body.Len() != 0 {
		t.Errorf("%d %q", got.Code, got.Body)
	}
}

func TestTrap89TheTTLOfATopicIsAParameter(t *testing.T) {
	server, _ := newServer(t)
	open(t, server, "persistent://public/default/t")
	const path = "/admin/v2/persistent/public/default/t/messageTTL"
	mustDo(t, server, http.MethodPost, path+"?messageTTL=60", "", http.StatusNoContent)
	if got := ask(server, http.MethodGet, path, "", ""); got.Body.String() != "60" {
		t.Errorf("%d %q", got.Code, got.Body)
	}
}

func TestTrap90APeekBeyondTheEndIsNotFound(t *testing.T) {
	server, _ := newServer(t)
	topic := open(t, server, "persistent://public/default/t")
	mustDo(t, server, http.MethodPut, "/admin/v2/persistent/public/default/t/subscription/s", `"earliest"`, http.StatusNoContent)
	produce(t, topic, "maker", 0, entryOf(t, []byte("one"), nil), entryOf(t, []byte("two"), nil)).Close(nil)
	for n, want := range map[int]int{1: http.StatusOK, 2: http.StatusOK, 3: http.StatusNotFound, 1000: http.StatusNotFound} {
		got := ask(server, http.MethodGet, fmt.Sprintf("/admin/v2/persistent/public/default/t/subscription/s/position/%d", n), "", "")
		if got.Code != want {
			t.Errorf("position %d: %d", n, got.Code)
		}
	}
}
