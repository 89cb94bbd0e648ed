"""Tests of eagle-assist: unit (one module each), e2e (the program as a user starts it), gpu."""
