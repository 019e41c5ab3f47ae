package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// writeBill writes the software bill of materials of a Go program, as CycloneDX JSON: the
// modules that the linker has put into it, with their checksums as the Go tool knows them.
func writeBill(program, file string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	component := func(path, version, sum string) cyclonedx.Component {
		purl := "pkg:golang/" + path + "@" + version
		c := cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl}
		if sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
		}
		return c
	}
	bom := cyclonedx.NewBOM()
	subject := component(info.Main.Path, info.Main.Version, "")
	subject.Type = cyclonedx.ComponentTypeApplication
	standard := component("std", info.GoVersion, "")
	bom.Metadata = &cyclonedx.Metadata{Component: &subject}
	parts, refs := []cyclonedx.Component{standard}, []string{standard.BOMRef}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component(m.Path, m.Version, m.Sum)
		parts, refs = append(parts, c), append(refs, c.BOMRef)
	}
	if len(info.Deps) == 0 {
		return errors.New(program + " names no modules: was it built from a module?")
	}
	bom.Components = &parts
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: subject.BOMRef, Dependencies: &refs}}
	return writeFile(file, func(w io.Writer) error {
		return cyclonedx.NewBOMEncoder(w, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	})
}
