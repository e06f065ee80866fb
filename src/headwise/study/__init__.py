"""Study guides: their content, its checks, the pages made of it, and the server that shows them."""
