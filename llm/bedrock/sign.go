package bedrock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// serviceName is that of Bedrock in signatures.
const serviceName = "bedrock"

// A signer signs requests with the credentials of an account.
type signer struct {
	region      string
	credentials func(ctx context.Context) (Credentials, error)
}

// sign signs a request and returns the secrets of its credentials, which AWS quotes when it refuses a signature.
func (s *signer) sign(r *http.Request) (secrets []string, err error) {
	c, err := s.credentials(r.Context())
	if err != nil {
		return nil, err
	}
	secrets = []string{c.Secret, c.Token}
	body, err := r.GetBody()
	if err != nil {
		return secrets, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		return secrets, err
	}
	keys := aws.Credentials{AccessKeyID: c.KeyID, SecretAccessKey: c.Secret, SessionToken: c.Token}
	return secrets, v4.NewSigner().SignHTTP(r.Context(), keys, r, hex.EncodeToString(sum.Sum(nil)), serviceName, s.region, time.Now())
}
