"""Charts: procedures declared as a flowchart of Python stages, and the engine that runs them."""
