"""quarry-advisor: looks at a sample of a user's table and says how to keep its values in Quarry, and why. See docs/use/advisor.md."""
