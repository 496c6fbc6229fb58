//go:build tools

// Package tools pins Prometheus, which scrapes the daemon and answers the dashboard's queries in the tests.
package tools

import _ "github.com/prometheus/prometheus/cmd/prometheus"
