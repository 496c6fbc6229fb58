//go:build tools

// Package tools pins KWOK, which makes nodes Ready and pods Running, for the test control plane.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
