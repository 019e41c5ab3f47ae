package script

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// userHelpers returns the user's own file of helpers for bash, below the directory of
// global tools, or "" if there is none.
func userHelpers(functions string) string {
	if functions == "" {
		return ""
	}
	path := filepath.Join(functions, "utils", "prompt-utils.sh")
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// PromptUtils returns the file that LLM_PROMPT_UTILS_FILE names for scripts that are not
// tools: the user's own functions/utils/prompt-utils.sh, or raddle's, which it writes
// to the directory cache if it is not there. It is safe for concurrent use.
func PromptUtils(functions, cache string) (string, error) {
	if path := userHelpers(functions); path != "" {
		return path, nil
	}
	path := filepath.Join(cache, fmt.Sprintf("prompt-utils-%.12x.sh", sha256.Sum256(promptUtils)))
	if text, err := os.ReadFile(path); err == nil && bytes.Equal(text, promptUtils) {
		return path, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", fmt.Errorf("write the helpers for bash: %w", err)
	}
	f, err := os.CreateTemp(cache, "prompt-utils-*.tmp")
	if err != nil {
		return "", fmt.Errorf("write the helpers for bash: %w", err)
	}
	_, err = f.Write(promptUtils)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		if text, e := os.ReadFile(path); e == nil && bytes.Equal(text, promptUtils) {
			return path, nil // another process wrote it meanwhile: Windows replaces no file that is open
		}
		return "", fmt.Errorf("write the helpers for bash: %w", err)
	}
	return path, nil
}
