"""Tables and the texts around them: one model, written as Markdown, HTML and LaTeX."""
