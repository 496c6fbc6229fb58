"""Everything that a repository declares: its documents read, held against one another, and against what is in force."""
