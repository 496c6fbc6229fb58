//go:build tools

// Package tools pins Kueue, with the ProvisioningRequest types that it was built for, for the test control plane.
package tools

import _ "sigs.k8s.io/kueue/cmd/kueue"
