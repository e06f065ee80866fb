"""Pages made of a guide's content: Markdown to safe HTML, blocks, questions, and the whole site."""
