//go:build tools

// Package tools pins Karpenter with its KWOK cloud provider for the test control plane.
package tools

import _ "sigs.k8s.io/karpenter/kwok"
