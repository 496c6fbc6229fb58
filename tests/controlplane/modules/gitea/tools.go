//go:build tools

// Package tools pins Gitea, a real forge, for the test control plane.
package tools

import _ "code.gitea.io/gitea"
