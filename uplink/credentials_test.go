package uplink

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wayside/edge/edgetest"
)

// selfSigned makes a certificate for the loopback, as key pair and as PEM.
func selfSigned(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stub"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// tlsRig is a rig whose cloud speaks TLS, and wants a certificate if clients is set.
func tlsRig(t *testing.T, clients bool, change func(*Options, tls.Certificate, []byte)) *rig {
	cert, roots := selfSigned(t)
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	if clients {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(roots)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, cloud: startStubOn(t, l, "pulsar+ssl"), store: edgetest.NewMemStore()}
	o := testOptions(r.cloud.url(), Route{From: "in-*", To: "out-{1}"})
	change(&o, cert, roots)
	r.start(o)
	t.Cleanup(r.stop)
	return r
}

func TestTokenOverTLS(t *testing.T) {
	var asked atomic.Int64
	r := tlsRig(t, false, func(o *Options, _ tls.Certificate, roots []byte) {
		o.Auth.Roots = func() ([]byte, error) { return roots, nil }
		o.Auth.Token = func() (string, error) { return fmt.Sprint("token-", asked.Add(1)), nil }
	})
	r.publish("in-a", 0, 3)
	r.expect("out-a", 3)
	r.cloud.cut()
	r.publish("in-a", 3, 6)
	r.expect("out-a", 6)
	r.cloud.set(func() {
		// Asked again for the second connection: a renewed token takes effect.
		if n := len(r.cloud.shown); n < 2 || r.cloud.shown[0] == r.cloud.shown[n-1] || !strings.HasPrefix(r.cloud.shown[0], "token token-") {
			t.Errorf("%q", r.cloud.shown)
		}
	})
}

func TestClientCertificate(t *testing.T) {
	r := tlsRig(t, true, func(o *Options, cert tls.Certificate, roots []byte) {
		o.Auth.Roots = func() ([]byte, error) { return roots, nil }
		o.Auth.Certificate = func() (*tls.Certificate, error) { return &cert, nil }
	})
	r.publish("in-a", 0, 3)
	r.expect("out-a", 3)
}

// A cloud that cannot prove who it is gets nothing, and status says why.
func TestStrangerIsNotTrusted(t *testing.T) {
	r := tlsRig(t, false, func(*Options, tls.Certificate, []byte) {})
	r.publish("in-a", 0, 1)
	s := r.status("in-a", func(s TopicStatus) bool { return s.State.trouble() })
	if want := "the cloud cannot be reached: tls: failed to verify certificate: x509: certificate signed by unknown authority"; s.Reason != want {
		t.Errorf("%+v", s)
	}
}

// Refused credentials are told apart from no network.
func TestDeniedLogin(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Auth.Basic = &Basic{"me", "wrong"} })
	r.cloud.set(func() { r.cloud.deny = "Failed to authenticate" })
	r.publish("in-a", 0, 1)
	s := r.status("in-a", inState(Refused))
	if s.Reason != "the cloud does not accept the credentials (Failed to authenticate)" {
		t.Errorf("%+v", s)
	}
	r.cloud.set(func() { r.cloud.deny = "" })
	r.expect("out-a", 1)
	if got := r.cloud.shown[len(r.cloud.shown)-1]; got != "basic me:wrong" {
		t.Errorf("%q", got)
	}
}

func TestCredentialsThatCannotBe(t *testing.T) {
	for name, a := range map[string]Auth{
		"no user":     {Basic: &Basic{}},
		"no password": {Basic: &Basic{User: "me"}},
	} {
		if p, err := a.provider(); err == nil {
			t.Errorf("%s: %v", name, p)
		}
	}
	if p, err := (&Auth{OAuth2: &OAuth2{Issuer: "http://127.0.0.1:1"}}).provider(); p == nil || err != nil {
		t.Errorf("OAuth2: %v, %v", p, err)
	}
	for name, a := range map[string]Auth{
		"unreadable": {Roots: func() ([]byte, error) { return nil, errors.New("no such file") }},
		"no PEM":     {Roots: func() ([]byte, error) { return []byte("x"), nil }},
	} {
		if c, err := a.transport("pulsar+ssl://c:1"); err == nil {
			t.Errorf("%s: %v", name, c)
		}
	}
	if c, err := (&Auth{}).transport("pulsar://c:1"); c != nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}
