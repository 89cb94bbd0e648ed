"""`python -m eagle_assist` is the same program as `eagle-assist`."""

from eagle_assist import main

main()
