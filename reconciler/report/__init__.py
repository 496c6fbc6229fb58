"""Plans, differences and findings as text, Markdown, HTML, JSON, SARIF and annotations. Called by cli; pure."""
