package netproxy

import (
	"net"
	"net/url"
)

// loopbackHosts are reached without the proxy: the box has a loopback of its own.
const loopbackHosts = "localhost,127.0.0.1,::1"

// ListVariables returns the variables by which programs find a proxy that listens at an address, such as
// 127.0.0.1:3128. secret is that of the proxy; empty: none. The variables must replace those of the same names. These
// programs read them:
//
//   - curl, wget, git, python (urllib, requests, httpx), Go, Ruby, PHP, .NET, Rust's reqwest, apt: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, some of
//     them (curl for http, wget) only in lower case
//   - node: the same, since versions 22.21 and 24 if NODE_USE_ENV_PROXY is 1
//   - npm, pnpm, pip, cargo, yarn: the same, but files of theirs come before; their own variables come before these files
//   - programs on the virtual machine of Java: nothing but properties, which JAVA_TOOL_OPTIONS sets. The machine says so on stderr. Gradle reads
//     the name and the password from them; Java's own client of HTTP does not
//   - rsync: RSYNC_PROXY, for ports that a rule names
//
// ALL_PROXY is an address of HTTP, although the proxy speaks SOCKS5: httpx, on which the libraries of OpenAI and
// Anthropic stand, fails with the address of a SOCKS proxy if a package is missing. git, npm and cargo take the proxy
// of a ~/.gitconfig (http.proxy) before HTTPS_PROXY.
func ListVariables(address, secret string) []string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	proxy := url.URL{Scheme: "http", Host: address}
	java := "-Dhttp.proxyHost=" + host + " -Dhttp.proxyPort=" + port + " -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port
	if secret != "" {
		proxy.User = url.UserPassword("raddle", secret)
		java += " -Djdk.http.auth.tunneling.disabledSchemes="
		for _, scheme := range []string{"http", "https"} {
			java += " -D" + scheme + ".proxyUser=raddle -D" + scheme + ".proxyPassword=" + secret
		}
	}
	at := proxy.String()
	variables := []string{"NODE_USE_ENV_PROXY=1", "JAVA_TOOL_OPTIONS=" + java, "RSYNC_PROXY=" + at[len("http://"):]}
	for _, name := range []string{
		"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
		"npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "PIP_PROXY", "CARGO_HTTP_PROXY",
	} {
		variables = append(variables, name+"="+at)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy", "npm_config_noproxy"} {
		variables = append(variables, name+"="+loopbackHosts)
	}
	return variables
}
