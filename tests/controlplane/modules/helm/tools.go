//go:build tools

// Package tools pins Helm, with which the tests render and install the chart.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
