"""From what is declared to demands: how many chunks of which shape each manifest asks for right now. Pure."""
