package uplink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/auth"
)

// provider makes the client's authentication, nil for none. The client's own short
// constructor for OAuth2 returns none on wrong parameters; this one says so.
func (a *Auth) provider() (pulsar.Authentication, error) {
	switch {
	case a.Token != nil:
		return pulsar.NewAuthenticationTokenFromSupplier(a.Token), nil
	case a.Basic != nil:
		return pulsar.NewAuthenticationBasic(a.Basic.User, a.Basic.Password)
	case a.OAuth2 != nil:
		return auth.NewAuthenticationOAuth2WithParams(map[string]string{
			auth.ConfigParamType:      auth.ConfigParamTypeClientCredentials,
			auth.ConfigParamIssuerURL: a.OAuth2.Issuer,
			auth.ConfigParamAudience:  a.OAuth2.Audience,
			auth.ConfigParamScope:     a.OAuth2.Scope,
			auth.ConfigParamKeyFile:   a.OAuth2.KeyFile,
		})
	case a.Certificate != nil:
		return pulsar.NewAuthenticationFromTLSCertSupplier(a.Certificate), nil
	}
	return nil, nil
}

// transport makes the TLS settings for a URL, nil for a plain one. The client's
// certificate is asked for with each handshake.
func (a *Auth) transport(url string) (*tls.Config, error) {
	if !strings.HasPrefix(url, "pulsar+ssl:") {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.Certificate != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.Certificate() }
	}
	if a.Roots == nil {
		return c, nil
	}
	pem, err := a.Roots()
	if err != nil {
		return nil, fmt.Errorf("read trusted certificates: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("trusted certificates: none found")
	}
	return c, nil
}
