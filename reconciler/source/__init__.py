"""Sources of manifests: a folder, a revision of a local repository, or a remote repository that is polled."""
