package edge

import (
	"fmt"
	"slices"
)

// What policies say of single messages, of who publishes them and of who subscribes
// (protocol 3.11). What is refused is refused alone, its client goes on.

// needsEncryption reports whether what is not encrypted end to end is refused.
func (p *Policies) needsEncryption() bool {
	return p.EncryptionRequired != nil && *p.EncryptionRequired
}

// delays reports whether messages wait for their time.
func (p *Policies) delays() bool { return p.DelayedDelivery == nil || p.DelayedDelivery.Active }

// admits says why a producer is not let in.
func (p *Policies) admits(t TopicName, o *ProducerOptions) error {
	if p.needsEncryption() && !o.Encrypted && !o.Own {
		return fmt.Errorf("%w: Encryption is required in %s", ErrBadRequest, t)
	}
	return nil
}

// takes says why a message is not taken. A chunk may be as large as any.
func (p *Policies) takes(m *Message) error {
	f, d := &m.Facts, p.DelayedDelivery
	switch {
	case p.needsEncryption() && !f.Encrypted:
		return fmt.Errorf("%w: Messages must be encrypted", ErrBadMessage)
	case p.MessageSize != nil && *p.MessageSize > 0 && int64(len(m.Data)) > *p.MessageSize && f.Chunk.Of == 0:
		return fmt.Errorf("%w: Exceed maximum message size", ErrNotAllowed)
	case d != nil && d.Active && d.Most > 0 && f.DeliverAt-f.Publish > d.Most:
		return fmt.Errorf("%w: Exceeds max allowed delivery delay of %d milliseconds", ErrNotAllowed, d.Most)
	}
	return nil
}

// enables says why a type of subscription is not allowed.
func (p *Policies) enables(t TopicName, o *SubscribeOptions) error {
	if p.SubscriptionTypes != nil && !o.Own && o.Kind.valid() && !slices.Contains(*p.SubscriptionTypes, o.Kind.String()) {
		text := fmt.Sprintf("Topic[{%s}] doesn't support %s sub type!", t, o.Kind) // the reference's own words
		return fmt.Errorf("%w: %s", ErrNotAllowed, text)
	}
	return nil
}

// adoptEncryption lets those go who may not publish any more: their clients come back and
// are told why (watched on 4.0.7).
func (t *Topic) adoptEncryption() {
	t.mu.Lock()
	defer t.mu.Unlock()
	rules := t.policies.Load()
	for _, p := range t.allProducersLocked() {
		if err := rules.admits(t.name, &p.opts); err != nil {
			t.kickLocked(p, err)
		}
	}
}
