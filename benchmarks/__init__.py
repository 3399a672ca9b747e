"""Sites of any size, and how long a derivation takes on them. Nothing here is part of the package."""
