"""The concept inventory: two questions a lesson, asked before the course and after it."""
