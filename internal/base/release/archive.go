package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// largestProgram is what the program may measure.
const largestProgram = 512 << 20

// extractProgram returns the program that an archive of a release has, and nothing else of it.
func extractProgram(name string, archive []byte) ([]byte, error) {
	if strings.HasSuffix(name, ".zip") {
		return extractZip(archive)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for r := tar.NewReader(unpacked); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s has no program in it", name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if header.Typeflag == tar.TypeReg && path.Base(header.Name) == "raddle" && path.Dir(path.Dir(header.Name)) == "." {
			return readProgram(r)
		}
	}
}

func extractZip(archive []byte) ([]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	for _, f := range r.File {
		if f.Mode().IsRegular() && path.Base(f.Name) == "raddle.exe" && path.Dir(path.Dir(f.Name)) == "." {
			opened, err := f.Open()
			if err != nil {
				return nil, err
			}
			program, err := readProgram(opened)
			return program, errors.Join(err, opened.Close())
		}
	}
	return nil, errors.New("the archive has no program in it")
}

func readProgram(r io.Reader) ([]byte, error) {
	program, err := io.ReadAll(io.LimitReader(r, largestProgram+1))
	if err == nil && (len(program) == 0 || len(program) > largestProgram) {
		err = fmt.Errorf("the program is empty, or has more than %d bytes", largestProgram)
	}
	return program, err
}
