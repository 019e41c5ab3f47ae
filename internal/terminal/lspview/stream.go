package lspview

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// longestMessage is the size in bytes above which a message is refused.
const longestMessage = 64 << 20

// frames is how messages of the Language Server Protocol are written one after the other.
type frames struct{}

// WriteObject writes one message.
func (frames) WriteObject(w io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return err
}

// ReadObject reads one message whole, also where white space follows its value. Names of headers may be written in any
// case, and all but the length are ignored.
func (frames) ReadObject(r *bufio.Reader, message any) error {
	length := -1
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			if length >= 0 {
				break
			}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(name, "Content-Length") {
			continue
		}
		if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil || length < 0 || length > longestMessage {
			return fmt.Errorf("the length of a message is %q; it must be a number up to %d", value, longestMessage)
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return err
	}
	return json.Unmarshal(body, message)
}
