// Package zmssvctoken stands in for the service tokens of the Athenz libraries.
// Wayside offers no Athenz authentication, so every call reports ErrLeftOut.
package zmssvctoken

import "errors"

// ErrLeftOut says that this build has no Athenz support.
var ErrLeftOut = errors.New("athenz authentication is left out of this build")

// Token is a service token.
type Token interface {
	// Value returns the signed text of the token, or ErrLeftOut.
	Value() (string, error)
}

// TokenBuilder makes service tokens.
type TokenBuilder interface {
	// Token returns the token that is built.
	Token() Token
}

// NewTokenBuilder returns ErrLeftOut.
func NewTokenBuilder(domain, name string, privateKeyPEM []byte, keyVersion string) (TokenBuilder, error) {
	return nil, ErrLeftOut
}
