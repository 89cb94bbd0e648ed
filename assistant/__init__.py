"""eagle-assist: code completion by speculative decoding, on the user's own machine."""
