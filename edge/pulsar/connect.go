package pulsar

// CONNECT (protocol version 0 on), AUTH_RESPONSE (14 on).
//
// The first command of a connection, answered by CONNECTED, or by ERROR with request
// id 2^64-1 and the end of the connection. The version spoken is the lower of the two
// sides'. proxy_to_broker_url is what clients send that were told to stay on the
// address that they dialled; this broker plays both parts and ignores it. A second
// CONNECT closes the connection.
//
// AUTH_RESPONSE answers an AUTH_CHALLENGE, which this broker does not send: it is
// refused as an answer to nothing.
//
// Deviations: of the feature flags, the one of
// replication is not told. What a client sends while it is being authenticated is
// not read until that is decided, where the reference closes the connection.

import (
	"context"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"wayside/wire"
	"wayside/wire/pulsarpb"
)

// noRequest is the request id of what is not the answer to a request.
const noRequest = uint64(math.MaxUint64)

func (s *session) handleConnect(c *pulsarpb.BaseCommand) error {
	if s.stage.Load() != stageStart {
		return breach("a second CONNECT")
	}
	m := c.GetConnect()
	s.client = m.GetClientVersion()
	if len(s.client) > maxName {
		s.client = s.client[:maxName]
	}
	s.protocol = min(max(m.GetProtocolVersion(), 0), latestProtocol)
	s.java = strings.HasPrefix(s.client, "Pulsar-Java")
	if s.srv.opts.Authenticator != nil {
		var err error
		if s.role, err = s.authenticate(s.credentials(m)); err != nil {
			s.complain("client refused: authentication failed", err)
			s.refuse(pulsarpb.ServerError_AuthenticationError, "Failed to authenticate")
			return errRefused
		}
	}
	s.admit()
	return nil
}

func (s *session) authenticate(c Credentials) (role string, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.srv.opts.HandshakeTimeout)
	defer cancel()
	return s.srv.opts.Authenticator.Authenticate(ctx, c)
}

func (s *session) credentials(m *pulsarpb.CommandConnect) Credentials {
	method := m.GetAuthMethodName()
	if method == "" && m.AuthMethod != nil {
		method = oldAuthMethod(m.GetAuthMethod())
	}
	c := Credentials{Method: method, Data: m.GetAuthData(), OriginalPrincipal: m.GetOriginalPrincipal(), Address: s.address}
	if s.tls != nil {
		state := s.tls.ConnectionState()
		c.TLS = &state
	}
	return c
}

// oldAuthMethod names the methods that once were an enumeration.
func oldAuthMethod(m pulsarpb.AuthMethod) string {
	switch m {
	case pulsarpb.AuthMethod_AuthMethodYcaV1:
		return "ycav1"
	case pulsarpb.AuthMethod_AuthMethodAthens:
		return "athens"
	}
	return "none"
}

// refuse tells that the client is not let in, in place of the answer that it expects.
func (s *session) refuse(code pulsarpb.ServerError, text string) {
	s.out.reply(&pulsarpb.CommandError{RequestId: proto.Uint64(noRequest), Error: code.Enum(), Message: proto.String(text)})
}

// admit ends the handshake.
func (s *session) admit() {
	s.src.until(time.Time{})
	s.in.SetLimit(wire.MaxFrame(s.srv.opts.MaxMessageSize))
	s.out.reply(&pulsarpb.CommandConnected{
		ServerVersion:   proto.String(s.srv.opts.ServerVersion),
		ProtocolVersion: proto.Int32(s.protocol),
		MaxMessageSize:  proto.Int32(int32(s.srv.opts.MaxMessageSize)),
		FeatureFlags: &pulsarpb.FeatureFlags{
			SupportsTopicWatchers:                             proto.Bool(true),
			SupportsGetPartitionedMetadataWithoutAutoCreation: proto.Bool(true),
		},
	})
	s.stage.Store(stageServing) // from now on there may be PINGs
}

func (s *session) handleAuthResponse(c *pulsarpb.BaseCommand) error {
	if s.stage.Load() != stageServing {
		return breach("AUTH_RESPONSE before login")
	}
	if c.GetAuthResponse().GetResponse() == nil {
		return breach("AUTH_RESPONSE without a response")
	}
	s.complain("client refused: AUTH_RESPONSE that nobody asked for", nil)
	s.refuse(pulsarpb.ServerError_AuthenticationError, "Failed to authenticate")
	return errRefused
}
