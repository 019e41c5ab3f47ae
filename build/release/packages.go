package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A packedFile is a file of a package.
type packedFile struct {
	name    string
	content []byte
	program bool // it can be run
}

// A platform is one of a release, as npm and PyPI name it.
type platform struct {
	os, cpu string // of npm
	wheel   string // tags of PyPI
}

// registryPlatforms are the platforms by the names that Go has for them. The programs are static, and run on each Linux
// with either C library.
var registryPlatforms = map[string]platform{
	"linux/amd64":   {"linux", "x64", "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"},
	"linux/arm64":   {"linux", "arm64", "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64"},
	"darwin/amd64":  {"darwin", "x64", "macosx_12_0_x86_64"},
	"darwin/arm64":  {"darwin", "arm64", "macosx_12_0_arm64"},
	"windows/amd64": {"win32", "x64", "win_amd64"},
	"windows/arm64": {"win32", "arm64", "win_arm64"},
}

const (
	homepage    = "https://raddle.dev"
	description = "Run agents that never lose their place"
	license     = "Apache-2.0"
)

//go:embed npm/raddle.js
var starter []byte

// writePackages writes the packages of npm and PyPI that carry a program for a platform. when is the time of their files,
// so that the same program makes the same packages.
func writePackages(program, goos, goarch, version, dir string, when time.Time) error {
	p, ok := registryPlatforms[goos+"/"+goarch]
	if !ok {
		return fmt.Errorf("there are no packages for %s/%s", goos, goarch)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	name := "raddle"
	if goos == "windows" {
		name = "raddle.exe"
	}
	return errors.Join(
		writePlatformNPM(p, name, content, version, dir, when),
		writeWheel(p, name, content, version, dir, when),
	)
}

func writePlatformNPM(p platform, name string, content []byte, version, dir string, when time.Time) error {
	full := npmName() + "-" + p.os + "-" + p.cpu
	manifest := map[string]any{
		"name": full, "version": version, "description": description + " (" + p.os + ", " + p.cpu + ")",
		"homepage": homepage, "license": license, "os": []string{p.os}, "cpu": []string{p.cpu}, "preferUnplugged": true,
	}
	return writeNPM(full, version, dir, when, manifest, []packedFile{
		{name: "bin/" + name, content: content, program: true},
		{name: markPlace, content: []byte(makeMark("npm"))},
	})
}

// writeMainNPM writes the package that people install: it starts the program of the package for their platform.
func writeMainNPM(version, dir string, when time.Time) error {
	optional := map[string]string{}
	for _, p := range registryPlatforms {
		optional[npmName()+"-"+p.os+"-"+p.cpu] = version
	}
	manifest := map[string]any{
		"name": npmName(), "version": version, "description": description, "homepage": homepage, "license": license,
		"bin": map[string]string{"raddle": "bin/raddle.js"}, "optionalDependencies": optional, "engines": map[string]string{"node": ">=18"},
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	return writeNPM(npmName(), version, dir, when, manifest, []packedFile{{name: "bin/raddle.js", content: starter, program: true}, {name: "README.md", content: readme}})
}

// writeNPM writes a package as npm pack does.
func writeNPM(name, version, dir string, when time.Time, manifest map[string]any, files []packedFile) error {
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	terms, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	files = append([]packedFile{{name: "package.json", content: append(text, '\n')}, {name: "LICENSE", content: terms}}, files...)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range files {
		mode := int64(0o644)
		if f.program {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Name: "package/" + f.name, Mode: mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg, ModTime: when}); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), z.Close(), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	flat := strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
	return os.WriteFile(filepath.Join(dir, flat+"-"+version+".tgz"), out.Bytes(), 0o644)
}

// preRelease matches what follows the dash of the versions that PyPI can have.
var preRelease = regexp.MustCompile(`^(alpha|beta|rc|dev)\.([0-9]+)$`)

// pypiVersion returns a version such as 1.2.3-rc.1 as PyPI writes it: 1.2.3rc1.
func pypiVersion(version string) (string, error) {
	base, pre, has := strings.Cut(version, "-")
	if !has {
		return base, nil
	}
	m := preRelease.FindStringSubmatch(pre)
	if m == nil {
		return "", fmt.Errorf("PyPI has no version like %s: after the dash may be alpha.N, beta.N, rc.N or dev.N", version)
	}
	return base + map[string]string{"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}[m[1]] + m[2], nil
}

// writeWheel writes the wheel with a program: pip puts it into the directory of programs of its environment.
func writeWheel(p platform, name string, content []byte, version, dir string, when time.Time) error {
	version, err := pypiVersion(version)
	if err != nil {
		return err
	}
	terms, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	stem := strings.ReplaceAll(strings.ToLower(pypiName()), "-", "_") + "-" + version
	info := stem + ".dist-info/"
	tags := ""
	for tag := range strings.SplitSeq(p.wheel, ".") {
		tags += "Tag: py3-none-" + tag + "\n"
	}
	files := []packedFile{
		{name: stem + ".data/scripts/" + name, content: content, program: true},
		{name: stem + ".data/data/" + markPlace, content: []byte(makeMark("pip"))},
		{name: info + "METADATA", content: fmt.Appendf(nil, "Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\nLicense-Expression: %s\nLicense-File: LICENSE\nProject-URL: Homepage, %s\n", pypiName(), version, description, license, homepage)},
		{name: info + "WHEEL", content: []byte("Wheel-Version: 1.0\nGenerator: raddle\nRoot-Is-Purelib: false\n" + tags)},
		{name: info + "licenses/LICENSE", content: terms},
	}
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.content)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.content))
	}
	record.WriteString(info + "RECORD,,\n")
	files = append(files, packedFile{name: info + "RECORD", content: []byte(record.String())})
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		h.SetMode(0o644)
		if f.program {
			h.SetMode(0o755)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := errors.Join(z.Close(), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, stem+"-py3-none-"+p.wheel+".whl"), out.Bytes(), 0o644)
}
