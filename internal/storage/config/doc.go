// Package config reads raddle's own surroundings: its directories, the environment, and
// config.yaml with all its errors and their places. It opens nothing that the
// configuration names.
package config
