"""The loops over arrays that take most of the time. They are compiled where that pays off."""
