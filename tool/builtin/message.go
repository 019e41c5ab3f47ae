package builtin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/url"
	"strings"
	"time"

	"raddle.dev/tool"
)

const twilioBase = "https://api.twilio.com"

var messageTools = []definition{
	{
		name:   "send_mail",
		about:  "Send an e-mail.",
		effect: tool.Dangerous,
		params: []param{
			{name: "recipient", required: true, about: "Address of the recipient"},
			{name: "subject", required: true, about: "Subject"},
			{name: "body", required: true, about: "Text of the message"},
		},
		touches: func(h Host, _ arguments) (tool.Touch, error) {
			s, err := h.mailServer()
			if err != nil {
				return tool.Touch{}, err
			}
			return tool.Touch{Network: []string{s.addr}}, nil
		},
		run: sendMail,
	},
	{
		name:   "send_twilio",
		about:  "Send a text message, or a WhatsApp message to a number that begins with whatsapp:.",
		effect: tool.Dangerous,
		params: []param{
			{name: "to_number", required: true, about: "Number with + and the code of the country"},
			{name: "message", required: true, about: "Text of the message"},
		},
		touches: serviceTouches("send_twilio", twilioBase),
		run:     sendTwilio,
	},
}

// A mailServer is the server that accepts mail.
type mailServer struct {
	host, addr     string
	encrypted      bool // from the first byte
	user, password string
}

func (h Host) mailServer() (mailServer, error) {
	text := h.envValue("EMAIL_SMTP_ADDR")
	s := mailServer{user: h.envValue("EMAIL_SMTP_USER"), password: h.envValue("EMAIL_SMTP_PASS")}
	if text == "" || s.user == "" || s.password == "" {
		return s, errors.New("mail needs the environment variables EMAIL_SMTP_ADDR, EMAIL_SMTP_USER and EMAIL_SMTP_PASS")
	}
	if !strings.Contains(text, "://") {
		text = "smtp://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return s, errors.New("EMAIL_SMTP_ADDR must look like smtp://host:587 or smtps://host:465")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"smtp": "587", "smtps": "465"}[u.Scheme]
	}
	s.host, s.addr, s.encrypted = u.Hostname(), net.JoinHostPort(u.Hostname(), port), u.Scheme == "smtps"
	return s, nil
}

func sendMail(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	s, err := h.mailServer()
	if err != nil {
		return tool.Result{}, err
	}
	from, err := mail.ParseAddress(s.user)
	if err != nil {
		return tool.FailedResult("EMAIL_SMTP_USER is not a mail address"), nil
	}
	from.Name = h.envValue("EMAIL_SENDER_NAME")
	to, err := mail.ParseAddress(a["recipient"])
	if err != nil {
		return tool.FailedResult("%q is not a mail address", a["recipient"]), nil
	}
	if strings.ContainsAny(a["subject"], "\r\n") {
		return tool.FailedResult("a subject is one line"), nil
	}
	if err := s.sendMessage(ctx, from.Address, to.Address, h.formatMessage(from, to, a)); err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, context.Cause(ctx)
		}
		return tool.FailedResult("the mail was not sent: %v", err), nil
	}
	return tool.TextResult("Email sent to " + to.Address), nil
}

// formatMessage returns a message with its header.
func (h Host) formatMessage(from, to *mail.Address, a arguments) string {
	var b strings.Builder
	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\n", from, to, mime.QEncoding.Encode("utf-8", a["subject"]), h.currentTime().Format(time.RFC1123Z))
	b.WriteString("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(a["body"])) // a strings.Builder takes everything
	_ = w.Close()
	return b.String()
}

// sendMessage sends a message to the server. When ctx ends, it closes the connection.
func (s mailServer) sendMessage(ctx context.Context, from, to, letter string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	if s.encrypted {
		conn = tls.Client(conn, &tls.Config{ServerName: s.host})
	}
	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return err
	}
	if ok, _ := c.Extension("STARTTLS"); ok && !s.encrypted {
		if err := c.StartTLS(&tls.Config{ServerName: s.host}); err != nil {
			return err
		}
	}
	// The password is sent over an encrypted connection only, or to this machine.
	if err := c.Auth(smtp.PlainAuth("", s.user, s.password, s.host)); err != nil {
		return err
	}
	if err := c.Mail(from); err != nil {
		return err
	}
	if err := c.Rcpt(to); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(letter)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return c.Quit()
}

func sendTwilio(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	sid := h.envValue("TWILIO_ACCOUNT_SID")
	token := h.envValue("TWILIO_AUTH_TOKEN")
	from := h.envValue("TWILIO_FROM_NUMBER")
	if sid == "" || token == "" || from == "" {
		return tool.FailedResult("messages need the environment variables TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN and TWILIO_FROM_NUMBER"), nil
	}
	if strings.HasPrefix(a["to_number"], "whatsapp:") && !strings.HasPrefix(from, "whatsapp:") {
		from = "whatsapp:" + from
	}
	_, failure, bad, err := h.askService(ctx, request{
		tool:     "send_twilio",
		base:     twilioBase,
		path:     "/2010-04-01/Accounts/" + url.PathEscape(sid) + "/Messages.json",
		kind:     "application/x-www-form-urlencoded",
		user:     sid,
		password: token,
		body:     url.Values{"From": {from}, "To": {a["to_number"]}, "Body": {a["message"]}}.Encode(),
	})
	if bad || err != nil {
		return failure, err
	}
	return tool.TextResult("Message sent to " + a["to_number"]), nil
}
