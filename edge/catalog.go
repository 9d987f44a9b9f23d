package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Catalog is what exists besides messages: tenants, namespaces, partition counts,
// schemas. All but the schemas is in memory, and each change is durable before it is
// answered.
type Catalog struct {
	values  Values
	looking chan struct{} // semaphore of those who look at schemas
	clock   func() time.Time

	change sync.Mutex // one change at a time, held over its commit

	mu         sync.RWMutex // leaf
	tenants    map[string]Tenant
	namespaces map[string][]byte
	parts      map[TopicName]int
	policies   map[string]*Policies // by namespace, or by a topic's base name
}

// Tenant is the top of a topic's name.
type Tenant struct {
	AdminRoles      []string `json:"adminRoles"`
	AllowedClusters []string `json:"allowedClusters"`
}

// Bounds of the catalog; each entry is held in memory.
const (
	maxTenants     = 1_000
	maxNamespaces  = 10_000
	maxPartitioned = 10_000
	maxPartitions  = 1_024
	maxPolicies    = 64 << 10 // bytes of a namespace's policies
)

// Keys of the catalog among the store's values.
const (
	keyBoots     = "catalog/boots"
	keyTenant    = "catalog/tenant/"
	keyNamespace = "catalog/namespace/"
	keyParts     = "catalog/partitions/"
	keySchema    = "catalog/schema/"
)

// loadCatalog reads everything, and makes public/default in a new store.
func loadCatalog(values Values, clock func() time.Time) (*Catalog, error) {
	c := &Catalog{
		values: values, clock: clock, looking: make(chan struct{}, 1),
		tenants: map[string]Tenant{}, namespaces: map[string][]byte{},
		parts: map[TopicName]int{}, policies: map[string]*Policies{},
	}
	var bad error
	err := values.ScanValues("catalog/", func(key string, value []byte) bool {
		bad = c.load(key, value)
		return bad == nil
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, err
	}
	if len(c.tenants) == 0 {
		err = c.ensureNamespace(context.Background(), "public", "public/default")
	}
	return c, err
}

func (c *Catalog) load(key string, value []byte) error {
	var err error
	switch {
	case strings.HasPrefix(key, keyTenant):
		var t Tenant
		err = json.Unmarshal(value, &t)
		c.tenants[key[len(keyTenant):]] = t
	case strings.HasPrefix(key, keyNamespace):
		c.namespaces[key[len(keyNamespace):]] = slices.Clone(value)
	case strings.HasPrefix(key, keyParts):
		var name TopicName
		if name, err = ParseTopicName(key[len(keyParts):]); err == nil {
			c.parts[name], err = strconv.Atoi(string(value))
		}
	case strings.HasPrefix(key, keyPolicies):
		err = c.loadPolicies(key[len(keyPolicies):], value)
	}
	if err != nil {
		return fmt.Errorf("value %q: %w", key, err)
	}
	return nil
}

// put makes a value durable, and visible by apply once it is, even if the caller has
// gone meanwhile. c.change is held.
func (c *Catalog) put(ctx context.Context, key string, value []byte, apply func()) error {
	err := wait(ctx, func(done func(error)) {
		c.values.PutValue(key, value, func(err error) {
			if err == nil {
				c.mu.Lock()
				apply()
				c.mu.Unlock()
			}
			done(err)
		})
	})
	if err != nil {
		return fmt.Errorf("%w: save %s: %w", ErrStorage, key, err)
	}
	return nil
}

// countBoot counts the starts of this store, for names that are never made twice.
func (c *Catalog) countBoot(ctx context.Context) (int64, error) {
	n := int64(0)
	err := c.values.ScanValues(keyBoots, func(_ string, value []byte) bool {
		n, _ = strconv.ParseInt(string(value), 10, 64)
		return false
	})
	if err != nil {
		return 0, err
	}
	err = wait(ctx, func(done func(error)) {
		c.values.PutValue(keyBoots, strconv.AppendInt(nil, n+1, 10), done)
	})
	return n, err
}

// Tenants lists the names, sorted.
func (c *Catalog) Tenants() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return sortedKeys(c.tenants)
}

// Tenant returns one tenant, or false.
func (c *Catalog) Tenant(name string) (Tenant, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.tenants[name]
	return t, ok
}

// PutTenant creates or changes a tenant. It may wait.
func (c *Catalog) PutTenant(ctx context.Context, name string, t Tenant) error {
	if !ValidPart(name) {
		return fmt.Errorf("%w: tenant %q", ErrName, name)
	}
	c.change.Lock()
	defer c.change.Unlock()
	if _, ok := c.Tenant(name); !ok && len(c.Tenants()) >= maxTenants {
		return fmt.Errorf("%w: %d tenants exist", ErrLimit, maxTenants)
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return c.put(ctx, keyTenant+name, raw, func() { c.tenants[name] = t })
}

// DeleteTenant removes a tenant without namespaces. It may wait.
func (c *Catalog) DeleteTenant(ctx context.Context, name string) error {
	c.change.Lock()
	defer c.change.Unlock()
	if _, ok := c.Tenant(name); !ok {
		return fmt.Errorf("%w: %s", ErrTenantNotFound, name)
	}
	if len(c.Namespaces(name)) > 0 {
		return fmt.Errorf("%w: The tenant still has active namespaces", ErrNotEmpty)
	}
	return c.put(ctx, keyTenant+name, nil, func() { delete(c.tenants, name) })
}

// Namespaces lists a tenant's namespaces as tenant/namespace, sorted.
func (c *Catalog) Namespaces(tenant string) []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	var names []string
	for ns := range c.namespaces {
		if strings.HasPrefix(ns, tenant+"/") {
			names = append(names, ns)
		}
	}
	slices.Sort(names)
	return names
}

// HasNamespace reports whether tenant/namespace exists.
func (c *Catalog) HasNamespace(ns string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, ok := c.namespaces[ns]
	return ok
}

// NamespaceData returns the policies that a namespace was created with, as JSON.
func (c *Catalog) NamespaceData(ns string) ([]byte, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	raw, ok := c.namespaces[ns]
	return raw, ok
}

// CreateNamespace makes tenant/namespace. It may wait.
func (c *Catalog) CreateNamespace(ctx context.Context, ns string, policies []byte) error {
	tenant, local, ok := strings.Cut(ns, "/")
	if !ok || !ValidPart(tenant) || !ValidPart(local) {
		return fmt.Errorf("%w: namespace %q", ErrName, ns)
	}
	if len(policies) > maxPolicies {
		return fmt.Errorf("%w: policies of %d bytes", ErrLimit, len(policies))
	}
	c.change.Lock()
	defer c.change.Unlock()
	if _, ok := c.Tenant(tenant); !ok {
		return fmt.Errorf("%w: %s", ErrTenantNotFound, tenant)
	}
	if c.HasNamespace(ns) {
		return fmt.Errorf("%w: namespace %s", ErrExists, ns)
	}
	c.mu.RLock()
	n := len(c.namespaces)
	c.mu.RUnlock()
	if n >= maxNamespaces {
		return fmt.Errorf("%w: %d namespaces exist", ErrLimit, n)
	}
	if policies == nil {
		policies = []byte("{}")
	}
	return c.put(ctx, keyNamespace+ns, policies, func() { c.namespaces[ns] = policies })
}

func (c *Catalog) deleteNamespace(ctx context.Context, ns string) error {
	c.change.Lock()
	defer c.change.Unlock()
	return c.put(ctx, keyNamespace+ns, nil, func() { delete(c.namespaces, ns) })
}

// ensureNamespace makes a namespace, and its tenant, where they are missing.
func (c *Catalog) ensureNamespace(ctx context.Context, tenant, ns string) error {
	if c.HasNamespace(ns) {
		return nil
	}
	if _, ok := c.Tenant(tenant); !ok {
		if err := c.PutTenant(ctx, tenant, Tenant{AdminRoles: []string{}, AllowedClusters: []string{}}); err != nil {
			return err
		}
	}
	if err := c.CreateNamespace(ctx, ns, nil); err != nil && !c.HasNamespace(ns) {
		return err
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
