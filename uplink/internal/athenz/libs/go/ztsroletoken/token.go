// Package ztsroletoken stands in for the role tokens of the Athenz libraries.
// Wayside offers no Athenz authentication, so every call reports zmssvctoken.ErrLeftOut.
package ztsroletoken

import (
	"time"

	"github.com/AthenZ/athenz/libs/go/zmssvctoken"
)

// RoleTokenOptions carries what the official client sets; nothing reads it.
type RoleTokenOptions struct {
	BaseZTSURL       string
	ProxyURL         string
	MinExpire        time.Duration
	MaxExpire        time.Duration
	PrefetchInterval time.Duration
	AuthHeader       string
	CACert           []byte
}

// RoleToken is a token that is renewed in the background.
type RoleToken interface {
	// StartPrefetcher begins to renew the token.
	StartPrefetcher() error
	// StopPrefetcher ends that.
	StopPrefetcher() error
	// RoleTokenValue returns the current token.
	RoleTokenValue() (string, error)
}

type leftOut struct{}

func (leftOut) StartPrefetcher() error          { return zmssvctoken.ErrLeftOut }
func (leftOut) StopPrefetcher() error           { return nil }
func (leftOut) RoleTokenValue() (string, error) { return "", zmssvctoken.ErrLeftOut }

// NewRoleToken returns a RoleToken whose calls report zmssvctoken.ErrLeftOut.
func NewRoleToken(tok zmssvctoken.Token, domain string, opts RoleTokenOptions) RoleToken {
	return leftOut{}
}

// NewRoleTokenFromCert returns a RoleToken whose calls report zmssvctoken.ErrLeftOut.
func NewRoleTokenFromCert(certFile, keyFile, domain string, opts RoleTokenOptions) RoleToken {
	return leftOut{}
}
