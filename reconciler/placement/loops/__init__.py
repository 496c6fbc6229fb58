"""The loops over arrays that most time goes to, which are compiled where that pays."""
