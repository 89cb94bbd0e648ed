"""What serves a completion: from a document and a cursor to a prompt, and from tokens back to text."""
